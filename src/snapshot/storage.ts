// The contract of places that keep snapshots: a directory, or a bucket of an object store.
import { createHash } from 'node:crypto'
import { SnapshotError } from './format.ts'

/** Why a storage did not do what it was asked for; reasons of conditions, see docs/reference/reasons.md. */
export const storageReasons = [
  'ObjectMissing',
  'BucketMissing',
  'AccessDenied',
  'CredentialsRefused',
  'StorageUnreachable',
  'StorageFailed',
  'StorageFull',
  'WrongContent',
  'PathRefused',
] as const
export type StorageReason = (typeof storageReasons)[number]

/** An error of a storage, with a message that tells people what to do. */
export class StorageError extends SnapshotError {
  readonly reason: StorageReason

  constructor(reason: StorageReason, message: string, options?: ErrorOptions) {
    super(message, options)
    this.reason = reason
  }
}

/** True for a StorageError, with this reason if one is given. */
export function isStorageError(error: unknown, reason?: StorageReason): error is StorageError {
  return error instanceof StorageError && (reason === undefined || error.reason === reason)
}

/** A whole object as it was stored. */
export interface StoredObject {
  readonly bytes: number
  /** `sha256:` and the hash of the stored bytes in hexadecimal digits. */
  readonly checksum: string
}

export interface ListedObject {
  readonly key: string
  readonly bytes: number
}

/**
 * Keeps objects under keys such as `acme/nightly.kcp.tar.zst`: parts of letters, digits, `.`, `_` and `-`, which begin
 * with a letter or digit. All methods reject with StorageError, and with signal.reason when aborted.
 */
export interface SnapshotStorage extends AsyncDisposable {
  /** Where the object is, for people: `s3://bucket/prefix/key`, or the path of a file. */
  location(key: string): string
  /**
   * Stores the bytes under the key, whole or not at all: what was under the key before stays until then. What broken
   * attempts at the same key have left is removed first. Memory does not grow with the bytes.
   */
  put(key: string, bytes: AsyncIterable<Uint8Array>, signal: AbortSignal): Promise<StoredObject>
  /** Opens the object. A connection that ends early is an error of the stream. */
  get(key: string, signal: AbortSignal): Promise<AsyncIterable<Uint8Array>>
  /** The size of the object; undefined if there is none. */
  size(key: string, signal: AbortSignal): Promise<number | undefined>
  /** All objects whose keys begin with `folder/`; all for an empty text. Sorted by key. */
  list(folder: string, signal: AbortSignal): AsyncIterable<ListedObject>
  /** Removes the object and what broken attempts at it have left. Nothing to remove is no error. */
  delete(key: string, signal: AbortSignal): Promise<void>
  /** Rejects if snapshots could not be stored here, as far as that shows without writing. */
  check(signal: AbortSignal): Promise<void>
}

/**
 * The bytes, and the error with which they ended, so that a storage tells a failure of its own from one of the bytes'
 * source.
 */
export class Source {
  error: unknown
  readonly #bytes: AsyncIterable<Uint8Array>

  constructor(bytes: AsyncIterable<Uint8Array>) {
    this.#bytes = bytes
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array> {
    try {
      yield* this.#bytes
    } catch (error) {
      this.error = error
      throw error
    }
  }
}

const part = /^[A-Za-z0-9][A-Za-z0-9._-]*$/

/** Throws StorageError for a text that is no key: a storage never leaves its directory or prefix. */
export function requireKey(key: string): void {
  const parts = key.split('/')
  const isKey = key.length <= 700 && parts.every((one) => part.test(one) && one.length <= 255)
  if (!isKey)
    throw new StorageError(
      'PathRefused',
      `${JSON.stringify(key)} is no path of a snapshot: its parts have letters, digits, ".", "_" and "-", and begin with a letter or digit`,
    )
}

/**
 * The bytes, which end with a StorageError if they are not those of the checksum (`sha256:` and hexadecimal digits): a
 * caller that must not use wrong ones reads them to the end first.
 */
export async function* checkedBytes(bytes: AsyncIterable<Uint8Array>, checksum: string): AsyncGenerator<Uint8Array> {
  const hash = createHash('sha256')
  for await (const chunk of bytes) {
    hash.update(chunk)
    yield chunk
  }
  const found = `sha256:${hash.digest('hex')}`
  if (found !== checksum)
    throw new StorageError(
      'WrongContent',
      `what is stored is not what kcp has stored: its checksum is ${found}, not ${checksum}`,
    )
}
