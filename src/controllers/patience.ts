// How long a loop waits before it looks again at something that is being deleted and is still held.
import { systemClock } from '../async/index.ts'

/** Seconds: soon at first, as what holds it usually goes within seconds; seldom for what has been held for long. */
export function patienceSeconds(deletedAt: string): number {
  const seconds = (systemClock.now() - Date.parse(deletedAt)) / 1000
  return Math.min(30, Math.max(0.2, seconds / 4))
}
