// Sizes and quantities for people.

const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'] as const

export function bytesText(bytes: number): string {
  let value = bytes
  let unit = 0
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024
    unit++
  }
  return `${value >= 10 || unit === 0 ? Math.round(value) : Math.round(value * 10) / 10} ${units[unit] ?? ''}`
}
