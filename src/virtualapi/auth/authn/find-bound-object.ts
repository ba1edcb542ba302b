// Looks up the objects that tokens are bound to, in the hub's current state.
import { Buffer } from 'node:buffer'
import type { Hub } from '#store/hub/index.ts'
import type { FindBoundObject } from './index.ts'
import { decodeMetadata } from '#virtualapi/kinds/resources/object-bytes.ts'

/** Returns a function that finds the object that a token is bound to. It decodes an object only if that may be terminating. */
export function findBoundObject(hub: Hub): FindBoundObject {
  return async (cluster, { resource, namespace, name }, signal) => {
    const objects = await hub.cluster(cluster, { signal })
    const entry = objects.get(resource, namespace, name)
    if (entry === undefined) return undefined
    const { uid } = entry.facts
    if (!Buffer.from(entry.bytes.buffer, entry.bytes.byteOffset, entry.bytes.length).includes('"deletionTimestamp"'))
      return { uid }
    const { deletionTimestamp } = decodeMetadata(entry.bytes)
    return deletionTimestamp === undefined ? { uid } : { uid, deletedMs: Date.parse(deletionTimestamp) }
  }
}
