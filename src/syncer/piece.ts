// What this member says of an object, written beside what the others say; and the status that follows from all of it.
import { timestamp } from '../async/index.ts'
import type { KubeObject } from '../apimachinery/meta/index.ts'
import { isStatusError, tolerate } from '../apimachinery/status/index.ts'
import type { DeepReadonly } from '../client/index.ts'
import {
  canonicalJson,
  contentHash,
  parseAnnotation,
  pieceAnnotation,
  piecesOf,
  placedOn,
  type DeploymentPiece,
  type PieceCondition,
} from '../crds/index.ts'
import { mergeDeploymentStatus } from './merge-status.ts'
import { gvrs, type ResourceName } from './synced-kinds.ts'
import { downstreamObject, downstreamSpace, upstreamObject, type SyncContext, type Visit } from './sync-context.ts'
import { sourceAnnotation } from './transform/down.ts'

type Where = Pick<Visit, 'cluster' | 'namespace' | 'name'>

/** The annotations of a merge patch that takes the member's piece away. */
export function clearPiece(member: string): Record<string, null> {
  return { [pieceAnnotation(member)]: null }
}

/** Writes the member's piece where it changed; undefined takes it away. Returns the object as it is then. */
export async function writePiece(
  context: SyncContext,
  resource: ResourceName,
  where: Where,
  piece: object | undefined,
  signal: AbortSignal,
): Promise<DeepReadonly<KubeObject> | undefined> {
  const object = upstreamObject(context, resource, where)
  if (object === undefined) return undefined
  const annotation = pieceAnnotation(context.member.name)
  const text = piece === undefined ? null : canonicalJson(piece)
  if ((object.metadata.annotations?.[annotation] ?? null) === text) return object
  const { cluster, namespace, name } = where
  const metadata = { annotations: { [annotation]: text } }
  return await context.upstream
    .client(cluster)
    .patch(gvrs[resource], { namespace, name }, 'merge', { metadata }, { signal })
}

/** Says upstream, in the member's own words, why an object can't be synced. What the server could not answer is retried. */
export async function reportError(
  context: SyncContext,
  resource: ResourceName,
  where: Where,
  error: unknown,
  signal: AbortSignal,
): Promise<void> {
  if (!isStatusError(error) || error.code >= 500 || error.code === 429 || signal.aborted) return
  const object = upstreamObject(context, resource, where)
  if (object === undefined) return
  const before = parseAnnotation(object as KubeObject, pieceAnnotation(context.member.name))
  try {
    const written = await writePiece(context, resource, where, { ...before, error: error.message }, signal)
    if (resource === 'deployments' && written !== undefined) await writeStatus(context, where, written, signal)
  } catch (failure) {
    context.log.debug('could not report a sync error', { ...where, error: failure })
  }
}

/** What could not be synced once and can be now, or need not be, says so no more. Others' pieces are written anew anyway. */
export async function clearError(
  context: SyncContext,
  resource: ResourceName,
  where: Where,
  signal: AbortSignal,
): Promise<void> {
  if (resource === 'deployments' || resource === 'services') return
  const object = upstreamObject(context, resource, where)
  if (object?.metadata.annotations?.[pieceAnnotation(context.member.name)] === undefined) return
  await writePiece(context, resource, where, undefined, signal).catch(tolerate('NotFound'))
}

interface DeploymentStatus extends DeploymentPiece {
  observedGeneration?: number
  conditions?: PieceCondition[]
}

/** A Deployment's status: this member's piece, then the merge of all pieces. */
export async function visitDeploymentStatus(context: SyncContext, where: Where, signal: AbortSignal): Promise<void> {
  const namespace = downstreamSpace(context, where)
  const object = upstreamObject(context, 'deployments', where)
  if (namespace === undefined || object === undefined) return
  const copy = downstreamObject(context, 'deployments', namespace, where.name)
  const before = parseAnnotation(object as KubeObject, pieceAnnotation(context.member.name)) as DeploymentPiece
  const written =
    copy === undefined ? object : await writePiece(context, 'deployments', where, pieceOf(copy, before), signal)
  if (written !== undefined) await writeStatus(context, where, written, signal)
}

function pieceOf(copy: DeepReadonly<KubeObject>, before: DeploymentPiece): DeploymentPiece {
  const status = (copy['status'] ?? {}) as DeploymentStatus
  const caughtUp = (status.observedGeneration ?? 0) >= (copy.metadata.generation ?? 0)
  const observed = caughtUp ? copy.metadata.annotations?.[sourceAnnotation] : before.observed
  const { replicas, updatedReplicas, readyReplicas, availableReplicas, unavailableReplicas, conditions } = status
  return {
    ...(observed !== undefined && { observed }),
    ...(replicas && { replicas }),
    ...(updatedReplicas && { updatedReplicas }),
    ...(readyReplicas && { readyReplicas }),
    ...(availableReplicas && { availableReplicas }),
    ...(unavailableReplicas && { unavailableReplicas }),
    ...(conditions && { conditions }),
  }
}

async function writeStatus(
  context: SyncContext,
  { cluster, namespace, name }: Where,
  object: DeepReadonly<KubeObject>,
  signal: AbortSignal,
): Promise<void> {
  const previous = (object['status'] ?? {}) as Record<string, unknown>
  const states = Object.fromEntries(
    Object.entries(placedOn(object as KubeObject)).map(([member, { state }]) => [member, state]),
  )
  const status = mergeDeploymentStatus({
    generation: object.metadata.generation ?? 0,
    spec: contentHash(object['spec']),
    previous,
    pieces: piecesOf<DeploymentPiece>(object as KubeObject),
    states,
    now: timestamp(context.clock.now()),
  })
  if (canonicalJson(status) === canonicalJson(previous)) return
  const cleared = Object.fromEntries(
    Object.keys(previous)
      .filter((field) => !(field in status))
      .map((field) => [field, null]),
  )
  const patch = { metadata: { resourceVersion: object.metadata.resourceVersion }, status: { ...cleared, ...status } }
  await context.upstream
    .client(cluster)
    .patch(gvrs.deployments, { namespace, name }, 'merge', patch, { subresource: 'status', signal })
}
