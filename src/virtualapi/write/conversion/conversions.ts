// Converts custom resources between the storage version and the version of a request, with the conversion webhook of
// their CustomResourceDefinition. Not used for definitions without a webhook.
import { LRUCache } from 'lru-cache'
import { abortable } from '#async/index.ts'
import { apiVersionOf, type ClusterId, type JsonObject, type KubeObject } from '#apimachinery/meta/index.ts'
import { requestEntityTooLarge } from '#apimachinery/status/index.ts'
import { applyDefaults, pruneUnknown } from '#apimachinery/schema/index.ts'
import { StoredEntry, type Entry } from '#store/watch-cache/index.ts'
import type { Outbound } from '#virtualapi/outbound/calls/outbound.ts'
import { asBuffer, decodeObject, headOf, layOut, readFacts } from '#virtualapi/kinds/resources/object-bytes.ts'
import type { ResourceDefinition, WebhookConversion } from '#virtualapi/kinds/resources/resource-definition.ts'
import { convertByWebhook, type ConversionCall } from './convert-by-webhook.ts'

/** A definition with a conversion webhook. */
export type ConvertedDefinition = ResourceDefinition & { readonly conversion: WebhookConversion }

export function isConverted(definition: ResourceDefinition): definition is ConvertedDefinition {
  return definition.conversion !== undefined
}

/** The caller of a conversion of many objects. */
export interface ManyCall extends ConversionCall {
  /** Called between batches, to let other requests run. */
  readonly turn?: () => Promise<void> | undefined
}

/**
 * The most bytes of stored objects and the most objects that one call of the webhook converts. A larger object is
 * converted alone.
 */
const [maxBatchBytes, maxBatchObjects] = [512 * 1024, 500]
/** The most bytes of converted objects that one request may hold. */
const maxConvertedBytes = 64 * 1024 * 1024
/** The most bytes that kind, apiVersion and the revision take at the beginning of an object in memory. */
const maxHeadBytes = 640
/** The bounds of the cache of converted objects. Lists and watches ask for the same objects repeatedly. */
const [maxKeptBytes, maxKept] = [64 * 1024 * 1024, 20_000]

/**
 * Converts with the webhooks of tenants. Lists and watches share converted objects; a read of one object calls the
 * webhook each time, as upstream.
 */
