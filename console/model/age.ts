// Ages in the words of kubectl.

const units = [
  { suffix: 'y', seconds: 31_536_000 },
  { suffix: 'd', seconds: 86_400 },
  { suffix: 'h', seconds: 3600 },
  { suffix: 'm', seconds: 60 },
  { suffix: 's', seconds: 1 },
] as const

/** Two units at most, such as `3d4h`, `12m`, `5s`; empty if the time is not known. */
export function ageText(sinceMs: number, nowMs: number): string {
  if (Number.isNaN(sinceMs)) return ''
  return durationText((nowMs - sinceMs) / 1000)
}

export function durationText(seconds: number): string {
  const whole = Math.max(0, Math.floor(seconds))
  const first = units.findIndex((unit) => whole >= unit.seconds)
  const unit = units[first]
  if (unit === undefined) return '0s'
  const count = Math.floor(whole / unit.seconds)
  const next = units[first + 1]
  const rest = next === undefined ? 0 : Math.floor((whole % unit.seconds) / next.seconds)
  // Beside many hours or days, the smaller unit says nothing.
  if (next === undefined || rest === 0 || count >= 10) return `${count}${unit.suffix}`
  return `${count}${unit.suffix}${rest}${next.suffix}`
}
