// Reads untrusted JSON in tests.

/** Whether a value is an object with fields. */
export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** The value at path `a.b.c`; undefined if there is none. */
export function at(value: unknown, path: string): unknown {
  return path
    .split('.')
    .reduce<unknown>(
      (inner, key) => (isRecord(inner) ? inner[key] : Array.isArray(inner) ? inner[Number(key)] : undefined),
      value,
    )
}

/** The text at path `a.b.c`; empty if there is none. */
export function textAt(value: unknown, path: string): string {
  const found = at(value, path)
  return typeof found === 'string' ? found : ''
}
