// APIExportRevisions: the kept definitions of exports. A revision has a finalizer while another logical cluster uses
// it, so that the logical cluster of the export is not deleted meanwhile.
import { isDeepStrictEqual } from 'node:util'
import { isStatusError, tolerate } from '#apimachinery/status/index.ts'
import type { KubeClient } from '#client/index.ts'
import { apiExportRevisions, revisionFinalizer, revisionName, type APIExportRevision } from '#crds/index.ts'
import type { SharedApis } from '#reconcile/object-graph/index.ts'

const fieldManager = 'kcp-api-exports'

export type Definition = APIExportRevision['spec']['definitions'][number]

interface Revision {
  readonly name: string
  readonly uid: string
  readonly revision: number
}

/** Whether the kept revision has these definitions. */
export async function isUnchanged(
  client: KubeClient,
  { uid, revision }: Revision,
  definitions: readonly Definition[],
  signal: AbortSignal,
): Promise<boolean> {
  const name = revisionName(uid, revision)
  const kept = await client.tryGet<APIExportRevision>(apiExportRevisions, { name }, { signal })
  return kept !== undefined && isDeepStrictEqual(kept.spec.definitions, definitions)
}

/** Keeps a revision. Resolves with the reason if the server refuses it, because it is too large for example. */
export async function keepRevision(
  client: KubeClient,
  { name, uid, revision }: Revision,
  definitions: readonly Definition[],
  signal: AbortSignal,
): Promise<string | undefined> {
  const spec = { export: { name, uid }, revision, definitions: [...definitions] }
  // The revision is stored already if a process stopped before the status named it. Then no consumer has it.
  const former = await client.tryGet<APIExportRevision>(
    apiExportRevisions,
    { name: revisionName(uid, revision) },
    { signal },
  )
  if (former !== undefined) await removeRevision(client, former, signal)
  try {
    await client.create(apiExportRevisions, revisionObject(spec), { fieldManager, signal })
    return undefined
  } catch (error) {
    if (!isStatusError(error) || error.code < 400 || error.code >= 500 || error.code === 409) throw error
    return `the definitions cannot be kept: ${error.message}`
  }
}

function revisionObject(spec: APIExportRevision['spec']): APIExportRevision {
  const metadata = { name: revisionName(spec.export.uid, spec.revision) }
  return { apiVersion: 'apis.kcp.io/v1alpha1', kind: 'APIExportRevision', metadata, spec }
}

/** Copies the revisions of an export to another logical cluster. */
export async function copyRevisions(uid: string, from: KubeClient, to: KubeClient, signal: AbortSignal): Promise<void> {
  const { items } = await from.list<APIExportRevision>(apiExportRevisions, { signal })
  for (const { spec } of items)
    if (spec.export.uid === uid)
      await to
        .create(apiExportRevisions, revisionObject(spec), { fieldManager, signal })
        .catch(tolerate('AlreadyExists'))
}

/** Deletes all revisions of an export in a logical cluster. */
export async function removeRevisions(uid: string, client: KubeClient, signal: AbortSignal): Promise<void> {
  const { items } = await client.list<APIExportRevision>(apiExportRevisions, { signal })
  for (const revision of items) if (revision.spec.export.uid === uid) await removeRevision(client, revision, signal)
}

async function removeRevision(client: KubeClient, revision: APIExportRevision, signal: AbortSignal): Promise<void> {
  await mark(client, revision, { isUsed: false }, signal)
  const { name = '' } = revision.metadata
  await client.delete(apiExportRevisions, { name }, { signal }).catch(tolerate('NotFound'))
}

/** Adds or removes the finalizer. */
async function mark(
  client: KubeClient,
  revision: APIExportRevision,
  { isUsed }: { readonly isUsed: boolean },
  signal: AbortSignal,
): Promise<void> {
  const { metadata } = revision
  const { finalizers = [], deletionTimestamp } = metadata
  if (finalizers.includes(revisionFinalizer) === isUsed || (isUsed && deletionTimestamp !== undefined)) return
  const marked = { ...metadata, finalizers: isUsed ? [revisionFinalizer] : [] }
  await client
    .update(apiExportRevisions, { ...revision, metadata: marked }, { fieldManager, signal })
    .catch(tolerate('NotFound'))
}

interface Place {
  readonly client: KubeClient
  readonly cluster: string
  readonly sharing: SharedApis
  readonly signal: AbortSignal
}

/**
 * Deletes revisions that no consumer has, apart from the newest one of each export, and marks those that other logical
 * clusters have. `newest`: the newest revision of one export, which `sharing` may not know yet.
 */
export async function dropRevisions(
  { client, cluster, sharing, signal }: Place,
  newest: { readonly uid: string; readonly revision: number } | undefined,
): Promise<void> {
  const { items } = await client.list<APIExportRevision>(apiExportRevisions, { signal })
  const here = sharing.nameOf(cluster)
  for (const revision of items) {
    const { uid } = revision.spec.export
    const number = revision.spec.revision
    const facts = sharing.exportByUid(uid)
    const isOwner = facts?.cluster === cluster
    const current = uid === newest?.uid ? newest.revision : isOwner ? facts.revision : -1
    const users = [...sharing.bindingsOf(uid)].filter(
      (binding) => binding.revision === number && (isOwner || binding.providerName === here),
    )
    // A revision above the current one was just kept, and the status does not name it yet.
    const isKept = number === current || (current >= 0 && number > current) || users.length > 0
    if (!isKept) await removeRevision(client, revision, signal)
    else await mark(client, revision, { isUsed: users.some((user) => user.cluster !== cluster) }, signal)
  }
}
