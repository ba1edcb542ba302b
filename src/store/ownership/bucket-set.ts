// Sets of buckets as a Lease carries them: 256 bits in hexadecimal, the first bucket in the highest bit of the first digit.
import { bucketCount } from './assign-buckets.ts'

export type BucketSet = ReadonlySet<number>

/** 64 digits. */
export function bucketsToText(buckets: BucketSet): string {
  const bytes = Buffer.alloc(bucketCount / 8)
  for (const bucket of buckets) bytes[bucket >> 3] = (bytes[bucket >> 3] ?? 0) | (0x80 >> (bucket & 7))
  return bytes.toString('hex')
}

/** All buckets if the text is damaged: whoever reads it must then assume that they are taken. */
export function bucketsFromText(text: string): BucketSet {
  const isWhole = new RegExp(`^[0-9a-f]{${bucketCount / 4}}$`).test(text)
  const bytes = isWhole ? Buffer.from(text, 'hex') : Buffer.alloc(bucketCount / 8, 0xff)
  const buckets = new Set<number>()
  for (let bucket = 0; bucket < bucketCount; bucket++)
    if (((bytes[bucket >> 3] ?? 0) & (0x80 >> (bucket & 7))) !== 0) buckets.add(bucket)
  return buckets
}
