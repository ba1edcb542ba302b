// A check for writes that change only the times of managers, which need not be stored.
import { jsonEqual } from '#apimachinery/json/index.ts'
import type { ManagedFieldsEntry } from '#apimachinery/meta/index.ts'

/** True if the entries of an object differ at most in their times. */
export function sameBesidesTimes(
  old: readonly ManagedFieldsEntry[] | undefined,
  next: readonly ManagedFieldsEntry[] | undefined,
): boolean {
  if (old === undefined || next === undefined || old.length !== next.length || next.length === 0) return false
  return next.every((entry, i) => {
    const { time: _, ...is } = entry
    const { time: __, ...was } = old[i] ?? {}
    return jsonEqual(is, was)
  })
}
