// The messages between the two threads of the embedded store: one per batch in each direction, with all values in a few
// transferred buffers, because cloning thousands of small objects costs more than the writes themselves.
import type { ClusterId, Revision } from '#apimachinery/meta/index.ts'
import type { ListScope, ObjectKey, StoredObject, StoreErrorCode, Succession } from '#store/store.ts'

/**
 * The buffers with the values of a batch. There are several, so that each is freed once nobody uses a value in it any
 * more.
 */
export type Values = readonly ArrayBuffer[]

/** The position of a value in the batch's buffers; `at` counts `bufferSpan` for each buffer before its own. */
export interface Slice {
  readonly at: number
  readonly length: number
}

/** An object whose value is in the batch's buffers. */
export type PackedObject = readonly [
  cluster: string,
  resource: string,
  namespace: string,
  name: string,
  revision: number,
  createRevision: number,
  at: number,
  length: number,
]

/** A deletion and the object's last state. */
export interface PackedDeletion {
  readonly revision: number
  readonly previous: PackedObject
}

export type WriteCall =
  | { readonly do: 'create'; readonly key: ObjectKey; readonly value: Slice; readonly above?: number }
  | { readonly do: 'update'; readonly key: ObjectKey; readonly value: Slice; readonly ifRevision: number }
  | { readonly do: 'delete'; readonly key: ObjectKey; readonly ifRevision: number }
  | { readonly do: 'deleteSome'; readonly cluster: ClusterId; readonly limit: number }

export type ReadCall =
  | { readonly do: 'get'; readonly key: ObjectKey }
  | { readonly do: 'list'; readonly scope: ListScope; readonly limit?: number; readonly after?: ObjectKey }
  | { readonly do: 'changes'; readonly cluster?: ClusterId; readonly resource?: string; readonly since: number }
  | { readonly do: 'revision' }

export type DatabaseCall = WriteCall | ReadCall

export type DatabaseAnswer =
  | { readonly is: 'put'; readonly revision: number; readonly createRevision: number }
  | { readonly is: 'deleted'; readonly deletion: PackedDeletion }
  | { readonly is: 'deletedSome'; readonly deletions: readonly PackedDeletion[] }
  | { readonly is: 'object'; readonly object: PackedObject | undefined }
  | {
      readonly is: 'list'
      readonly objects: readonly PackedObject[]
      readonly revision: number
      readonly more: boolean
    }
  | {
      readonly is: 'changes'
      readonly puts: readonly PackedObject[]
      readonly deletions: readonly PackedDeletion[]
      readonly revision: number
    }
  | { readonly is: 'revision'; readonly revision: number }
  | { readonly is: 'error'; readonly code: StoreErrorCode; readonly message: string }

/** Main thread to worker. `null` asks the worker to close the database and end. */
export type ToWorker = { readonly calls: readonly DatabaseCall[]; readonly values: Values } | null

/**
 * Worker to main thread: first one `ready` or `refused`, then one `answers` per batch, or `lost` as the last message.
 */
export type FromWorker =
  | { readonly type: 'ready'; readonly instanceId: string; readonly revision: number }
  | { readonly type: 'refused'; readonly message: string }
  | { readonly type: 'lost'; readonly message: string }
  | { readonly type: 'answers'; readonly answers: readonly DatabaseAnswer[]; readonly values: Values }

/** The worker's start parameters. */
export interface WorkerSettings {
  readonly file: string
  readonly keptDeletions: number
  readonly maxFileBytes: number
  readonly mayBeNew: boolean
  readonly sealKeyFile?: string
  readonly isDurable: boolean
  readonly succession?: Succession
}

/** Size limit of a buffer; only a single larger value exceeds it. */
const maxBufferBytes = 1024 * 1024
/** Distance between the positions of two buffers; larger than any buffer. */
const bufferSpan = 2 ** 32

/** Copies values one after another into buffers that can be transferred. */
export class Packer {
  readonly #full: ArrayBuffer[] = []
  #buffer = new Uint8Array(1024)
  #length = 0

  add(value: Uint8Array): Slice {
    if (this.#length > 0 && this.#length + value.length > maxBufferBytes) {
      this.#full.push(this.#buffer.buffer.transfer(this.#length))
      this.#buffer = new Uint8Array(1024)
      this.#length = 0
    }
    const at = this.#length
    const end = at + value.length
    if (end > this.#buffer.length) {
      const grown = new Uint8Array(Math.max(end, this.#buffer.length * 2))
      grown.set(this.#buffer.subarray(0, at))
      this.#buffer = grown
    }
    this.#buffer.set(value, at)
    this.#length = end
    return { at: this.#full.length * bufferSpan + at, length: value.length }
  }

  finish(): ArrayBuffer[] {
    return [...this.#full, this.#buffer.buffer.transfer(this.#length)]
  }
}

/** The value as a view into the batch's buffers. */
export function valueAt(values: Values, { at, length }: Slice): Uint8Array {
  const buffer = values[Math.floor(at / bufferSpan)]
  if (buffer === undefined) throw new RangeError(`no value is at ${at}`)
  return new Uint8Array(buffer, at % bufferSpan, length)
}

/** The object with its value as a view into the batch's buffers. */
export function unpack(packed: PackedObject, values: Values): StoredObject {
  const [cluster, resource, namespace, name, revision, createRevision, at, length] = packed
  return {
    key: { cluster: cluster as ClusterId, resource, namespace, name },
    revision: revision as Revision,
    createRevision: createRevision as Revision,
    value: valueAt(values, { at, length }),
  }
}
