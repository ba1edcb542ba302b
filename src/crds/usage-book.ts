// The rows of usage of the current hour, as one process has counted them.
import {
  hourMs,
  hourOf,
  newUsageRow,
  usageSums,
  type UsageHistory,
  type UsageRow,
  type UsageSum,
} from './usage-rows.ts'

/** What a logical cluster used, to be added to its row: amounts by column. */
export interface UsedAmounts extends Partial<Record<UsageSum, number>> {
  readonly id: string
  readonly name: string
}

export class UsageBook {
  readonly #history: UsageHistory
  #hour = ''
  #rows = new Map<string, UsageRow>()
  #isChanged = false

  constructor(history: UsageHistory) {
    this.#history = history
  }

  /**
   * Opens the hour that contains `nowMs`, in Unix milliseconds: saves the rows of the hour before, and goes on with the
   * rows that an earlier process saved for the new hour. Rejects with the error of the history; the rows are kept then.
   */
  async open(nowMs: number, signal: AbortSignal): Promise<void> {
    const hour = hourOf(nowMs)
    if (hour === this.#hour) return
    await this.save(signal)
    const rows = await this.#history.own(hour, signal)
    this.#rows = new Map(rows.map((row) => [row.id, { ...row }]))
    this.#hour = hour
    this.#isChanged = false
  }

  /** Adds to the row of the logical cluster in the hour that is open. */
  add({ id, name, ...amounts }: UsedAmounts): void {
    const row = this.#rows.get(id) ?? newUsageRow({ hour: this.#hour, id, name })
    for (const column of usageSums) row[column] += amounts[column] ?? 0
    this.#rows.set(id, row)
    this.#isChanged = true
  }

  /** Saves the rows, if there is anything new. */
  async save(signal: AbortSignal): Promise<void> {
    if (!this.#isChanged || this.#hour === '') return
    this.#isChanged = false
    try {
      await this.#history.save(this.#hour, [...this.#rows.values()], signal)
    } catch (error) {
      this.#isChanged = true
      throw error
    }
  }

  /** The rows of the current hour, by id. */
  get rows(): ReadonlyMap<string, Readonly<UsageRow>> {
    return this.#rows
  }
}

/** Splits a time span at full hours. Each part has its beginning, in Unix milliseconds, and its length in seconds. */
export function partsByHour(fromMs: number, toMs: number): { readonly atMs: number; readonly seconds: number }[] {
  const parts: { atMs: number; seconds: number }[] = []
  for (let atMs = fromMs; atMs < toMs;) {
    const end = Math.min(toMs, atMs - (atMs % hourMs) + hourMs)
    parts.push({ atMs, seconds: (end - atMs) / 1000 })
    atMs = end
  }
  return parts
}
