// The diff that kube-apiserver shows when an update changes an immutable part of an object.
import { escapeHtml, internalForm } from './internal-form.ts'
import { unifiedDiff } from './line-diff.ts'

const maxLines = 4000

/** Diff of two decoded values, printed as internal structs. Empty for large values, because its cost is quadratic. */
export function internalDiff(struct: string, old: unknown, next: unknown): string {
  if (without(next, without(old, maxLines)) < 0) return ''
  const [before, after] = [linesOf(struct, old), linesOf(struct, next)]
  return before.length + after.length > maxLines ? '' : unifiedDiff(before, after)
}

/**
 * Lines left after printing `value` with at least one line per member. Stops below zero, so large values cost little.
 */
function without(value: unknown, lines: number): number {
  let left = lines - 1
  if (typeof value !== 'object' || value === null) return left
  for (const key in value) {
    if (left < 0) break
    left = without((value as Record<string, unknown>)[key], left)
  }
  return left
}

function linesOf(struct: string, value: unknown): string[] {
  return escapeHtml(JSON.stringify(internalForm(struct, value), null, 1)).split('\n')
}
