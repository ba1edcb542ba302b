// A Record of the store's own, from which a later process learns of deletions before it started: so watches from before a
// restart go on. Between the time it was saved and the start, the host still has the deletions themselves.
import { parseJsonText } from '#apimachinery/json/index.ts'
import type { Revision } from '#apimachinery/meta/index.ts'
import { isStatusError } from '#apimachinery/status/index.ts'
import type { KubeClient } from '#client/index.ts'
import { records as recordsGvr, type StorageRecord } from '#crds/index.ts'
import type { DeletionSummary } from './deletion-log.ts'

/** Unlike the name of any object's Record, which is a hash. */
const savedName = 'deletions'
/** The host sends a bookmark two seconds before it ends a watch. */
const replaySeconds = 4

/** Where it is: in one of the buckets. */
interface SavedDeletionsOptions {
  readonly client: KubeClient
  readonly namespace: string
}

/** True for the Record of this file, which holds no object. */
export function isSavedDeletions({ metadata }: StorageRecord): boolean {
  return metadata.name === savedName
}

/** What was saved; undefined if it was edited by hand. */
export function readSavedDeletions({ data }: StorageRecord): DeletionSummary | undefined {
  try {
    const { revision, floor, last } = parseJsonText(data) as Partial<DeletionSummary>
    if (!(Number(revision) >= Number(floor)) || typeof last !== 'object') return undefined
    return { revision: Number(revision), floor: Number(floor), last }
  } catch {
    return undefined
  }
}

/** Replaces what was saved. Whoever is late saves something older, which is true all the same. */
export async function saveDeletions(
  summary: DeletionSummary,
  { client, namespace }: SavedDeletionsOptions,
  { timeoutMs, signal }: { readonly timeoutMs: number; readonly signal: AbortSignal },
): Promise<void> {
  const data = JSON.stringify(summary)
  const ends = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)])
  const place = { namespace, name: savedName }
  try {
    await client.patch(recordsGvr, place, 'merge', { data }, { signal: ends })
  } catch (error) {
    if (!isStatusError(error, 'NotFound')) throw error
    const record: StorageRecord = {
      apiVersion: 'storage.kcp.dev/v1',
      kind: 'Record',
      metadata: place,
      ...{ cluster: '', resource: '', name: savedName, data },
    }
    await client.create(recordsGvr, record, { signal: ends })
  }
}

/** The Records deleted in (since, until], in their last state; undefined if the host does not know all of them any more. */
export async function deletedRecords(
  client: KubeClient,
  { since, until, signal }: { readonly since: number; readonly until: Revision; readonly signal: AbortSignal },
): Promise<readonly StorageRecord[] | undefined> {
  const deleted: StorageRecord[] = []
  if (since >= until) return deleted
  const options = { resourceVersion: String(since), timeoutSeconds: replaySeconds, signal }
  for await (const { type, object } of client.watch<StorageRecord>(recordsGvr, options)) {
    const revision = Number(object.metadata.resourceVersion)
    if (type === 'DELETED' && revision <= until) deleted.push(object)
    if (revision >= until) return deleted
  }
  return undefined
}
