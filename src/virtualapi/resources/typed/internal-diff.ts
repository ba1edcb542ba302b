// What a change of an object that may not change looks like, shown as a real server shows it.
import { escapeHtml, internalForm } from './internal-form.ts'
import { unifiedDiff } from './line-diff.ts'

const maxLines = 4000

/** The lines in which two decoded values differ, as internal structs. Empty for large ones: to compare costs its square. */
export function internalDiff(struct: string, old: unknown, next: unknown): string {
  if (without(next, without(old, maxLines)) < 0) return ''
  const [before, after] = [linesOf(struct, old), linesOf(struct, next)]
  return before.length + after.length > maxLines ? '' : unifiedDiff(before, after)
}

/** What is left of so many lines at best when a value takes one for each of its members; it stops below zero. */
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
