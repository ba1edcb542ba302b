// The messages between a measurement and its watch-client.ts.

/** The watches to open: so many connections with so many watches each, for every kubeconfig. */
export interface OpenWatches {
  readonly kubeconfigs: readonly string[]
  readonly connections: number
  readonly watchesEach: number
  readonly path: string
}

export type ToWatchClient = { readonly open: OpenWatches } | 'report'

/**
 * The events received since the watches were opened. Events are ConfigMaps whose `data.at` is `MICROSECONDS-NUMBER`,
 * see eventText.
 */
export interface Received {
  /** Watches that ended. */
  readonly ended: readonly string[]
  /** Events of all watches, and of the watches that received the fewest and the most. */
  readonly events: number
  readonly fewest: number
  readonly most: number
  /** Watches whose event numbers do not have the same sum as those of the first watch. */
  readonly uneven: number
  /** Milliseconds from sending the write to receiving the event. */
  readonly p50: number
  readonly p99: number
  readonly max: number
}

export type FromWatchClient = { readonly opened: number } | { readonly heard: Received } | { readonly failed: string }

export const atDigits = 16
export const numberDigits = 8

/** The value of `data.at`: the machine's monotonic clock, which all processes share, and a number. */
export function eventText(number: number): string {
  const at = process.hrtime.bigint() / 1000n
  return `${String(at).padStart(atDigits, '0')}-${String(number).padStart(numberDigits, '0')}`
}
