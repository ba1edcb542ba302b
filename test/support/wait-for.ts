// Waits for a condition with a deadline, and reports what it last saw.

import { sleep } from '#async/index.ts'

export interface WaitOptions {
  /** The text after "waiting for" in the error: `pod "web-0" to be Ready`. */
  what: string
  deadlineMs: number
  signal?: AbortSignal | undefined
  /** Time between two probes; 100 by default. After a slow probe it is twice as long as the probe, at most a second. */
  intervalMs?: number
}

const never = new AbortController().signal
/** A probe that starts kubectl every 100 ms would take half of a processor from those that the test waits for. */
const mostPauseMs = 1000

/**
 * Calls `probe` until it returns something other than undefined, null or false, and resolves with that. A probe that
 * throws is retried; its last error is in the message at the deadline. Rejects with signal.reason when aborted; the
 * probe's signal also aborts at the deadline.
 */
export async function waitFor<T>(
  probe: (signal: AbortSignal) => T | Promise<T>,
  { what, deadlineMs, signal = never, intervalMs = 100 }: WaitOptions,
): Promise<Exclude<T, undefined | null | false>> {
  const started = performance.now()
  let last = 'nothing yet'
  for (;;) {
    signal.throwIfAborted()
    const began = performance.now()
    const leftMs = started + deadlineMs - performance.now()
    if (leftMs <= 0) throw new Error(`waited ${deadlineMs} ms for ${what}; last seen: ${last}`)
    try {
      const seen = await probeUntil(probe, leftMs, signal)
      if (seen !== undefined && seen !== null && seen !== false) return seen as Exclude<T, undefined | null | false>
      last = String(seen)
    } catch (error) {
      signal.throwIfAborted()
      // A probe aborted by the deadline has nothing new to report.
      if (error !== cutOff || last === 'nothing yet') last = error instanceof Error ? error.message : String(error)
    }
    const pauseMs = Math.max(intervalMs, Math.min(2 * (performance.now() - began), mostPauseMs))
    await sleep(Math.min(pauseMs, Math.max(1, started + deadlineMs - performance.now())), signal)
  }
}

const cutOff = new Error('the deadline passed during the probe')

/** Runs one probe with a signal that aborts with the caller's or at the deadline. */
async function probeUntil<T>(
  probe: (signal: AbortSignal) => T | Promise<T>,
  leftMs: number,
  signal: AbortSignal,
): Promise<T> {
  const controller = new AbortController()
  const forward = (): void => controller.abort(signal.reason)
  signal.addEventListener('abort', forward, { once: true })
  const timer = setTimeout(() => controller.abort(cutOff), leftMs)
  const aborted = new Promise<never>((_, reject) => {
    controller.signal.addEventListener('abort', () => reject(controller.signal.reason as Error), { once: true })
  })
  try {
    return await Promise.race([Promise.resolve(probe(controller.signal)), aborted])
  } finally {
    clearTimeout(timer)
    signal.removeEventListener('abort', forward)
  }
}
