// Where a write is charged to its logical cluster. There is one account for each, on the main thread: what the offload
// thread writes goes through the hub like every other write, and is charged here too.

/** What a logical cluster keeps by now. */
export interface Kept {
  /** Objects there are. */
  readonly size: number
  /** Bytes of them. */
  readonly bytes: number
}

/** What a write adds to it. */
export interface Growth {
  /** Below 0: it gets smaller. */
  readonly bytes: number
  readonly creates: boolean
}

export interface QuotaAccount {
  /** Does the write if there is room for it. Rejects StoreError OverBudget, with nothing written, or as the write does. */
  admit<T>(kept: Kept, growth: Growth, write: () => Promise<T>): Promise<T>
}
