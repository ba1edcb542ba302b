// The hash by which clients notice that a resource is stored in another version.
import { createHash } from 'node:crypto'
import type { GroupVersionKind } from '../../apimachinery/meta/index.ts'

/** storageVersionHash of a resource that is stored as this kind. */
export function storageVersionHash({ group, version, kind }: GroupVersionKind): string {
  return createHash('sha256').update(`${group}/${version}/${kind}`).digest().subarray(0, 8).toString('base64')
}
