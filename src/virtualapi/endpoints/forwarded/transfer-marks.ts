// The marks that a move to another installation leaves in a logical cluster. They are stored with its objects, so they
// are durable and in order with its writes, and whichever process serves the logical cluster knows them.
import { randomUUID } from 'node:crypto'
import { conflict } from '#apimachinery/status/index.ts'
import type { ClusterObjects, MarkName } from '#store/watch-cache/index.ts'
import { decodeObject, encodeObject } from '#virtualapi/kinds/resources/object-bytes.ts'
import type { LogicalCluster } from '#virtualapi/request/logical-cluster.ts'

/** The mark `frozen`: the logical cluster takes no writes. */
export interface FrozenMark {
  readonly id: string
  /** The run of the command that has closed it: no other one knows that all of it has gone over. */
  readonly run: string
  /** RFC 3339: until then, unless the move is committed. */
  readonly until: string
  /** True: it has moved. */
  readonly committed?: true
  /** Revisions at the target continue above this one. */
  readonly above?: number
}

/** The mark `frozen`; undefined: it takes writes. */
export function frozenMark(objects: ClusterObjects): FrozenMark | undefined {
  return specOf(objects, 'frozen') as FrozenMark | undefined
}

/** A mark of the target; undefined if there is none. */
export function markOf(
  objects: ClusterObjects,
  name: Exclude<MarkName, 'frozen'>,
): { readonly id: string; readonly run?: string } | undefined {
  return specOf(objects, name) as { id: string; run?: string } | undefined
}

function specOf(objects: ClusterObjects, name: MarkName): unknown {
  const entry = objects.mark(name)
  return entry === undefined ? undefined : decodeObject(entry.bytes)['spec']
}

/** The bytes of a mark. It has the layout of an object, because everything that is stored has it. */
export function markValue(name: MarkName, spec: object): Uint8Array {
  return encodeObject({ apiVersion: 'kcp.dev/v1', kind: 'Mark', metadata: { name, uid: randomUUID() }, spec })
}

/** Lets a logical cluster take writes again, unless it has moved. Rejects RevisionMismatch if it moves right now. */
export async function thaw(objects: ClusterObjects, signal: AbortSignal): Promise<void> {
  const entry = objects.mark('frozen')
  if (entry === undefined || frozenMark(objects)?.committed === true) return
  await objects.removeMark('frozen', { ifRevision: entry.revision, signal })
}

/** Throws 409 at a target whose objects come from another run of the command, or do not come any more. */
export function requireReceiving({ name }: LogicalCluster, objects: ClusterObjects, run: string): void {
  if (markOf(objects, 'receiving')?.run === run && objects.mark('resumed') === undefined) return
  const message = 'it does not take objects from this run of kcp transfer: another run goes on, or it is open'
  throw conflict({ group: 'kcp.dev', resource: 'logicalclusters' }, name, message)
}
