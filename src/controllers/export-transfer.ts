// The transfer of an APIExport to another owner. The new export takes over identity and revisions; the former one is
// deleted once all bindings have followed, so that at each moment a binding finds its definitions.
import { tolerate } from '#apimachinery/status/index.ts'
import type { KubeClient } from '#client/index.ts'
import { apiExports, identityHashOf, identityOf, type APIExport, type APIExportStatus } from '#crds/index.ts'
import type { SharedApis } from '#reconcile/object-graph/index.ts'
import { copyRevisions, removeRevisions } from './export-revisions.ts'
import type { ControllerContext } from './framework.ts'
import { condition, type SharingUpdate } from './sharing-conditions.ts'

export interface TransferWork {
  readonly cluster: string
  readonly client: KubeClient
  readonly sharing: SharedApis
  readonly signal: AbortSignal
  readonly context: Pick<ControllerContext, 'clientOf'>
}

interface Outcome {
  /** The status with which the export goes on; undefined: as it is. */
  readonly status?: APIExportStatus
  readonly conditions: readonly SharingUpdate[]
  /** True: another export has the identity, so this one does nothing any more. */
  readonly isOver?: true
}

const type = 'Transferred'
const withoutTransfer: Outcome = { conditions: [] }

/** Does the next step of a transfer, of either side. */
export async function transferExport(found: APIExport, work: TransferWork): Promise<Outcome> {
  const { sharing, cluster } = work
  const { transfer } = found.spec ?? {}
  const current = sharing.exportByUid(identityOf(found))
  const isMoved = current !== undefined && (current.cluster !== cluster || current.name !== found.metadata.name)
  if (isMoved) {
    const to = sharing.nameOf(current.cluster) ?? ''
    const message = `APIExport "${current.name}" of logical cluster "${to}" has taken over. This one goes when all bindings have followed.`
    return { conditions: [condition(type, { reason: 'TakenOver', message, severity: 'Info' })], isOver: true }
  }
  if (found.status?.origin !== undefined) return finish(found, work)
  if (transfer?.from !== undefined) return takeOver(found, transfer.from, work)
  return offer(found, work)
}

/** Keeps which logical cluster the owner means, because names are used again. */
function offer({ spec, status }: APIExport, { sharing }: TransferWork): Outcome {
  const to = spec?.transfer?.to
  const { offeredTo, ...others } = status ?? {}
  if (to === undefined) return offeredTo === undefined ? withoutTransfer : { status: others, conditions: [] }
  if (offeredTo?.name === to) return withoutTransfer
  const id = sharing.idOf(to)
  if (id !== undefined) return { status: { ...others, offeredTo: { name: to, id } }, conditions: [] }
  const message = `There is no logical cluster "${to}".`
  return { status: others, conditions: [condition(type, { reason: 'RecipientNotFound', message })] }
}

async function takeOver(
  found: APIExport,
  from: { readonly path: string; readonly name: string },
  work: TransferWork,
): Promise<Outcome> {
  const { sharing, cluster, context, client, signal } = work
  const refuse = (reason: string, message: string): Outcome => ({
    conditions: [condition(type, { reason, message })],
  })
  const source = sharing.exportOf({ cluster, path: from.path, exportName: from.name })
  const there = source && context.clientOf(source.cluster)
  const former = there && (await there.tryGet<APIExport>(apiExports, { name: from.name }, { signal }))
  // An export that does not exist and an export that is not offered look alike.
  if (source === undefined || former?.status?.offeredTo?.id !== cluster || former.spec?.transfer?.to === undefined)
    return refuse(
      'NotOffered',
      `APIExport "${from.name}" of logical cluster "${from.path}" is not offered: its owner names this logical cluster in spec.transfer.to.`,
    )
  const own = [...sharing.bindingsOf(identityOf(found))]
  if (own.length > 0)
    return refuse('HasConsumers', `The export has ${own.length} consumers of its own: it cannot take over another one.`)
  await copyRevisions(source.uid, there as KubeClient, client, signal)
  const origin = {
    uid: source.uid,
    transfers: source.transfers + 1,
    from: { cluster: source.cluster, name: from.name },
  }
  const { revision, rollout } = former.status
  return {
    status: {
      ...found.status,
      origin,
      identityHash: identityHashOf(source.uid),
      ...(revision !== undefined && { revision }),
      ...(rollout !== undefined && { rollout }),
    },
    conditions: [condition(type)],
  }
}

/** Deletes the former export and its revisions once all bindings find theirs here. */
async function finish({ status }: APIExport, work: TransferWork): Promise<Outcome> {
  const { sharing, cluster, context, signal } = work
  const { origin, ...others } = status ?? {}
  if (origin?.from === undefined) return withoutTransfer
  const name = sharing.nameOf(cluster)
  for (const { providerName } of sharing.bindingsOf(origin.uid)) if (providerName !== name) return withoutTransfer
  const { from, ...rest } = origin
  const there = context.clientOf(from.cluster)
  if (there !== undefined) {
    const former = await there.tryGet<APIExport>(apiExports, { name: from.name }, { signal })
    if (former !== undefined && identityOf(former) === origin.uid)
      await there.delete(apiExports, { name: from.name }, { signal }).catch(tolerate('NotFound'))
    // A transfer within one logical cluster gives the export another name.
    if (from.cluster !== cluster) await removeRevisions(origin.uid, there, signal)
  }
  return { status: { ...others, origin: rest }, conditions: [condition(type)] }
}
