// Objects that controllers of a member make for a workload, other than pods, ReplicaSets and EndpointSlices: the Jobs
// of a CronJob, the claims of a StatefulSet, the revisions of a template. They are copied upstream with the member's
// uid; a deletion upstream is passed on.
import { isJsonObject, type KubeObject } from '#apimachinery/meta/index.ts'
import {
  canonicalJson,
  isAsAdopted,
  memberAnnotation,
  placedOnAnnotation,
  templateOf,
  workloadKindOfObject,
} from '#crds/index.ts'
import { isSubset } from '#apimachinery/json/index.ts'
import { locatorOf } from '#syncer/context/locator.ts'
import { gvrs, type CachedObject, type ResourceName } from '#syncer/context/resources.ts'
import type { Reconcile } from '#syncer/context/scope.ts'
import { isCount } from '#syncer/rules/count.ts'
import { isShownFrom, setOfClaim } from '#syncer/rules/entitlement.ts'
import type { PodTemplate } from '#syncer/transform/pod-types.ts'
import { madeUp } from '#syncer/transform/up.ts'
import { jobLabels, jobNameLabels } from '#syncer/transform/workload-down.ts'
import { followOwner } from './follow-owner.ts'
import { copyStatus, createCopy, deleteLive, passOnDeletion, removeCopy } from './member-made-copy.ts'
import { originUpstream, type Origin } from './origin.ts'
import { claimedHash, hashIn, templateOfRevision, writtenTemplate } from './written-template.ts'

export interface MadeKind {
  readonly resource: ResourceName
  readonly hasStatus: boolean
  /** The upstream form of the object, with or without an existing `copy`; undefined if the member may not show it. */
  readonly up: (reconcile: Reconcile, made: Made) => KubeObject | undefined
}

interface Made {
  readonly live: CachedObject
  readonly copy: CachedObject | undefined
}

export const madeKinds: readonly MadeKind[] = [
  { resource: 'jobs', hasStatus: true, up: jobUp },
  { resource: 'controllerrevisions', hasStatus: false, up: revisionUp },
  { resource: 'persistentvolumeclaims', hasStatus: true, up: claimUp },
]

const byResource = new Map(madeKinds.map((kind) => [kind.resource, kind]))

/** The row of a resource; undefined if objects of the resource are not copied upstream in this way. */
export function madeKindOf(resource: string): MadeKind | undefined {
  return byResource.get(resource as ResourceName)
}

const deletion = { propagationPolicy: 'Background' } as const

/** True for an upstream object that this or another member made. */
function isMade({ metadata: { annotations = {} } }: CachedObject): boolean {
  return annotations[memberAnnotation] !== undefined && annotations[placedOnAnnotation] === undefined
}

/** Makes the upstream copy match the member's object, and passes a deletion of the copy on to the member. */
export async function reconcileMade(reconcile: Reconcile, kind: MadeKind): Promise<void> {
  const { member, name } = reconcile
  if (reconcile.memberNamespace === undefined) return
  const { resource } = kind
  const live = reconcile.live(resource, name)
  const copy = reconcile.upstream(resource, name)
  const isTheirs = live !== undefined && locatorOf(live) === undefined && reconcile.isOurs
  if (copy !== undefined && copy.metadata.annotations?.[memberAnnotation] !== member.name) return
  if (!isTheirs || (copy !== undefined && !isShownFrom(reconcile, copy, live.metadata.uid))) {
    if (copy !== undefined && isMade(copy)) await removeCopy(reconcile, resource, copy, deletion)
    return
  }
  const isEnding = live.metadata.deletionTimestamp !== undefined
  if (copy === undefined) {
    if (!isEnding) await createMade(reconcile, kind, live)
    return
  }
  if (copy.metadata.deletionTimestamp !== undefined && !isEnding) await deleteLive(reconcile, resource, live, deletion)
  await updateMade(reconcile, kind, live, copy)
}

/** The upstream copy is gone: deletes the member's object, if it is the one of that copy. */
export async function passOnDeletionOfMade(
  reconcile: Reconcile,
  { resource }: MadeKind,
  copy: CachedObject,
): Promise<void> {
  await passOnDeletion(reconcile, resource, copy, deletion)
}

async function createMade(reconcile: Reconcile, { resource, up }: MadeKind, live: CachedObject): Promise<void> {
  const object = up(reconcile, { live, copy: undefined })
  if (object !== undefined) await createCopy(reconcile, resource, live, object)
}

async function updateMade(
  reconcile: Reconcile,
  { resource, hasStatus, up }: MadeKind,
  live: CachedObject,
  copy: CachedObject,
): Promise<void> {
  const { ref, signal } = reconcile
  const object = up(reconcile, { live, copy })
  if (object === undefined) return
  const { metadata: _metadata, status: _status, ...content } = object
  const { uid } = copy.metadata
  if (!isSubset(copy, content)) {
    const patch = { ...content, metadata: { uid } }
    await reconcile.upstreamClient.patch(gvrs[resource], ref, 'merge', patch, { signal })
  }
  if (resource !== 'persistentvolumeclaims') await followOwner(reconcile, resource, live, copy)
  if (hasStatus) await copyStatus(reconcile, resource, live, copy)
}

