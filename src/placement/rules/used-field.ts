// The fields of an object that a member does not know.
import { isJsonObject } from '#apimachinery/meta/index.ts'

/**
 * The first field in the object that one of the patterns names, such as `spec.containers[0].restartPolicyRules` for the
 * pattern `spec.containers[*].restartPolicyRules`; `{*}` stands for any key of a map. Undefined if the object uses none.
 */
export function usedField(object: unknown, patterns: readonly string[]): string | undefined {
  for (const pattern of patterns) {
    const found = find(object, stepsOf(pattern))
    if (found !== undefined) return found.slice(1)
  }
  return undefined
}

function stepsOf(pattern: string): string[] {
  return pattern.split(/\.|(?=\[)|(?=\{)/).filter((step) => step !== '')
}

/** The path with a separator before it. */
function find(value: unknown, [step, ...rest]: readonly string[]): string | undefined {
  if (step === undefined) return value === undefined || value === null ? undefined : ''
  if (step === '[*]') {
    const items: unknown[] = Array.isArray(value) ? value : []
    return firstOf(items.entries(), rest, (index) => `[${index}]`)
  }
  if (!isJsonObject(value)) return undefined
  if (step === '{*}') return firstOf(Object.entries(value), rest, (key) => `[${key}]`)
  const found = find(value[step], rest)
  return found === undefined ? undefined : `.${step}${found}`
}

function firstOf<K>(
  entries: Iterable<[K, unknown]>,
  rest: readonly string[],
  textOf: (key: K) => string,
): string | undefined {
  for (const [key, one] of entries) {
    const found = find(one, rest)
    if (found !== undefined) return `${textOf(key)}${found}`
  }
  return undefined
}
