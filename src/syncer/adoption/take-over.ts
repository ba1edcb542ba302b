// The steps of an adoption. Each may run again after a failure at any point: objects that are there are left as they are.
import { cloneJson, type KubeObject } from '#apimachinery/meta/index.ts'
import { conflict, isStatusError, tolerate } from '#apimachinery/status/index.ts'
import {
  adoptableLabel,
  adoptedAnnotation,
  adoptedNamespace,
  adoptedNamespaceAnnotation,
  adoptedObject,
  clusterLabel,
  contentHash,
  hasCopy,
  heldAnnotation,
  locatorAnnotation,
  managedLabel,
  memberStatusAnnotation,
  placedOn,
  syncerFieldManager,
  templateAnnotation,
  templateOf,
  tryLocator,
  unchangingHash,
  volumeAnnotation,
  workloadKindOf,
  type AdoptedNamespace,
  type AdoptionState,
  type Locator,
} from '#crds/index.ts'
import { isSubset } from '#apimachinery/json/index.ts'
import { asController, controllerOf } from '#syncer/context/owners.ts'
import { gvrs } from '#syncer/context/resources.ts'
import type { PodTemplate } from '#syncer/transform/pod-types.ts'
import { templateHashLabel, withoutHash } from '#syncer/transform/up.ts'
import { memberStatusOf } from '#syncer/up/history.ts'
import { templateText } from '#syncer/up/made.ts'
import { copyOf, differencesOf, withContent } from './copy-of.ts'
import type { AdoptableKind } from './adoptable-kinds.ts'
import type { LiveNamespace } from './live-namespace.ts'
import { isOfEveryNamespace, type AdoptionPlan, type PlannedAdoption } from './plan-adoption.ts'
import type { AdoptionRequest } from './request.ts'
import { upstreamObject } from './upstream-object.ts'

const enforceLabel = 'pod-security.kubernetes.io/enforce'

/**
 * Makes sure that the namespace is in the logical cluster, with the record that it is being adopted: from then on nobody
 * else acts in it for this member. Rejects with Conflict if it has a copy in the member already.
 */
export async function beginAdoption(request: AdoptionRequest): Promise<AdoptedNamespace> {
  const { upstream, downstream, namespace, memberNamespace, adoption, member, signal } = request
  const found = await upstream.tryGet<KubeObject>(gvrs.namespaces, { name: namespace }, { signal })
  const known = adoptedNamespace(found)
  if (known?.adoption === adoption) return known
  if (known !== undefined)
    throw conflict(
      gvrs.namespaces,
      namespace,
      `it was adopted from namespace "${known.namespace}" of "${known.member}"`,
    )
  const theirs = await downstream.get<KubeObject>(gvrs.namespaces, { name: memberNamespace }, { signal })
  const record: AdoptedNamespace = {
    member: member.name,
    namespace: memberNamespace,
    uid: theirs.metadata.uid ?? '',
    adoption,
    state: 'Adopting',
    before: { [enforceLabel]: theirs.metadata.labels?.[enforceLabel] ?? null },
    ...(found === undefined && { isNew: true as const }),
  }
  const annotations = { [adoptedNamespaceAnnotation]: JSON.stringify(record) }
  if (found === undefined)
    await upstream.create<KubeObject>(
      gvrs.namespaces,
      { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace, annotations } },
      { signal },
    )
  else {
    const metadata = { resourceVersion: found.metadata.resourceVersion, annotations }
    await upstream.patch(gvrs.namespaces, { name: namespace }, 'merge', { metadata }, { signal })
  }
  return record
}

/** Writes the state of the adoption on the namespace of the logical cluster. */
export async function writeState(
  { upstream, namespace, adoption, signal }: AdoptionRequest,
  state: AdoptionState,
): Promise<void> {
  const found = await upstream.get<KubeObject>(gvrs.namespaces, { name: namespace }, { signal })
  const known = adoptedNamespace(found)
  if (known === undefined || known.adoption !== adoption)
    throw conflict(gvrs.namespaces, namespace, 'another adoption has taken it')
  if (known.state === state) return
  const { resourceVersion } = found.metadata
  const annotations = { [adoptedNamespaceAnnotation]: JSON.stringify({ ...known, state }) }
  await upstream.patch(
    gvrs.namespaces,
    { name: namespace },
    'merge',
    { metadata: { resourceVersion, annotations } },
    { signal },
  )
}

