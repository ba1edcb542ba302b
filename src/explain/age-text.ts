// Ages as kubectl prints them.

/** An age such as 45s, 12m, 5h or 3d. */
export function ageText(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1000))
  if (Number.isNaN(seconds)) return 'an unknown time'
  if (seconds < 120) return `${seconds}s`
  if (seconds < 2 * 3600) return `${Math.floor(seconds / 60)}m`
  return seconds < 48 * 3600 ? `${Math.floor(seconds / 3600)}h` : `${Math.floor(seconds / 86_400)}d`
}
