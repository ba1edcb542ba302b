// Reads and writes that the main thread does for the worker, in the logical cluster of an offloaded request.
import type { ClusterObjects, Entry } from '#store/watch-cache/index.ts'
import { isStoreError } from '#store/index.ts'
import { allocationFor } from '#virtualapi/kinds/index.ts'
import { ledgerFor } from '#virtualapi/write/quota/index.ts'
import {
  owned,
  type DefinitionRead,
  type FleetRead,
  type Read,
  type ReadResult,
  type ToldEntry,
  type Write,
  type WriteResult,
} from './protocol.ts'
import { keyText } from './remote-objects.ts'

type ObjectRead = Exclude<Read, FleetRead | DefinitionRead>

const lives = new WeakMap<ClusterObjects, number>()
let lastLife = 0

/** Reads from memory; `objects` is undefined if the request has ended. Never throws. */
export function readFor(objects: ClusterObjects | undefined, read: ObjectRead): ReadResult {
  if (objects === undefined) return { is: 'failure', code: undefined, message: 'nobody waits for it' }
  try {
    return { is: 'answer', answer: answerTo(objects, read) }
  } catch (error) {
    const code = isStoreError(error) ? error.code : undefined
    return { is: 'failure', code, message: error instanceof Error ? error.message : String(error) }
  }
}

function answerTo(objects: ClusterObjects, read: ObjectRead): unknown {
  switch (read.do) {
    case 'get': {
      const entry = objects.get(read.resource, read.namespace, read.name)
      return entry && told(entry, read.known)
    }
    case 'list':
      return objects.list(read).map((entry) => told(entry, read.known.get(keyText(entry.key)) ?? -1))
    case 'revision':
      return objects.revision()
    case 'changes':
      return objects.changes(read.resource)
    case 'changedNames':
      return objects.changedNames(read.resource, read.since)?.map(({ namespace, name }) => ({ namespace, name }))
    case 'life':
      return lifeOf(objects)
    case 'charge':
      return ledgerFor(objects).charge(read.charge)
    case 'release':
      ledgerFor(objects).release(read.namespace, read.held)
      return undefined
    case 'allocate': {
      const allocation = allocationFor(objects, read.request)
      switch (read.method) {
        case 'nextIp':
          return allocation.nextIp()
        case 'nextPort':
          return allocation.nextPort()
        case 'takeIp':
          return allocation.takeIp(String(read.value))
        case 'takePort':
          return allocation.takePort(Number(read.value))
      }
    }
  }
}

function lifeOf(objects: ClusterObjects): number {
  const life = lives.get(objects) ?? ++lastLife
  lives.set(objects, life)
  return life
}

function told({ key, revision, createRevision, base, bytes }: Entry, known: number): ToldEntry {
  const { namespace, name } = key
  // A copy, because the bytes may be a view of a shared buffer.
  return {
    namespace,
    name,
    revision,
    createRevision,
    base,
    bytes: known === revision ? undefined : owned(bytes),
  }
}

/** Writes to the watch cache; `objects` is undefined if the request has ended. Never rejects. */
export async function writeFor(
  objects: ClusterObjects | undefined,
  what: Write,
  signal: AbortSignal | undefined,
): Promise<WriteResult> {
  if (objects === undefined || signal === undefined) return { is: 'failure', message: 'nobody waits for it' }
  try {
    const { key } = what
    if (what.do === 'delete') {
      const { revision, createRevision, bytes } = await objects.delete(key, { signal, ifRevision: what.ifRevision })
      return { is: 'written', revision, createRevision, bytes: owned(bytes) }
    }
    const { revision, createRevision } =
      what.do === 'create'
        ? await objects.create(key, what.value, { signal })
        : await objects.update(key, what.value, { signal, ifRevision: what.ifRevision })
    return { is: 'written', revision, createRevision }
  } catch (error) {
    if (isStoreError(error)) return { is: 'store error', code: error.code, message: error.message }
    return { is: 'failure', message: error instanceof Error ? error.message : String(error) }
  }
}