/** Marks the namespace in the member as the copy of the one in the logical cluster. */
export async function claimNamespace(request: AdoptionRequest, { uid }: AdoptedNamespace): Promise<void> {
  const { upstream, downstream, namespace, memberNamespace, cluster, clusterId, podSecurity, signal } = request
  const [ours, theirs] = await Promise.all([
    upstream.get<KubeObject>(gvrs.namespaces, { name: namespace }, { signal }),
    downstream.get<KubeObject>(gvrs.namespaces, { name: memberNamespace }, { signal }),
  ])
  const { labels = {} } = theirs.metadata
  const locator = tryLocator(theirs)
  if (theirs.metadata.uid !== uid || labels[adoptableLabel] !== clusterId)
    throw conflict(gvrs.namespaces, memberNamespace, 'it was created again, or the consent was taken back')
  if (locator !== undefined && (locator.clusterId !== clusterId || locator.name !== namespace))
    throw conflict(gvrs.namespaces, memberNamespace, `it belongs to logical cluster "${locator.cluster}"`)
  const mine: Locator = { cluster, clusterId, namespace: '', name: namespace, uid: ours.metadata.uid ?? '' }
  const metadata = {
    uid,
    labels: { [managedLabel]: 'true', [clusterLabel]: clusterId, [enforceLabel]: podSecurity },
    annotations: { [locatorAnnotation]: JSON.stringify(mine) },
  }
  if (isSubset(theirs.metadata, metadata)) return
  await downstream.patch(gvrs.namespaces, { name: memberNamespace }, 'merge', { metadata }, { signal })
}

/** Makes the objects of the plan in the logical cluster, and the ReplicaSets of its Deployments. */
export async function createUpstream(request: AdoptionRequest, plan: AdoptionPlan): Promise<void> {
  for (const { kind, live, planned } of plan.adoptions) {
    if (planned.action !== 'Adopt' && planned.action !== 'Carry') continue
    const object = await ensureUpstream(request, kind, live)
    if (kind.resource === 'deployments') await carryHistory(request, { live, object }, plan.live)
  }
}

/** The object in the logical cluster, created if it is not there. */
async function ensureUpstream(
  request: AdoptionRequest,
  { gvr, resource }: AdoptableKind,
  live: KubeObject,
): Promise<KubeObject> {
  const { upstream, namespace, adoption, member, signal } = request
  const ref = { namespace, name: live.metadata.name ?? '' }
  const wanted = upstreamObject(live, request)
  if (resource === 'persistentvolumeclaims')
    wanted.metadata.annotations = { ...wanted.metadata.annotations, [volumeAnnotation]: member.name }
  const known = await upstream.tryGet<KubeObject>(gvr, ref, { signal })
  // The controllers of a new namespace may make its ServiceAccount just now.
  const created = known ?? (await upstream.create(gvr, wanted, { signal }).catch(tolerate('AlreadyExists')))
  const found = created ?? (await upstream.get<KubeObject>(gvr, ref, { signal }))
  if (adoptedObject(found)?.adoption !== adoption && !isOfEveryNamespace(found))
    throw conflict(gvr, ref.name, 'the logical cluster has an object of this name already')
  const { annotations } = withContent(found).metadata
  const record = annotations?.[adoptedAnnotation] ?? wanted.metadata.annotations?.[adoptedAnnotation]
  if (found.metadata.annotations?.[adoptedAnnotation] === record) return found
  // The server has set defaults, so what counts as unchanged is known now. Of the ServiceAccount that is there already,
  // only the Secrets for images come from the member.
  const pullSecrets = isOfEveryNamespace(found) && live['imagePullSecrets'] !== undefined
  const patch = {
    metadata: { uid: found.metadata.uid, annotations: { [adoptedAnnotation]: record } },
    ...(pullSecrets && { imagePullSecrets: cloneJson(live['imagePullSecrets']) }),
  }
  return await upstream.patch<KubeObject>(gvr, ref, 'merge', patch, { signal })
}

/** Makes the ReplicaSets of a Deployment in the logical cluster, with their revisions, as the syncer would. */
async function carryHistory(
  { upstream, namespace, member, signal }: AdoptionRequest,
  { live, object }: { readonly live: KubeObject; readonly object: KubeObject },
  { objects }: LiveNamespace,
): Promise<void> {
  const history = workloadKindOf('deployments')?.history
  const present = templateText(templateOf(live))
  for (const { kind, live: made } of objects) {
    if (kind.resource !== 'replicasets' || controllerOf(made)?.uid !== live.metadata.uid || history === undefined)
      continue
    const { template: whole, selector } = made['spec'] as { template: PodTemplate; selector: unknown }
    const template = withoutHash(whole)
    const isPresent = templateText(template) === present
    const hash = isPresent ? unchangingHash(templateOf(object)) : contentHash(template)
    const report = memberStatusOf(made)
    const { name = '', annotations = {} } = made.metadata
    const revision = annotations[history.revisionAnnotation]
    const replicaSet: KubeObject = {
      apiVersion: 'apps/v1',
      kind: 'ReplicaSet',
      metadata: {
        name,
        namespace,
        labels: { ...whole.metadata?.labels },
        annotations: {
          [templateAnnotation]: hash,
          [memberStatusAnnotation(member.name)]: JSON.stringify(report),
          ...(revision !== undefined && { [history.revisionAnnotation]: revision }),
        },
        ownerReferences: [asController(object)],
      },
      spec: {
        replicas: report.desired,
        selector: cloneJson(selector as object) as never,
        template: (isPresent ? withHashLabel(templateOf(object) as PodTemplate, whole) : cloneJson(whole)) as never,
      },
    }
    await upstream.create(gvrs.replicasets, replicaSet, { signal }).catch(tolerate('AlreadyExists'))
  }
}