/** A Job of a CronJob, with the template that the tenant wrote. Once it is upstream, its template stays. */
function jobUp(reconcile: Reconcile, { live, copy }: Made): KubeObject | undefined {
  const origin = originUpstream(reconcile, live)
  const claimed = (live['spec'] as { template?: PodTemplate } | undefined)?.template
  if (claimed === undefined || (origin === undefined && copy === undefined)) return undefined
  const job = madeUp(live, { namespace: reconcile.namespace, member: reconcile.member.name, owner: origin?.owner })
  const spec = job['spec'] as Record<string, unknown>
  const known = (copy?.['spec'] as { template?: unknown } | undefined)?.template
  const written =
    known ??
    (origin && writtenTemplate(reconcile, origin.workload, hashIn(reconcile, origin.workload, claimed))?.template)
  if (written === undefined) return undefined
  spec['template'] = known === undefined ? withJobLabels(written as PodTemplate, claimed) : written
  return job
}

/** The labels by which a Job finds its pods are those of the member: the Job keeps its uid. */
function withJobLabels(written: PodTemplate, { metadata }: PodTemplate): PodTemplate {
  const names = [...jobLabels, ...jobNameLabels]
  const own = names.flatMap((name) => {
    const value = metadata?.labels?.[name]
    return value === undefined ? [] : [[name, value] as const]
  })
  const labels = { ...written.metadata?.labels, ...Object.fromEntries(own) }
  return { ...written, metadata: { ...written.metadata, labels } }
}

/**
 * A revision of a StatefulSet or DaemonSet. `kubectl rollout undo` runs its template again, in any member: so the
 * template must be one that the tenant wrote, and it does not change once it is upstream.
 */
function revisionUp(reconcile: Reconcile, { live, copy }: Made): KubeObject | undefined {
  const origin = originUpstream(reconcile, live)
  const revision = madeUp(live, { namespace: reconcile.namespace, member: reconcile.member.name, owner: origin?.owner })
  if (!isCount(revision['revision'])) return undefined
  if (copy !== undefined) return { ...revision, data: copy['data'] }
  if (origin === undefined) return undefined
  const written = writtenTemplate(reconcile, origin.workload, hashOfRevision(reconcile, origin.workload, live))
  if (written === undefined) return undefined
  const template = written.template as PodTemplate
  const [own, annotations] = [live.metadata.labels ?? {}, origin.workload.metadata.annotations ?? {}]
  const hashes = Object.entries(own).filter(([name]) => revisionLabels.has(name))
  const kept = Object.entries(revision.metadata.annotations ?? {}).filter(
    ([name, value]) => name === memberAnnotation || annotations[name] === value || written.annotations[name] === value,
  )
  return {
    ...revision,
    metadata: {
      ...revision.metadata,
      labels: { ...template.metadata?.labels, ...Object.fromEntries(hashes) },
      annotations: Object.fromEntries(kept),
    },
    data: { spec: { template: { ...template, $patch: 'replace' } } },
  }
}

/**
 * The hash of the template in a revision. Of revisions from before an adoption, only the one of the present template is
 * shown: nobody says of the others that the tenant wrote them.
 */
function hashOfRevision(reconcile: Reconcile, workload: CachedObject, revision: CachedObject): string | undefined {
  const template = templateOfRevision(revision)
  const claimed = claimedHash(template)
  const resource = workloadKindOfObject(workload)?.gvr.resource
  if (claimed !== undefined || resource === undefined) return claimed
  const live = reconcile.live(resource, workload.metadata.name ?? '')
  const present = live && templateOf(live)
  if (!isAsAdopted(workload, reconcile.member.name) || templateText(present) !== templateText(template))
    return undefined
  return hashIn(reconcile, workload, template)
}

/** A template as text; fields without a value do not count. */
export function templateText(value: unknown): string {
  return canonicalJson(withoutNulls(value))
}

function withoutNulls(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutNulls)
  if (!isJsonObject(value)) return value ?? null
  const fields = Object.entries(value).filter(([, one]) => one !== null)
  return Object.fromEntries(fields.map(([name, one]) => [name, withoutNulls(one)]))
}

const revisionLabels: ReadonlySet<string> = new Set(['controller.kubernetes.io/hash', 'controller-revision-hash'])

/**
 * A claim from a claim template of a StatefulSet, or from an ephemeral volume of a pod; undefined for any other claim,
 * with which a member could pretend to have the data of a workload.
 */
function claimUp(reconcile: Reconcile, { live, copy }: Made): KubeObject | undefined {
  const owner = originUpstream(reconcile, live)
  const isExpected =
    copy !== undefined || setOfClaim(reconcile, reconcile.name) !== undefined || isOfPod(owner, reconcile.name)
  if (!isExpected) return undefined
  return madeUp(live, { namespace: reconcile.namespace, member: reconcile.member.name, owner: owner?.owner })
}

/** Whether the pod that owns a claim has an ephemeral volume for which Kubernetes makes a claim of this name. */
function isOfPod(origin: Origin | undefined, claim: string): boolean {
  if (origin?.found.kind !== 'Pod') return false
  const { spec } = (templateOf(origin.workload) ?? {}) as { spec?: PodTemplate['spec'] }
  const { name = '' } = origin.found.metadata
  return (spec?.volumes ?? []).some((volume) => volume['ephemeral'] !== undefined && `${name}-${volume.name}` === claim)
}
