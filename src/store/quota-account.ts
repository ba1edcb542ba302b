// The account to which writes of a logical cluster are charged, and its limit. There is one account for each logical
// cluster, on the main thread: writes of the offload thread go through the watch cache like every other write, and are
// charged here, too.
import { StoreError } from './store.ts'

/** The stored objects of a logical cluster. */
interface Kept {
  /** Number of objects. */
  readonly size: number
  /** Bytes of their values. */
  readonly bytes: number
}

/** The same, with their number by resource. */
interface KeptByResource extends Kept {
  countOf(resource: string): number
}

/** The growth by a write. */
interface Growth {
  /** Change of the size in bytes; negative if the value gets smaller. */
  readonly bytes: number
  readonly creates: boolean
}

/** The same, with the resource of the object. */
interface GrowthOf extends Growth {
  readonly resource: string
}

export interface QuotaAccount {
  /**
   * Runs the write if there is room for it. Rejects StoreError OverBudget without writing, or with the error of the
   * write.
   */
  admit<T>(kept: KeptByResource, growth: GrowthOf, write: () => Promise<T>): Promise<T>
  /** Called after each applied change. Must be quick. */
  changed?(kept: KeptByResource): void
}

/** Bytes charged per object besides its value: many small objects are not free. */
export const objectCharge = 512
/**
 * Fraction by which updates may exceed the limit: conditions, finalizers and deletions still fit when creations do not.
 */
const updateRoom = 1 / 16

/** The charge for the stored objects, in bytes. */
export function storageUsed({ bytes, size }: Kept): number {
  return bytes + size * objectCharge
}

/**
 * Limits how much a logical cluster, or all of them, may keep. The store is shared: without a limit one tenant could
 * fill it for all, and all together the etcd of their host. Counts running writes as done, so that concurrent writes
 * cannot exceed the limit together.
 */
export class StorageBudget implements QuotaAccount {
  readonly #limit: number
  readonly #of: string
  #underWay = 0

  /** `limit` is in bytes; Infinity for none. `of` completes the message "exceeded quota: storage of". */
  constructor(limit: number, of = 'this logical cluster') {
    this.#limit = limit
    this.#of = of
  }

  /** Runs a write that makes `kept` larger by `growth`. Rejects OverBudget without writing. */
  async admit<T>(kept: Kept, growth: Growth, write: () => Promise<T>): Promise<T> {
    const { bytes, creates } = growth
    const needed = bytes + (creates ? objectCharge : 0)
    if (needed <= 0 || this.#limit === Infinity) return write()
    const used = storageUsed(kept) + this.#underWay
    if (used + needed > this.#limit * (creates ? 1 : 1 + updateRoom)) {
      const numbers = `requested: bytes=${needed}, used: bytes=${used}, limited: bytes=${this.#limit}`
      throw new StoreError('OverBudget', `exceeded quota: storage of ${this.#of}, ${numbers}`)
    }
    this.#underWay += needed
    try {
      return await write()
    } finally {
      this.#underWay -= needed
    }
  }
}
