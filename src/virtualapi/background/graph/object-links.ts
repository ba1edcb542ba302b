// Finds the parts of an object that garbage collection needs in its bytes, without decoding the object.
import { Buffer } from 'node:buffer'
import type { OwnerReference } from '#apimachinery/meta/index.ts'
import type { ClusterObjects, Entry } from '#store/watch-cache/index.ts'
import { asBuffer, decodeMetadata, kindOf } from '#virtualapi/kinds/resources/object-bytes.ts'

export interface Links {
  /** The JSON of ownerReferences without brackets; empty if there are none. */
  readonly owners: string
  readonly finalizers: string
  readonly deleting: boolean
}

/** Owners, finalizers and deletion state of an object. */
export function linksOf(bytes: Uint8Array): Links {
  const buffer = asBuffer(bytes)
  return {
    owners: listText(buffer, ownersStart),
    finalizers: listText(buffer, finalizersStart),
    deleting: buffer.includes(deletionStart),
  }
}

/** True if two objects do not differ in any part that garbage collection reads. */
export function sameLinks(a: Links, b: Links): boolean {
  return a.owners === b.owners && a.finalizers === b.finalizers && a.deleting === b.deleting
}

const ownersStart = Buffer.from('"ownerReferences":[')
const finalizersStart = Buffer.from('"finalizers":[')
const deletionStart = Buffer.from('"deletionTimestamp":"')

/**
 * The text of a list in the metadata, without brackets; empty if there is none. The first list of this name is the one
 * of the metadata, because stored objects begin with the metadata.
 */
function listText(buffer: Buffer, start: Buffer): string {
  const at = buffer.indexOf(start)
  return at < 0 ? '' : buffer.toString('latin1', at + start.length, buffer.indexOf(0x5d, at))
}

/**
 * The objects of a logical cluster that are being deleted, or have an owner that does not exist. The owners of nearly
 * all objects exist; this check saves a reconcile of each such object by the garbage collector.
 */
export function objectsToCollect(objects: ClusterObjects, ignored: ReadonlySet<string>): Entry[] {
  const found: Entry[] = []
  const owned: Entry[] = []
  for (const [resource, entries] of objects.written()) {
    if (ignored.has(resource)) continue
    for (const entry of entries) {
      const { owners, deleting } = linksOf(entry.bytes)
      if (deleting) found.push(entry)
      else if (owners !== '') owned.push(entry)
    }
  }
  if (owned.length === 0) return found
  const byUid = new Map<string, { key: Entry['key']; kind: string }>()
  for (const [, entries] of objects.written()) {
    // The metadata are decoded here, because `facts` would stay in memory as long as the objects.
    for (const { key, bytes } of entries) byUid.set(decodeMetadata(bytes).uid ?? '', { key, kind: kindOf(bytes) })
  }
  const isThere = (entry: Entry, { uid, kind, name }: OwnerReference): boolean => {
    const owner = byUid.get(uid)
    if (owner?.kind !== kind || owner.key.name !== name) return false
    return owner.key.namespace === '' || owner.key.namespace === entry.key.namespace
  }
  for (const entry of owned) {
    const { ownerReferences = [] } = decodeMetadata(entry.bytes)
    if (!ownerReferences.every((reference) => isThere(entry, reference))) found.push(entry)
  }
  return found
}
