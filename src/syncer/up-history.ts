// The ReplicaSets of a Deployment, upstream: one per template, whatever number of members have theirs of it. Revisions
// are counted here, so that a rollout's history outlives the member it happened in.
import type { KubeObject } from '../apimachinery/meta/index.ts'
import { tolerate } from '../apimachinery/status/index.ts'
import type { DeepReadonly } from '../client/index.ts'
import { canonicalJson, contentHash, pieceAnnotation, piecesOf } from '../crds/index.ts'
import { gvrs } from './synced-kinds.ts'
import { downstreamSpace, upstreamObject, type SyncContext, type Visit } from './sync-context.ts'
import { sourceHash } from './transform/pod-template.ts'
import type { PodTemplate } from './transform/pod-types.ts'
import { metadataUp, replicaSetTemplateUp, templateHashLabel, withoutHash } from './transform/up.ts'

export const revisionAnnotation = 'deployment.kubernetes.io/revision'
/** On upstream ReplicaSets: the content hash of the Deployment's template that they are for. */
export const templateAnnotation = 'kcp.dev/template'

/** No Deployment comes so far by itself. */
const maxRevision = 2 ** 40

/** What a member says of its ReplicaSet of one template. */
export interface ReplicaSetPiece {
  /** Its name in the member: pods there are owned by it. */
  readonly name: string
  /** spec.replicas */
  readonly desired: number
  readonly replicas: number
  readonly readyReplicas: number
  readonly availableReplicas: number
  readonly fullyLabeledReplicas: number
}

type Kept = DeepReadonly<KubeObject>
interface DeploymentSpec {
  template: PodTemplate
  revisionHistoryLimit?: number
  selector?: { matchLabels?: Record<string, string> }
}

/** One step nearer to: a ReplicaSet upstream for every template, its counts summed, the newest revision the present one. */
export async function visitHistory(context: SyncContext, visit: Visit, signal: AbortSignal): Promise<void> {
  const space = downstreamSpace(context, visit)
  const deployment = upstreamObject(context, 'deployments', visit)
  if (space === undefined || deployment === undefined) return
  const live = [...context.downstreamIn('replicasets', space)].filter(
    (one) => ownerName(one, 'Deployment') === visit.name,
  )
  const known = upstreamHistory(context, visit, deployment)
  const present = contentHash((deployment['spec'] as DeploymentSpec).template)
  for (const replicaSet of live) {
    const hash = sourceHash((replicaSet['spec'] as { template: PodTemplate }).template)
    if (hash === undefined) continue
    const copy = known.get(hash)?.[0]
    if (copy === undefined) await createCopy(context, visit, { deployment, replicaSet, hash, present }, signal)
    else await writeCopy(context, visit, copy, pieceOf(replicaSet), signal)
  }
  await forgetGone(context, visit, known, live, signal)
  await settleHistory(context, visit, { deployment, known, present }, signal)
}

/** Upstream ReplicaSets of a Deployment by template; where two members were equally fast, the first by name counts. */
export function upstreamHistory(
  context: SyncContext,
  { cluster, namespace }: Visit,
  deployment: Kept,
): Map<string, Kept[]> {
  const found = new Map<string, Kept[]>()
  for (const object of context.upstreamIn('replicasets', cluster, namespace)) {
    const hash = object.metadata.annotations?.[templateAnnotation]
    if (hash === undefined || object.metadata.deletionTimestamp !== undefined) continue
    if (!object.metadata.ownerReferences?.some(({ uid }) => uid === deployment.metadata.uid)) continue
    found.set(
      hash,
      [...(found.get(hash) ?? []), object].sort((a, b) => ((a.metadata.name ?? '') < (b.metadata.name ?? '') ? -1 : 1)),
    )
  }
  return found
}

/** The name of the controller of this kind. */
export function ownerName(object: Kept, kind: string): string | undefined {
  return object.metadata.ownerReferences?.find((owner) => owner.controller === true && owner.kind === kind)?.name
}

