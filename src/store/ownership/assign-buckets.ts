// The preferred owner of each bucket: rendezvous hashing with bounded loads. Every replica computes the same from the
// names of the live replicas, so no replica has to ask another one.
import { createHash } from 'node:crypto'

/** Buckets of logical clusters; the host store keeps each in a namespace of its own. */
export const bucketCount = 256
/**
 * Maximum share of a replica, as a multiple of an equal share: plain rendezvous hashing spreads 256 buckets too
 * unevenly.
 */
const slack = 1.05

/**
 * The name of the replica for each bucket; empty without replicas. Depends only on the set of names. The pair of
 * replica and bucket with the highest hash is assigned first, unless the replica is full: so a replica that joins or
 * leaves moves little else than its own buckets.
 */
export function assignBuckets(replicas: Iterable<string>): readonly string[] {
  const names = [...new Set(replicas)].sort()
  const most = Math.ceil((bucketCount / names.length) * (names.length === 1 ? 1 : slack))
  const pairs = names.flatMap((name) =>
    Array.from({ length: bucketCount }, (_, bucket) => ({ name, bucket, score: scoreOf(name, bucket) })),
  )
  pairs.sort((a, b) => b.score - a.score || (a.name < b.name ? -1 : 1))
  const owners: string[] = []
  const counts = new Map<string, number>()
  for (const { name, bucket } of pairs) {
    const count = counts.get(name) ?? 0
    if (owners[bucket] !== undefined || count >= most) continue
    owners[bucket] = name
    counts.set(name, count + 1)
  }
  return owners
}

function scoreOf(name: string, bucket: number): number {
  return createHash('sha256').update(`${name}/${bucket}`).digest().readUIntBE(0, 6)
}

export type BucketSet = ReadonlySet<number>

/** The set as a bitmap of 64 hex digits, which begins with bucket 0. */
export function bucketsToText(buckets: BucketSet): string {
  const bytes = Buffer.alloc(bucketCount / 8)
  for (const bucket of buckets) bytes[bucket >> 3] = (bytes[bucket >> 3] ?? 0) | (0x80 >> (bucket & 7))
  return bytes.toString('hex')
}

/**
 * The set in such a bitmap; all buckets if the text is damaged, because readers must then assume that all are taken.
 */
export function bucketsFromText(text: string): BucketSet {
  const isWhole = new RegExp(`^[0-9a-f]{${bucketCount / 4}}$`).test(text)
  const bytes = isWhole ? Buffer.from(text, 'hex') : Buffer.alloc(bucketCount / 8, 0xff)
  const buckets = new Set<number>()
  for (let bucket = 0; bucket < bucketCount; bucket++)
    if (((bytes[bucket >> 3] ?? 0) & (0x80 >> (bucket & 7))) !== 0) buckets.add(bucket)
  return buckets
}
