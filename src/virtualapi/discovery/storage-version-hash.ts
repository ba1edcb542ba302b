// The hash by which clients notice that a resource is stored in another version (storageVersionHash in discovery).
import { createHash } from 'node:crypto'
import type { GroupVersionKind } from '../../apimachinery/meta/index.ts'

/** The storageVersionHash of a resource that is stored as this kind, as upstream computes it. */
export function storageVersionHash({ group, version, kind }: GroupVersionKind): string {
  return createHash('sha256').update(`${group}/${version}/${kind}`).digest().subarray(0, 8).toString('base64')
}