function pieceOf(replicaSet: Kept): ReplicaSetPiece {
  const { replicas = 0 } = (replicaSet['spec'] ?? {}) as { replicas?: number }
  const status = (replicaSet['status'] ?? {}) as Partial<ReplicaSetPiece>
  return {
    name: replicaSet.metadata.name ?? '',
    desired: replicas,
    replicas: status.replicas ?? 0,
    readyReplicas: status.readyReplicas ?? 0,
    availableReplicas: status.availableReplicas ?? 0,
    fullyLabeledReplicas: status.fullyLabeledReplicas ?? 0,
  }
}

interface Origin {
  readonly deployment: Kept
  readonly replicaSet: Kept
  readonly hash: string
  readonly present: string
}

async function createCopy(
  context: SyncContext,
  visit: Visit,
  { deployment, replicaSet, hash, present }: Origin,
  signal: AbortSignal,
): Promise<void> {
  const { cluster, namespace } = visit
  const templateHash = replicaSet.metadata.labels?.[templateHashLabel] ?? hash.slice(0, 10)
  const spec = deployment['spec'] as DeploymentSpec
  // Word for word what the tenant wrote while that is the present template: `rollout undo` brings it back as it was.
  const template = hash === present ? withoutHash(spec.template) : replicaSetTemplateUp(replicaSet)
  const { labels, annotations } = metadataUp(replicaSet.metadata)
  const piece = pieceOf(replicaSet)
  const withHash = { ...template.metadata?.labels, [templateHashLabel]: templateHash }
  const object: KubeObject = {
    apiVersion: 'apps/v1',
    kind: 'ReplicaSet',
    metadata: {
      name: replicaSet.metadata.name ?? '',
      namespace,
      labels: { ...labels, [templateHashLabel]: templateHash },
      annotations: {
        ...annotations,
        [templateAnnotation]: hash,
        [pieceAnnotation(context.member.name)]: canonicalJson(piece),
      },
      ownerReferences: [
        {
          apiVersion: 'apps/v1',
          kind: 'Deployment',
          name: visit.name,
          uid: deployment.metadata.uid ?? '',
          controller: true,
          blockOwnerDeletion: true,
        },
      ],
    },
    spec: {
      replicas: piece.desired,
      selector: { ...spec.selector, matchLabels: { ...spec.selector?.matchLabels, [templateHashLabel]: templateHash } },
      template: { ...template, metadata: { ...template.metadata, labels: withHash } },
    },
  }
  // There already: ours, and our cache is behind; its event brings us back.
  await context.upstream.client(cluster).create(gvrs.replicasets, object, { signal }).catch(tolerate('AlreadyExists'))
}

/** This member's numbers, then the sum of all members' numbers. */
async function writeCopy(
  context: SyncContext,
  { cluster, namespace }: Visit,
  copy: Kept,
  piece: ReplicaSetPiece | undefined,
  signal: AbortSignal,
): Promise<void> {
  const annotation = pieceAnnotation(context.member.name)
  const pieces = piecesOf<ReplicaSetPiece>(copy as KubeObject)
  const before = pieces[context.member.name]
  if (piece === undefined) Reflect.deleteProperty(pieces, context.member.name)
  else pieces[context.member.name] = piece
  const client = context.upstream.client(cluster)
  const ref = { namespace, name: copy.metadata.name ?? '' }
  const sum = (count: Exclude<keyof ReplicaSetPiece, 'name'>): number =>
    Object.values(pieces).reduce((total, one) => total + one[count], 0)
  let current = copy
  const spec = { replicas: sum('desired') }
  const wasReplicas = (copy['spec'] as { replicas?: number } | undefined)?.replicas
  if (canonicalJson(before ?? null) !== canonicalJson(piece ?? null) || wasReplicas !== spec.replicas) {
    const annotations = { [annotation]: piece === undefined ? null : canonicalJson(piece) }
    const metadata = { resourceVersion: copy.metadata.resourceVersion, annotations }
    current = await client.patch(gvrs.replicasets, ref, 'merge', { metadata, spec }, { signal })
  }
  const status = {
    replicas: sum('replicas'),
    readyReplicas: sum('readyReplicas'),
    availableReplicas: sum('availableReplicas'),
    fullyLabeledReplicas: sum('fullyLabeledReplicas'),
    observedGeneration: current.metadata.generation ?? 0,
  }
  const was = (current['status'] ?? {}) as Record<string, number>
  if (Object.entries(status).every(([field, value]) => (was[field] ?? 0) === value)) return
  const patch = { metadata: { resourceVersion: current.metadata.resourceVersion }, status }
  await client.patch(gvrs.replicasets, ref, 'merge', patch, { subresource: 'status', signal })
}