/** The template of the Deployment as its ReplicaSet has it. */
function withHashLabel(template: PodTemplate, whole: PodTemplate): PodTemplate {
  const copy = cloneJson<PodTemplate>(template)
  const hash = whole.metadata?.labels?.[templateHashLabel]
  const labels = { ...copy.metadata?.labels, ...(hash !== undefined && { [templateHashLabel]: hash }) }
  return { ...copy, metadata: { ...copy.metadata, labels } }
}

/** Where the scheduler has not placed a workload of the plan on the member yet: a sentence for each. */
export async function notPlaced(request: AdoptionRequest, { adoptions }: AdoptionPlan): Promise<string[]> {
  const { upstream, namespace, member, signal } = request
  const waiting: string[] = []
  for (const { kind, live, planned } of adoptions) {
    const isPlaced = kind.resource === undefined || workloadKindOf(kind.resource) !== undefined
    if (planned.action !== 'Adopt' || !isPlaced) continue
    const name = live.metadata.name ?? ''
    const object = await upstream.tryGet<KubeObject>(kind.gvr, { namespace, name }, { signal })
    if (object === undefined || hasCopy(placedOn(object)[member.name]) || isOver(object)) continue
    const { message } = placedOn(object)[member.name] ?? {}
    waiting.push(`${object.kind} "${name}": ${message ?? heldText(object) ?? 'the scheduler has not decided yet'}`)
  }
  return waiting
}

/** A Job that has ended is placed nowhere. */
function isOver(object: KubeObject): boolean {
  const { conditions = [] } = (object['status'] ?? {}) as { conditions?: { type: string; status: string }[] }
  return object.kind === 'Job' && conditions.some(({ type, status }) => type !== 'Suspended' && status === 'True')
}

function heldText({ metadata }: KubeObject): string | undefined {
  return metadata.annotations?.[heldAnnotation]
}

/**
 * Makes the member's objects the copies of those in the logical cluster. Each write is tried as a dry run first: an
 * object that a write would change is not touched. Returns a sentence for each of these.
 */
export async function takeObjects(request: AdoptionRequest, { adoptions }: AdoptionPlan): Promise<string[]> {
  const problems: string[] = []
  for (const adoption of adoptions)
    if (adoption.planned.action === 'Adopt') problems.push(...(await takeObject(request, adoption)))
  return problems
}

async function takeObject(
  request: AdoptionRequest,
  { kind, live: { kind: word, metadata } }: PlannedAdoption,
): Promise<string[]> {
  const { upstream, downstream, namespace, memberNamespace, signal } = request
  const { name = '' } = metadata
  const object = await upstream.tryGet<KubeObject>(kind.gvr, { namespace, name }, { signal })
  const live = await downstream.tryGet<KubeObject>(kind.gvr, { namespace: memberNamespace, name }, { signal })
  if (object === undefined || live === undefined || live.metadata.deletionTimestamp !== undefined) return []
  const followed = await followScale(request, kind, { object, live })
  const copy = copyOf(request, kind, { object: followed, live })
  if (isSubset(live, copy)) return []
  const paths = await differencesOf(request, kind, { copy, live })
  if (paths.length > 0) return [`${word} "${name}" would be changed: ${paths.join('; ')}`]
  const { uid, resourceVersion } = live.metadata
  const fixed = { ...copy, metadata: { ...copy.metadata, uid, resourceVersion } as KubeObject['metadata'] }
  const options = { fieldManager: syncerFieldManager, signal }
  try {
    await downstream.patch(kind.gvr, { namespace: memberNamespace, name }, 'apply', fixed, options)
    return []
  } catch (error) {
    if (isStatusError(error, 'Conflict')) return [`${word} "${name}" changes: ${error.message}`]
    throw error
  }
}

/** An autoscaler may have changed the replicas since the object was made in the logical cluster. */
async function followScale(
  { upstream, namespace, signal }: AdoptionRequest,
  { gvr, resource }: AdoptableKind,
  { object, live }: { readonly object: KubeObject; readonly live: KubeObject },
): Promise<KubeObject> {
  const [ours, theirs] = [object, live].map((one) => (one['spec'] as { replicas?: number } | undefined)?.replicas)
  if (
    resource === undefined ||
    workloadKindOf(resource)?.paths.replicas === undefined ||
    theirs === undefined ||
    ours === theirs
  )
    return object
  const { uid, resourceVersion, name = '' } = object.metadata
  const patch = { metadata: { uid, resourceVersion }, spec: { replicas: theirs } }
  return await upstream.patch<KubeObject>(gvr, { namespace, name }, 'merge', patch, { signal })
}
