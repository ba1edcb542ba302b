// Sizes of a measurement that an environment variable can change.

export function sizeFrom(variable: string, usual: number): number {
  const text = process.env[variable]
  return text === undefined || text === '' ? usual : Number(text)
}

/** Of all measurements with a fleet of members. */
export const memberCount = sizeFrom('KCP_BENCH_MEMBERS', 50)
