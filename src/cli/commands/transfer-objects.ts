// The objects of a logical cluster on their way to another installation: what changed since a revision, put exactly as
// it is, and what is gone, deleted.
import { createInterface } from 'node:readline'
import { Readable } from 'node:stream'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { parseJsonText } from '#apimachinery/json/index.ts'
import { yieldEvery } from '#async/index.ts'
import type { KubeClient } from '#client/index.ts'
import {
  inBatches,
  keyOf,
  ownersFirst,
  snapshotPath,
  transferDigestsPath,
  transferObjectsPath,
  type ObjectPlace,
  type ObjectsToPut,
  type TransferDigests,
  type TransferLine,
} from '#snapshot/index.ts'

/** A copy that goes on in rounds. */
export interface Copying {
  /** The API of the logical cluster here and there, as the installation. */
  readonly source: KubeClient
  readonly target: KubeClient
  readonly run: string
  /** Places at the target; undefined before the first round. */
  known: Map<string, ObjectPlace> | undefined
  /** The target has what the source had at this revision. */
  since: number
  readonly signal: AbortSignal
}

/** Objects that cannot go; the message names some and says what to do. */
export class HeldObjects extends Error {
  override readonly name = 'HeldObjects'
}

export interface Round {
  /** All objects of the logical cluster. */
  readonly objects: number
  /** How many were put or deleted. */
  readonly changes: number
  /** Bytes of the objects that were put. */
  readonly bytes: number
}

/** Brings the target to the present state of the source, and notes that. Rejects with HeldObjects, StatusError. */
export async function copyChanges(copying: Copying): Promise<Round> {
  copying.known ??= new Map((await changesOf(copying.target, Number.MAX_SAFE_INTEGER, copying)).places)
  const { revision, changed, places, deleted, objects } = await changesOf(copying.source, copying.since, copying)
  const gone = [...copying.known].filter(([key]) => !places.has(key)).map(([, place]) => place)
  const bytes = await put(await ownersFirst(changed, yieldEvery(5, copying.signal)), [...gone, ...deleted], copying)
  copying.known = places
  copying.since = revision
  return { objects, changes: changed.length + gone.length, bytes }
}

interface Changed {
  readonly place: ObjectPlace
  readonly uid: string
  readonly owners: readonly string[]
  readonly object: KubeObject
  readonly bytes: number
}

interface Changes {
  readonly revision: number
  readonly changed: Changed[]
  readonly places: Map<string, ObjectPlace>
  readonly deleted: readonly ObjectPlace[]
  readonly objects: number
}

async function changesOf(client: KubeClient, since: number, { signal }: Copying): Promise<Changes> {
  const bytes = await client.stream(`${transferObjectsPath}?since=${since}`, { signal })
  const changed: Changed[] = []
  const places = new Map<string, ObjectPlace>()
  let head: { readonly revision: number; readonly deleted: readonly ObjectPlace[] } | undefined
  let objects: number | undefined
  for await (const text of createInterface({
    input: Readable.from(bytes, { objectMode: false }),
    crlfDelay: Infinity,
  })) {
    const line = parseJsonText(text) as unknown as TransferLine
    if ('revision' in line) head = line
    else if ('object' in line) changed.push(changedOf(line, text.length))
    else if ('names' in line) {
      const { resource, namespace, names } = line
      for (const name of names) places.set(keyOf({ resource, namespace, name }), { resource, namespace, name })
    } else {
      ;({ objects } = line)
      requireFree(line.held)
    }
  }
  // An answer that was cut off lacks its last line.
  if (head === undefined || objects !== places.size)
    throw new Error('the objects of the logical cluster did not all arrive')
  return { ...head, changed, places, objects }
}

function changedOf({ resource, object }: { resource: string; object: KubeObject }, bytes: number): Changed {
  const { namespace = '', name = '', uid = '', ownerReferences = [] } = object.metadata
  return { place: { resource, namespace, name }, uid, owners: ownerReferences.map((owner) => owner.uid), object, bytes }
}

function requireFree({ count, some }: Extract<TransferLine, { held: unknown }>['held']): void {
  if (count === 0) return
  const named = some.map(
    ({ resource, namespace, name, why }) => `${resource} ${[namespace, name].filter(Boolean).join('/')} (${why})`,
  )
  const more = count > some.length ? ` and ${count - some.length} more` : ''
  throw new HeldObjects(
    `${count} objects cannot go: ${named.join(', ')}${more}. What runs in members leaves them with kcp move namespace/NAME --to none; APIBindings and APIExports are deleted first`,
  )
}

async function put(
  changed: readonly Changed[],
  deletions: readonly ObjectPlace[],
  { target, run, signal }: Copying,
): Promise<number> {
  const send = async (body: ObjectsToPut): Promise<void> => {
    await target.raw(snapshotPath, { method: 'POST', body: { ...body, validate: 'kind', run }, signal })
  }
  let sum = 0
  for await (const batch of inBatches(changed, ({ place, bytes }) => ({ ...place, bytes }))) {
    await send({ objects: batch.map(({ place: { resource }, object }) => ({ resource, object })) })
    for (const { bytes } of batch) sum += bytes
  }
  if (deletions.length > 0) await send({ deletions })
  return sum
}

/** The resources whose objects are not the same at both ends. */
export async function differingResources({ source, target, signal }: Copying): Promise<string[]> {
  const [here, there] = await Promise.all(
    [source, target].map(async (client) => (await client.raw(transferDigestsPath, { signal })) as TransferDigests),
  )
  const names = new Set([...Object.keys(here?.resources ?? {}), ...Object.keys(there?.resources ?? {})])
  return [...names].filter((name) => {
    const [a, b] = [here?.resources[name], there?.resources[name]]
    return a?.objects !== b?.objects || a?.sha256 !== b?.sha256
  })
}
