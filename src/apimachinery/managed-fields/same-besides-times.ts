// A write that changes nothing but the time at which its manager wrote is no write.
import { jsonEqual } from '#apimachinery/json/index.ts'
import type { ManagedFieldsEntry } from '#apimachinery/meta/index.ts'

/** True if entries of an object differ in their times at most. */
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
