// Waiting for a condition, with a deadline and an answer to "what did you see instead?".

import { sleep } from '../../src/async/index.ts'

export interface WaitOptions {
  /** What we wait for, as it reads after "waiting for": `pod "web-0" to be Ready`. */
  what: string
  deadlineMs: number
  signal?: AbortSignal | undefined
  /** Between two probes; 100 by default. */
  intervalMs?: number
}

const never = new AbortController().signal

/**
 * Asks `probe` until it gives something other than undefined, null or false, and resolves with that.
 * A probe that throws has simply not succeeded yet: its last error is told when the deadline passes.
 * Rejects with signal.reason when aborted; the probe gets a signal that also ends at the deadline.
 */
export async function waitFor<T>(
  probe: (signal: AbortSignal) => T | Promise<T>,
  { what, deadlineMs, signal = never, intervalMs = 100 }: WaitOptions,
): Promise<Exclude<T, undefined | null | false>> {
  const started = performance.now()
  let last = 'nothing yet'
  for (;;) {
    signal.throwIfAborted()
    const leftMs = started + deadlineMs - performance.now()
    if (leftMs <= 0) throw new Error(`waited ${deadlineMs} ms for ${what}; last seen: ${last}`)
    try {
      const seen = await probeUntil(probe, leftMs, signal)
      if (seen !== undefined && seen !== null && seen !== false) return seen as Exclude<T, undefined | null | false>
      last = String(seen)
    } catch (error) {
      signal.throwIfAborted()
      // A probe cut off by the deadline saw nothing new.
      if (error !== cutOff || last === 'nothing yet') last = error instanceof Error ? error.message : String(error)
    }
    await sleep(Math.min(intervalMs, Math.max(1, started + deadlineMs - performance.now())), signal)
  }
}

const cutOff = new Error('the deadline passed during the probe')

/** One probe, whose signal ends with the caller's or with the time that is left. */
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
