// The bucket of a logical cluster, one of 256.
import { hash } from 'node:crypto'
import type { ClusterId } from '#apimachinery/meta/index.ts'

/** 0 to 255, by a hash of the id. */
export function bucketNumberOf(cluster: ClusterId): number {
  return Number.parseInt(hash('sha256', cluster).slice(0, 2), 16)
}