export class Conversions {
  readonly #outbound: Outbound
  readonly #turnOf: (cluster: ClusterId) => Promise<void> | undefined
  readonly #kept = new LRUCache<string, Uint8Array>({
    max: maxKept,
    maxSize: maxKeptBytes,
    sizeCalculation: (bytes, key) => bytes.length + key.length,
  })
  readonly #running = new Map<string, Promise<Uint8Array>>()
  readonly #numbers = new WeakMap<ResourceDefinition, number>()
  #lastNumber = 0

  constructor({
    outbound,
    turnOf = () => undefined,
  }: {
    outbound: Outbound
    /** Awaited while responses are read, so that other logical clusters are served. Default: never waits. */
    turnOf?: (cluster: ClusterId) => Promise<void> | undefined
  }) {
    this.#outbound = outbound
    this.#turnOf = turnOf
  }

  /** The bytes of one object in the version of the definition, from bytes in memory. Rejects as `convertByWebhook`. */
  async shown(definition: ConvertedDefinition, bytes: Uint8Array, call: ConversionCall): Promise<Uint8Array> {
    const own = inOwnVersion(definition, bytes)
    if (own !== undefined) return own
    const [converted] = await this.#convert(definition, [bytes], call)
    return converted as Uint8Array
  }

  /**
   * The same entries in the version of the definition. Rejects as `convertByWebhook`, and with 413 if the converted
   * objects take too much memory.
   */
  async shownAll(definition: ConvertedDefinition, entries: readonly Entry[], call: ManyCall): Promise<Entry[]> {
    const result = new Array<Entry>(entries.length)
    let held = 0
    const take = (index: number, entry: Entry, bytes: Uint8Array): void => {
      held += bytes.length
      requireConvertedSize(held)
      result[index] = new StoredEntry({ ...plain(entry), bytes }, readFacts)
    }
    const missing: { readonly index: number; readonly entry: Entry; readonly key: string }[] = []
    const { complete } = definition.conversion
    for (const [index, entry] of entries.entries()) {
      if (isOwnVersion(definition, entry.beginning)) {
        const given = complete === undefined ? undefined : entry.bytes
        const bytes = given && complete?.(given)
        if (bytes === undefined || bytes === given) result[index] = entry
        else take(index, entry, bytes)
        continue
      }
      const key = this.#keyOf(definition, entry)
      const bytes = this.#kept.get(key)
      if (bytes === undefined) missing.push({ index, entry, key })
      else take(index, entry, bytes)
    }
    for (const batch of batches(missing)) {
      const all = await this.#sharedBatch(definition, batch, call)
      for (const [i, { index, entry }] of batch.entries()) take(index, entry, all[i] as Uint8Array)
      await call.turn?.()
    }
    return result
  }

  /** Converts an object from the version of the definition to the storage version. Rejects as `convertByWebhook`. */
  async stored(definition: ConvertedDefinition, object: KubeObject, call: ConversionCall): Promise<KubeObject> {
    const { conversion } = definition
    const stored = await this.inVersion(definition, object, conversion.storageApiVersion, call)
    if (stored !== object) pruned(conversion, stored as unknown as JsonObject)
    return stored
  }

  /**
   * Converts an object from any version of the resource to another; fields that the other version does not know are
   * kept. Does not change its argument. Rejects as `convertByWebhook`.
   */
  async inVersion(
    { conversion }: ConvertedDefinition,
    object: KubeObject,
    apiVersion: string,
    call: ConversionCall,
  ): Promise<KubeObject> {
    if (object.apiVersion === apiVersion) return object
    // As upstream, an object that has only apiVersion and kind does not need the webhook.
    if (Object.keys(object).length === 2) return { ...object, apiVersion }
    // Some callers pass an object that has only the fields to compare, and may have no metadata.
    const { resourceVersion, ...metadata } = (object as Partial<KubeObject>).metadata ?? {}
    const sent = { ...object, ...('metadata' in object ? { metadata } : {}) } as unknown as JsonObject
    const [taken] = await convertByWebhook(conversion, [sent], apiVersion, { ...call, ...this.#partsFor(call) })
    return withRevision(taken as JsonObject, resourceVersion)
  }

  #partsFor({ cluster }: ConversionCall): Pick<Parameters<typeof convertByWebhook>[3], 'outbound' | 'turn'> {
    return { outbound: this.#outbound, turn: () => this.#turnOf(cluster) }
  }

  /**
   * Converts a batch; waits for objects that another list or watch is already converting instead of sending them again.
   */
  async #sharedBatch(
    definition: ConvertedDefinition,
    batch: readonly { readonly entry: Entry; readonly key: string }[],
    call: ConversionCall,
  ): Promise<Uint8Array[]> {
    const mine = batch.filter(({ key }) => !this.#running.has(key))
    const others = batch.filter(({ key }) => this.#running.has(key)).flatMap(({ key }) => this.#running.get(key) ?? [])
    const done = this.#convert(
      definition,
      mine.map(({ entry }) => entry.bytes),
      call,
    )
    const found = new Map<string, Promise<Uint8Array>>()
    for (const [i, { key }] of mine.entries()) {
      const one = done.then((all) => all[i] as Uint8Array)
      one.catch(() => undefined)
      found.set(key, one)
      this.#running.set(key, one)
    }
    try {
      const all = await done
      for (const [i, { key }] of mine.entries()) this.#kept.set(key, all[i])
    } finally {
      for (const { key } of mine) this.#running.delete(key)
    }
    if (others.length > 0) await abortable(Promise.allSettled(others), call.signal)
    return await Promise.all(
      batch.map(
        async ({ entry, key }) =>
          (await found.get(key)) ?? this.#kept.get(key) ?? (await this.shown(definition, entry.bytes, call)),
      ),
    )
  }

  async #convert(
    definition: ConvertedDefinition,
    all: readonly Uint8Array[],
    call: ConversionCall,
  ): Promise<Uint8Array[]> {
    const { conversion, info } = definition
    const revisions: (string | undefined)[] = []
    const objects = all.map((bytes) => {
      const object = decodeObject(bytes)
      revisions.push(object.metadata.resourceVersion)
      delete object.metadata.resourceVersion
      return completed(conversion, object)
    })
    const options = { ...call, ...this.#partsFor(call) }
    const converted = await convertByWebhook(conversion, objects, apiVersionOf(info), options)
    const laidOut: Uint8Array[] = []
    for (const [i, object] of converted.entries()) {
      laidOut.push(Buffer.from(layOut(withRevision(pruned(conversion, object), revisions[i]))))
      await options.turn()
    }
    return laidOut
  }

  /**
   * The key in the cache: definition and entry. Each definition object gets a number; a definition stays the same
   * object while it is in use.
   */
  #keyOf(definition: ResourceDefinition, { key, bytes }: Entry): string {
    let number = this.#numbers.get(definition)
    if (number === undefined) this.#numbers.set(definition, (number = ++this.#lastNumber))
    // The revision that the bytes contain; in a DELETED event, that is the revision of the deletion.
    const revision = /"resourceVersion":"(\d+)"/.exec(asBuffer(bytes).toString('latin1', 0, maxHeadBytes))?.[1] ?? ''
    return `${number}/${key.cluster}/${key.namespace}/${key.name}/${revision}`
  }
}