/** The member's numbers leave where it has no such ReplicaSet any more, and where another copy of the template counts. */
async function forgetGone(
  context: SyncContext,
  visit: Visit,
  known: ReadonlyMap<string, Kept[]>,
  live: readonly Kept[],
  signal: AbortSignal,
): Promise<void> {
  const names = new Set(live.map(({ metadata }) => metadata.name))
  for (const [canonical, ...doubles] of known.values()) {
    for (const copy of canonical === undefined ? doubles : [canonical, ...doubles]) {
      const piece = piecesOf<ReplicaSetPiece>(copy as KubeObject)[context.member.name]
      if (piece === undefined || (copy === canonical && names.has(piece.name))) continue
      await writeCopy(context, visit, copy, undefined, signal)
    }
  }
}

interface History {
  readonly deployment: Kept
  readonly known: ReadonlyMap<string, Kept[]>
  readonly present: string
}

/** The present template has the highest revision; doubles and what is beyond the history limit go. */
async function settleHistory(
  context: SyncContext,
  { cluster, namespace, name }: Visit,
  { deployment, known, present }: History,
  signal: AbortSignal,
): Promise<void> {
  const client = context.upstream.client(cluster)
  const [newest] = known.get(present) ?? []
  const canonical = [...known.values()].flatMap(([first]) => (first === undefined ? [] : [first]))
  if (newest !== undefined) {
    const others = canonical.filter((one) => one !== newest).map(revisionOf)
    const highest = Math.max(0, ...others)
    const revision = revisionOf(newest) > highest ? revisionOf(newest) : highest + 1
    const annotations = { [revisionAnnotation]: String(revision) }
    if (revisionOf(newest) !== revision) {
      const metadata = { resourceVersion: newest.metadata.resourceVersion, annotations }
      await client.patch(
        gvrs.replicasets,
        { namespace, name: newest.metadata.name ?? '' },
        'merge',
        { metadata },
        { signal },
      )
    }
    if (deployment.metadata.annotations?.[revisionAnnotation] !== String(revision)) {
      await client.patch(gvrs.deployments, { namespace, name }, 'merge', { metadata: { annotations } }, { signal })
    }
  }
  const limit = (deployment['spec'] as DeploymentSpec).revisionHistoryLimit ?? 10
  const idle = canonical.filter((one) => one !== newest && isIdle(one)).sort((a, b) => revisionOf(b) - revisionOf(a))
  const doubles = [...known.values()].flatMap(([, ...rest]) => rest).filter(isIdle)
  // Pods may still name a double as their owner: they run, and must not go with it.
  const orphaning = doubles.map((one) => ({ one, policy: { propagationPolicy: 'Orphan' as const } }))
  for (const { one, policy } of [...idle.slice(limit).map((old) => ({ one: old, policy: {} })), ...orphaning]) {
    const { name: copyName = '', uid } = one.metadata
    await client.delete(gvrs.replicasets, { namespace, name: copyName }, { ...(uid && { uid }), ...policy, signal })
  }
}

function revisionOf(replicaSet: Kept): number {
  const revision = Number(replicaSet.metadata.annotations?.[revisionAnnotation] ?? 0)
  // Tenants may write there what they like: what is no number of ours is not counted on from.
  return Number.isInteger(revision) && revision >= 0 && revision < maxRevision ? revision : 0
}

function isIdle(replicaSet: Kept): boolean {
  return Object.keys(piecesOf(replicaSet as KubeObject)).length === 0
}
