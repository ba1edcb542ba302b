// The account to which writes of a logical cluster are charged. There is one account for each, on the main thread:
// writes of the offload thread go through the hub like every other write, and are charged here too.

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
