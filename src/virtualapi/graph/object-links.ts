// What garbage collection needs to see in the bytes of an object, found without decoding it.
import { Buffer } from 'node:buffer'
import type { OwnerReference } from '../../apimachinery/meta/index.ts'
import type { ClusterObjects, Entry } from '../../store/hub/index.ts'
import { asBuffer, decodeMetadata } from '../resources/object-bytes.ts'

export interface Links {
  /** The list as it is written; empty for none. */
  readonly owners: string
  readonly finalizers: string
  readonly deleting: boolean
}

/** Owners, finalizers and deletion of an object. */
export function linksOf(bytes: Uint8Array): Links {
  const buffer = asBuffer(bytes)
  return {
    owners: listText(buffer, ownersStart),
    finalizers: listText(buffer, finalizersStart),
    deleting: buffer.includes(deletionStart),
  }
}

/** Whether garbage collection sees no difference. */
export function sameLinks(a: Links, b: Links): boolean {
  return a.owners === b.owners && a.finalizers === b.finalizers && a.deleting === b.deleting
}

const ownersStart = Buffer.from('"ownerReferences":[')
const finalizersStart = Buffer.from('"finalizers":[')
const deletionStart = Buffer.from('"deletionTimestamp":"')

/** Metadata is written before all else that may have such a list. */
function listText(buffer: Buffer, start: Buffer): string {
  const at = buffer.indexOf(start)
  return at < 0 ? '' : buffer.toString('latin1', at + start.length, buffer.indexOf(0x5d, at))
}

/**
 * The objects of a logical cluster that may have lost their owners while nobody looked, or are being deleted. Those whose
 * owners are all there, which are nearly all, cost a look and no visit.
 */
export function unsettled(objects: ClusterObjects, ignored: ReadonlySet<string>): Entry[] {
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
  const byUid = new Map<string, Entry['key']>()
  for (const [, entries] of objects.written()) {
    // Decoded and not kept: facts would stay in memory for as long as the objects do.
    for (const { key, bytes } of entries) byUid.set(decodeMetadata(bytes).uid ?? '', key)
  }
  const isThere = (entry: Entry, { uid, name }: OwnerReference): boolean => {
    const owner = byUid.get(uid)
    return owner?.name === name && (owner.namespace === '' || owner.namespace === entry.key.namespace)
  }
  for (const entry of owned) {
    const { ownerReferences = [] } = decodeMetadata(entry.bytes)
    if (!ownerReferences.every((reference) => isThere(entry, reference))) found.push(entry)
  }
  return found
}
