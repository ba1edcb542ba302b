// When a controller looks again at an object that is being deleted and is still held by a finalizer or by content.

/**
 * Seconds until the next visit: a quarter of the time since the deletion, at least 0.2 and at most 30. What holds an
 * object usually goes within seconds; an object that was held for long is looked at rarely.
 */
export function retryAfterSeconds(deletionTimestamp: string, nowMs: number): number {
  const seconds = (nowMs - Date.parse(deletionTimestamp)) / 1000
  return Math.min(30, Math.max(0.2, seconds / 4))
}
