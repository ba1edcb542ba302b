// What a VolumeMove tells: its progress in one line, the expected time without the application, and why it waits. Pure.
import type { VolumeMoveStatus } from '#crds/index.ts'
import type { Survey } from '#mover/index.ts'
import { maxNotKept } from '#crds/index.ts'

const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB']

/** A number of bytes for people. */
export function bytesText(bytes: number): string {
  const power = bytes < 1024 ? 0 : Math.min(units.length - 1, Math.floor(Math.log2(bytes) / 10))
  const amount = bytes / 1024 ** power
  return `${amount >= 100 || power === 0 ? Math.round(amount) : amount.toFixed(1)} ${units[power]}`
}

/** A duration for people. */
export function secondsText(seconds: number): string {
  if (seconds < 90) return `${Math.ceil(seconds)} s`
  return seconds < 5400 ? `${Math.round(seconds / 60)} min` : `${(seconds / 3600).toFixed(1)} h`
}

/** One line about a round that runs. */
export function progressText({ doneBytes = 0, bytes = 0, rate = 0, rounds = 0 }: VolumeMoveStatus): string {
  if (bytes === 0) return `round ${rounds + 1} begins`
  const percent = Math.min(100, Math.floor((doneBytes / bytes) * 100))
  const left = rate > 0 ? `, about ${secondsText(Math.max(0, bytes - doneBytes) / rate)} left` : ''
  return `round ${rounds + 1}: ${percent} % of ${bytesText(bytes)} at ${bytesText(rate)}/s${left}`
}

/** Bytes per second at which two volumes are compared, if nothing is known of them. */
const usualReadRate = 200 * 1024 ** 2
/** Seconds for giving the volume to the claim. */
const bindingSeconds = 8

/**
 * For how many seconds the application will be stopped: for the changes since the last round, for the comparison of all
 * data, and for the new volume to be bound.
 */
export function expectedDowntime(
  { bytes = 0, lastRound }: VolumeMoveStatus,
  { readRate = usualReadRate }: { readonly readRate?: number },
): number {
  return Math.ceil((lastRound?.seconds ?? 0) + bytes / Math.max(readRate, 1) + bindingSeconds)
}

/** Names of entries that cannot be kept, with the reasons. */
export function notKeptTexts({ notKept }: Pick<Survey, 'notKept'>): string[] {
  const named = notKept.named
    .slice(0, maxNotKept)
    .map(({ path, reason, detail }) => `${path}: ${reason}${detail === undefined ? '' : ` (${detail})`}`.slice(0, 1024))
  const more = notKept.count - named.length
  return more > 0 ? [...named, `and ${more} more`] : named
}

/** For how long an Event is not repeated, milliseconds, and how many Events a move has in this time. */
const repeatEventMs = 10 * 60_000
const maxEvents = 12

/**
 * Whether an Event with this reason is due, and if so, notes it. A move that waits may find one obstacle after the other,
 * again and again, and members choose reasons, too. `toldAt`: when each reason was told last, in Unix milliseconds.
 */
export function mayTell(toldAt: Map<string, number>, reason: string, nowMs: number): boolean {
  for (const [told, atMs] of toldAt) if (nowMs - atMs >= repeatEventMs) toldAt.delete(told)
  if (toldAt.has(reason) || toldAt.size >= maxEvents) return false
  toldAt.set(reason, nowMs)
  return true
}
