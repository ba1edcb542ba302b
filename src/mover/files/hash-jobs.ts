// The messages between the pool of hashing threads and a thread.

/** Files are compared by blocks of this size, at multiples of it. */
export const blockBytes = 1 << 17
export const hashBytes = 32

export interface HashJob {
  readonly id: number
  readonly fd: number
  readonly offset: number
  readonly length: number
}

export type HashAnswer =
  | {
      readonly id: number
      /** Bytes that were read: fewer than asked for at the end of the file. */
      readonly bytes: number
      /** SHA-256 of each block; zeros for a block of zeros. */
      readonly hashes: Uint8Array
    }
  | { readonly id: number; readonly error: string }