/**
 * Throws 413 if the converted objects of one request take too much memory: a webhook may turn small objects into large
 * ones.
 */
export function requireConvertedSize(bytes: number): void {
  if (bytes > maxConvertedBytes)
    throw requestEntityTooLarge(
      'the converted objects of this list are larger than 64 MiB, list fewer of them at a time (limit)',
    )
}

/**
 * The bytes if they are in the version of the definition, with its defaults and without unknown fields; otherwise
 * undefined.
 */
function inOwnVersion(definition: ConvertedDefinition, bytes: Uint8Array): Uint8Array | undefined {
  return isOwnVersion(definition, bytes) ? (definition.conversion.complete?.(bytes) ?? bytes) : undefined
}

/** `beginning`: the bytes of an object up to metadata at least. */
function isOwnVersion({ info }: ConvertedDefinition, beginning: Uint8Array): boolean {
  const head = `{${headOf(info.kind, apiVersionOf(info))}`
  return asBuffer(beginning).toString('latin1', 0, head.length) === head
}

/**
 * The stored object with the defaults of its own version and without fields that this version does not know, as it is
 * sent to the webhook.
 */
function completed(conversion: WebhookConversion, object: KubeObject): JsonObject {
  const json = pruned(conversion, object as unknown as JsonObject)
  const schema = conversion.schemas.get(object.apiVersion)
  if (schema !== undefined) applyDefaults(json, schema)
  return json
}

/** The same object without fields that its version does not know. */
function pruned({ schemas }: WebhookConversion, object: JsonObject): JsonObject {
  const { apiVersion } = object
  const schema = typeof apiVersion === 'string' ? schemas.get(apiVersion) : undefined
  if (schema !== undefined) pruneUnknown(object, schema, { isResourceRoot: true })
  return object
}

function withRevision(taken: JsonObject, resourceVersion: string | undefined): KubeObject {
  const object = taken as unknown as KubeObject
  if (resourceVersion === undefined) return object
  return { ...object, metadata: { ...object.metadata, resourceVersion } }
}

function plain({ key, revision, createRevision, base }: Entry): Omit<Entry, 'facts' | 'bytes' | 'size' | 'beginning'> {
  return { key, revision, createRevision, base }
}

function* batches<T extends { readonly entry: Entry }>(all: readonly T[]): Generator<readonly T[]> {
  let batch: T[] = []
  let bytes = 0
  for (const one of all) {
    const { size } = one.entry
    if (batch.length > 0 && (bytes + size > maxBatchBytes || batch.length === maxBatchObjects)) {
      yield batch
      batch = []
      bytes = 0
    }
    batch.push(one)
    bytes += size
  }
  if (batch.length > 0) yield batch
}
