// A merge patch that makes one JSON object exactly another: a plain merge would keep fields that the other does not
// have.
import { isJsonObject } from '#apimachinery/meta/index.ts'

/** The merge patch from `was` to `is`. Lists are replaced as a whole. */
export function replacingPatch(
  was: Readonly<Record<string, unknown>>,
  is: Readonly<Record<string, unknown>>,
): Record<string, unknown> {
  const patch: Record<string, unknown> = {}
  for (const field of Object.keys(was)) if (!(field in is)) patch[field] = null
  for (const [field, value] of Object.entries(is)) {
    const before = was[field]
    patch[field] = isJsonObject(value) && isJsonObject(before) ? replacingPatch(before, value) : value
  }
  return patch
}
