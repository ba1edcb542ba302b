import { sortedMembers } from '#apimachinery/meta/index.ts'

/** JSON with sorted keys: equal data gives equal text. */
export function canonicalJson(value: unknown): string {
  return JSON.stringify(value, sortedMembers)
}
