// Converts between objects and Records: the Record's namespace, its name, and the payload as one string.
import { hash } from 'node:crypto'
import { deflateRawSync, inflateRawSync } from 'node:zlib'
import type { ClusterId, Revision } from '#apimachinery/meta/index.ts'
import { recordClusterLabel, recordResourceLabel, type StorageRecord } from '#crds/index.ts'
import type { Seal } from '#store/seal.ts'
import { StoreError, type ObjectKey, type StoredObject } from '#store/store.ts'

/**
 * Holds the create revision, from the first update on: the host does not report at which revision it created a Record.
 */
const createRevisionAnnotation = 'storage.kcp.dev/create-revision'

/** etcd accepts requests of 1.5 MiB by default; the rest is for metadata and managed fields. */
const maxRecordBytes = 1_500_000
/** Plain payloads above this are compressed: quoting them as a JSON string could exceed the limit. */
const compressAbove = 512 * 1024
const maxOpenedBytes = 64 * 1024 * 1024

// JSON begins with `{` or is `null`, so these prefixes are unambiguous.
const sealedPrefix = 'sealed:'
const compressedPrefix = 'deflate:'

/** The buckets of an installation are namespaces with this prefix. */
export const defaultNamespacePrefix = 'kcp-records-'

/** Whether host users with access to Records must not be able to read objects of this resource. */
export function isSealedResource(resource: string): boolean {
  return resource === 'secrets'
}

interface RecordCodecOptions {
  readonly namespacePrefix: string
  readonly seal: Seal
  readonly sealResource: (resource: string) => boolean
  /** Throws for a value that this program cannot have written. */
  readonly requireValue: (value: Uint8Array) => void
}

export class RecordCodec {
  readonly #options: RecordCodecOptions

  constructor(options: RecordCodecOptions) {
    this.#options = options
  }

  /** The host namespace that keeps this logical cluster, together with others. */
  bucketOf(cluster: ClusterId): string {
    return this.bucket(bucketNumberOf(cluster))
  }

  bucket(number: number): string {
    return `${this.#options.namespacePrefix}${number.toString(16).padStart(2, '0')}`
  }

