// What is said between a measurement and its watch-client.ts.

/** What it is told: so many connections with so many watches each, for every kubeconfig. */
export interface OpenWatches {
  readonly kubeconfigs: readonly string[]
  readonly connections: number
  readonly watchesEach: number
  readonly path: string
}

export type ToWatchClient = { readonly open: OpenWatches } | 'report'

/** What it heard since it opened them. Events are ConfigMaps whose `data.at` is `MICROSECONDS-NUMBER`, see eventText. */
export interface Heard {
  /** Watches that ended. */
  readonly ended: readonly string[]
  /** Events of all watches, and of the watch that heard the fewest and the most. */
  readonly events: number
  readonly fewest: number
  readonly most: number
  /** Watches for which the numbers of all events do not add up as those of the first do. */
  readonly uneven: number
  /** Milliseconds from the sending of the write to the event. */
  readonly p50: number
  readonly p99: number
  readonly max: number
}

export type FromWatchClient = { readonly opened: number } | { readonly heard: Heard } | { readonly failed: string }

export const atDigits = 16
export const numberDigits = 8

/** What a writer puts in `data.at`: the machine's monotonic clock, which all its processes share, and a number. */
export function eventText(number: number): string {
  const at = process.hrtime.bigint() / 1000n
  return `${String(at).padStart(atDigits, '0')}-${String(number).padStart(numberDigits, '0')}`
}
