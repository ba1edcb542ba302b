// Seals the Records of former keys with the current key, while the processes that serve them run.
import { isStatusError } from '#apimachinery/status/index.ts'
import type { KubeClient } from '#client/index.ts'
import { records as recordsGvr, type StorageRecord } from '#crds/index.ts'
import { Seal } from '#store/seal.ts'
import { defaultNamespacePrefix, isSealedResource, RecordCodec } from './record-codec.ts'

interface ResealOptions {
  readonly client: KubeClient
  readonly sealKey: Uint8Array
  readonly otherSealKeys: readonly Uint8Array[]
  /** Only counts the Records that another key has sealed. */
  readonly dryRun: boolean
  readonly signal: AbortSignal
}

const pageSize = 100
/** Maximum number of passes: a Record that changed after it was listed is tried again in the next pass. */
const maxPasses = 5

/**
 * Resolves with the number of Records sealed anew (with `dryRun`, found) and the number of Records left, which change
 * all the time or cannot be opened. Their resourceVersions change, so watchers of Secrets see each of them once more.
 */
export async function resealRecords(options: ResealOptions): Promise<{ resealed: number; left: number }> {
  const { sealKey, otherSealKeys: otherKeys, dryRun } = options
  const codec = new RecordCodec({
    namespacePrefix: defaultNamespacePrefix,
    sealResource: isSealedResource,
    seal: new Seal(sealKey, { otherKeys }),
    requireValue: () => undefined,
  })
  let resealed = 0
  for (let pass = 1; ; pass++) {
    let left = 0
    for await (const record of sealedWithOtherKeys(codec, options)) {
      if (dryRun || (await resealOne(record, codec, options))) resealed++
      else left++
    }
    if (left === 0 || dryRun || pass === maxPasses) return { resealed, left }
  }
}

async function* sealedWithOtherKeys(
  codec: RecordCodec,
  { client, signal }: ResealOptions,
): AsyncGenerator<StorageRecord> {
  // Secrets are the only sealed resource: see isSealedResource.
  const labelSelector = codec.resourceSelector('secrets')
  let page: string | undefined
  do {
    const asked = { labelSelector, limit: pageSize, signal, ...(page !== undefined && { continue: page }) }
    const list = await client.list<StorageRecord>(recordsGvr, asked)
    for (const record of list.items)
      if (codec.isBucket(record.metadata.namespace) && codec.isOfOtherKey(record)) yield record
    page = list.metadata.continue === '' ? undefined : list.metadata.continue
  } while (page !== undefined)
}

/** Resolves with false if the Record has changed or cannot be opened. */
async function resealOne(
  record: StorageRecord,
  codec: RecordCodec,
  { client, signal }: ResealOptions,
): Promise<boolean> {
  try {
    const { key, value, revision, createRevision } = codec.decode(record)
    await client.update(recordsGvr, codec.encode(key, value, { revision, createRevision }), { signal })
    return true
  } catch (error) {
    signal.throwIfAborted()
    if (isStatusError(error) && !['Conflict', 'NotFound'].includes(error.reason)) throw error
    return false
  }
}