  /** The number of the bucket with this namespace name, 0 to 255. */
  numberOf(bucket: string): number {
    return Number.parseInt(bucket.slice(this.#options.namespacePrefix.length), 16)
  }

  /** Whether a namespace is a bucket. A Record in any other namespace is not ours. */
  isBucket(namespace: string): boolean {
    const { namespacePrefix } = this.#options
    return namespace.startsWith(namespacePrefix) && /^[0-9a-f]{2}$/.test(namespace.slice(namespacePrefix.length))
  }

  nameOf({ cluster, resource, namespace, name }: ObjectKey): string {
    return hash('sha256', [cluster, resource, namespace, name].join('\0')).slice(0, 40)
  }

  clusterSelector(cluster: ClusterId): string {
    return `${recordClusterLabel}=${cluster}`
  }

  resourceSelector(resource: string): string {
    return `${recordResourceLabel}=${hashOf(resource)}`
  }

  /** The Record to send. Throws StoreError TooLarge. `existing` is the Record that an update replaces. */
  encode(
    key: ObjectKey,
    value: Uint8Array,
    existing?: { revision: Revision; createRevision: Revision },
  ): StorageRecord {
    const { cluster, resource, namespace, name } = key
    const record: StorageRecord = {
      apiVersion: 'storage.kcp.dev/v1',
      kind: 'Record',
      metadata: {
        name: this.nameOf(key),
        namespace: this.bucketOf(cluster),
        labels: { [recordClusterLabel]: cluster, [recordResourceLabel]: hashOf(resource) },
        ...(existing && {
          resourceVersion: String(existing.revision),
          annotations: { [createRevisionAnnotation]: String(existing.createRevision) },
          // Drops the managed fields, which nobody reads: they are half of the cost of an update in the host.
          managedFields: [{}],
        }),
      },
      cluster,
      resource,
      ...(namespace !== '' && { namespace }),
      name,
      data: this.#payload(key, value),
    }
    // JSON writes a character as at most six bytes.
    const bytes = record.data.length * 6 > maxRecordBytes ? Buffer.byteLength(JSON.stringify(record.data)) : 0
    if (bytes > maxRecordBytes) {
      throw new StoreError(
        'TooLarge',
        `"${resource}/${name}" takes ${bytes} bytes in the host, more than the limit of ${maxRecordBytes}`,
      )
    }
    return record
  }

  /** Throws StoreError Unavailable for a Record that is not where its key belongs, cannot be opened, or was edited. */
  decode(record: StorageRecord): StoredObject {
    const key = this.keyOf(record)
    const { metadata, data } = record
    try {
      const value = this.#open(key, data)
      this.#options.requireValue(value)
      return this.objectOf(record, { key, value })
    } catch (cause) {
      const why = cause instanceof Error ? cause.message : String(cause)
      const message = `Record "${metadata.namespace}/${metadata.name}" of "${key.resource}/${key.name}": ${why}`
      throw new StoreError('Unavailable', message, { cause })
    }
  }

  /** Whether the payload is sealed with another key than the one in use. */
  isOfOtherKey({ data }: StorageRecord): boolean {
    return data.startsWith(sealedPrefix) && this.#options.seal.isOfOtherKey(data.slice(sealedPrefix.length))
  }

  /** The object in a Record whose payload is known. */
  objectOf(record: StorageRecord, { key, value }: Pick<StoredObject, 'key' | 'value'>): StoredObject {
    return { key, ...this.revisionsOf(record), value }
  }

  /** The revisions of the object in a Record. */
  revisionsOf(record: StorageRecord): Pick<StoredObject, 'revision' | 'createRevision'> {
    const revision = Number(record.metadata.resourceVersion) as Revision
    return { revision, createRevision: createRevisionOf(record, revision) }
  }

  /** The key stored in a Record; throws if the Record's name belongs to another key, as after a copy by hand. */
  keyOf(record: StorageRecord): ObjectKey {
    const { cluster, resource, namespace = '', name } = record
    const key: ObjectKey = { cluster: cluster as ClusterId, resource, namespace, name }
    // The host does not check these fields: null would give the same name as an empty text.
    const isText = [cluster, resource, namespace, name].every((field: unknown) => typeof field === 'string')
    if (
      !isText ||
      this.nameOf(key) !== record.metadata.name ||
      this.bucketOf(key.cluster) !== record.metadata.namespace
    ) {
      const where = `${record.metadata.namespace}/${record.metadata.name}`
      throw new StoreError('Unavailable', `Record "${where}" is not where the object it holds belongs`)
    }
    return key
  }

  #payload(key: ObjectKey, value: Uint8Array): string {
    const { seal, sealResource } = this.#options
    if (sealResource(key.resource)) return sealedPrefix + seal.close(key, value)
    if (value.length > compressAbove) return compressedPrefix + deflateRawSync(value).toString('base64')
    return Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString()
  }

  #open(key: ObjectKey, data: string): Uint8Array {
    if (data.startsWith(sealedPrefix)) return this.#options.seal.open(key, data.slice(sealedPrefix.length))
    // This program never writes a plain payload where a sealed one belongs.
    if (this.#options.sealResource(key.resource) && data !== 'null') {
      throw new StoreError('Unavailable', `the Record of "${key.resource}/${key.name}" is not sealed`)
    }
    if (!data.startsWith(compressedPrefix)) return Buffer.from(data)
    const packed = Buffer.from(data.slice(compressedPrefix.length), 'base64')
    return inflateRawSync(packed, { maxOutputLength: maxOpenedBytes })
  }
}

function createRevisionOf({ metadata }: StorageRecord, revision: Revision): Revision {
  const noted = Number(metadata.annotations?.[createRevisionAnnotation])
  return Number.isSafeInteger(noted) && noted > 0 ? (noted as Revision) : revision
}

function hashOf(resource: string): string {
  return hash('sha256', resource).slice(0, 16)
}

/** The number of a logical cluster's bucket, 0 to 255: from a hash of its id. */
export function bucketNumberOf(cluster: ClusterId): number {
  return Number.parseInt(hash('sha256', cluster).slice(0, 2), 16)
}
