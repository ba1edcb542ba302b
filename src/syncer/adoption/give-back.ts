// The undo of an adoption: the objects in the member lose kcp's marks and nothing else, then the logical cluster loses
// the objects that the adoption has made.
import { isJsonObject, type GroupVersionResource, type KubeObject } from '#apimachinery/meta/index.ts'
import { isStatusError, tolerate } from '#apimachinery/status/index.ts'
import {
  adoptedNamespace,
  adoptedNamespaceAnnotation,
  adoptedObject,
  isAsAdopted,
  isPlaceable,
  managedLabel,
  memberAnnotation,
  ownAnnotationPrefix,
  placedOn,
  servingLabel,
  syncerFieldManager,
  syncerFinalizerPrefix,
  workloadKinds,
  type AdoptedNamespace,
} from '#crds/index.ts'
import { gvrs, type ResourceName } from '#syncer/context/resources.ts'
import { releasePatch } from '#syncer/down/release-namespace.ts'
import { rootCaConfigMap } from '#syncer/transform/pod-template.ts'
import { adoptable, copiedKinds, customKinds } from './adoptable-kinds.ts'
import type { AdoptionRequest } from './request.ts'

/** Why the adoption cannot be undone: a sentence for each object that is not as it was. Empty: it can. */
export async function obstaclesToUndo(request: AdoptionRequest): Promise<string[]> {
  const { upstream, namespace, adoption, member, signal } = request
  const found: string[] = []
  const custom = await customIn(request)
  for (const gvr of [...workloadKinds.map((kind) => kind.gvr), ...custom]) {
    const { items } = await upstream.list<KubeObject>(gvr, { namespace, signal })
    for (const object of items.filter((one) => custom.includes(gvr) || isPlaceable(one))) {
      const what = `${object.kind} "${object.metadata.name ?? ''}"`
      const places = Object.keys(placedOn(object))
      if (adoptedObject(object)?.adoption !== adoption) {
        if (places.length > 0) found.push(`${what} was created since: delete it, or move it into another namespace`)
      } else if (!custom.includes(gvr) && !isAsAdopted(object, member.name))
        found.push(`${what} has another template now: to undo would start its pods again`)
      else if (places.some((place) => place !== member.name))
        found.push(`${what} is in ${places.join(', ')}: move it back to ${member.name} first`)
    }
  }
  return found
}

/** The custom resources that the logical cluster has from the member. */
async function customIn(request: AdoptionRequest): Promise<GroupVersionResource[]> {
  const kinds = await customKinds(request)
  return kinds.filter(({ obstacle }) => obstacle === undefined).map(({ gvr }) => gvr)
}

/** The kinds with objects that may carry kcp's marks: Services first, because their selectors depend on pods' labels. */
const marked: readonly ResourceName[] = [
  'services',
  ...adoptable.filter((resource) => resource !== 'services'),
  'controllerrevisions',
  'pods',
  'endpointslices',
]

/** Removes kcp's marks from all objects of the namespace in the member. Returns how many had any. */
export async function removeMarks(request: AdoptionRequest): Promise<number> {
  const { downstream, memberNamespace: namespace, signal } = request
  let count = 0
  for (const gvr of [...(await customIn(request)), ...marked.map((resource) => gvrs[resource])]) {
    const { items } = await downstream.list<KubeObject>(gvr, { namespace, signal })
    for (const live of items) {
      const patch = unmarkingPatch(live)
      if (patch === undefined) continue
      count++
      const ref = { namespace, name: live.metadata.name ?? '' }
      if (live.kind === 'ConfigMap' && ref.name === rootCaConfigMap)
        await downstream.delete(gvr, ref, { signal }).catch(tolerate('NotFound'))
      else
        await downstream
          .patch(gvr, ref, 'merge', patch, { fieldManager: syncerFieldManager, signal })
          .catch(tolerate('NotFound', 'Conflict'))
    }
  }
  return count
}

/** The merge patch that removes kcp's marks from an object in a member; undefined if it has none. */
function unmarkingPatch(live: KubeObject): object | undefined {
  const { uid, resourceVersion, labels = {}, annotations = {}, managedFields = [] } = live.metadata
  const ourLabels = [managedLabel, servingLabel].filter((label) => labels[label] !== undefined)
  const ourAnnotations = Object.keys(annotations).filter((name) => name.startsWith(ownAnnotationPrefix))
  const selector = isJsonObject(live['spec']) ? live['spec']['selector'] : undefined
  const selectsServing = live.kind === 'Service' && isJsonObject(selector) && selector[servingLabel] !== undefined
  if (ourLabels.length === 0 && ourAnnotations.length === 0 && !selectsServing) return undefined
  const nothing = (names: readonly string[]): Record<string, null> =>
    Object.fromEntries(names.map((name) => [name, null]))
  const theirs = managedFields.filter((entry) => (entry as { manager?: string }).manager !== syncerFieldManager)
  return {
    metadata: {
      uid,
      resourceVersion,
      labels: nothing(ourLabels),
      annotations: nothing(ourAnnotations),
      ...(theirs.length > 0 && { managedFields: theirs }),
    },
    ...(selectsServing && { spec: { selector: { [servingLabel]: null } } }),
  }
}

/** Removes from the logical cluster what the adoption has made there, and what the member showed there. */
export async function removeUpstream(request: AdoptionRequest): Promise<void> {
  const { upstream, namespace, adoption, member, signal } = request
  const shown: readonly ResourceName[] = ['pods', 'replicasets', 'jobs', 'controllerrevisions', 'endpointslices']
  const copied = [...adoptable.toReversed(), ...shown].map((resource) => gvrs[resource])
  for (const gvr of [...(await customIn(request)), ...copied]) {
    const { items } = await upstream.list<KubeObject>(gvr, { namespace, signal })
    for (const object of items) {
      const isOfMember = object.metadata.annotations?.[memberAnnotation] === member.name
      if (adoptedObject(object)?.adoption !== adoption && !isOfMember) continue
      await removeOne(request, gvr, object)
    }
  }
}

async function removeOne(
  { upstream, namespace, signal }: AdoptionRequest,
  gvr: GroupVersionResource,
  { metadata }: KubeObject,
): Promise<void> {
  const { name = '', uid, finalizers = [] } = metadata
  const ref = { namespace, name }
  const kept = finalizers.filter((finalizer) => !finalizer.startsWith(syncerFinalizerPrefix))
  if (kept.length < finalizers.length)
    await upstream
      .patch(gvr, ref, 'merge', { metadata: { uid, finalizers: kept } }, { signal })
      .catch(tolerate('NotFound'))
  const options = {
    ...(uid && { uid }),
    ...(gvr === gvrs.pods && { gracePeriodSeconds: 0 }),
    propagationPolicy: 'Background' as const,
    signal,
  }
  await upstream.delete(gvr, ref, options).catch(tolerate('NotFound', 'Conflict'))
}

/** Gives the namespace back to the member, and forgets it in the logical cluster. */
export async function releaseNamespaces(request: AdoptionRequest, adopted: AdoptedNamespace): Promise<void> {
  const { upstream, downstream, namespace, memberNamespace, signal } = request
  const theirs = await downstream.tryGet<KubeObject>(gvrs.namespaces, { name: memberNamespace }, { signal })
  if (theirs !== undefined && theirs.metadata.uid === adopted.uid)
    await downstream.patch(gvrs.namespaces, { name: memberNamespace }, 'merge', releasePatch(theirs, adopted), {
      signal,
    })
  const ours = await upstream.tryGet<KubeObject>(gvrs.namespaces, { name: namespace }, { signal })
  if (ours === undefined || adoptedNamespace(ours)?.adoption !== adopted.adoption) return
  const { uid } = ours.metadata
  if (adopted.isNew && !(await hasOthers(request))) {
    await upstream
      .delete(gvrs.namespaces, { name: namespace }, { ...(uid && { uid }), signal })
      .catch(tolerate('NotFound'))
    return
  }
  const patch = { metadata: { uid, annotations: { [adoptedNamespaceAnnotation]: null } } }
  await upstream.patch(gvrs.namespaces, { name: namespace }, 'merge', patch, { signal }).catch((error: unknown) => {
    if (!isStatusError(error, 'NotFound')) throw error
  })
}

/** Whether the tenant has made objects in the namespace that the adoption did not make. */
async function hasOthers(request: AdoptionRequest): Promise<boolean> {
  const { upstream, namespace, signal } = request
  for (const gvr of [...copiedKinds.map((kind) => kind.gvr), ...(await customIn(request))]) {
    const { items } = await upstream.list<KubeObject>(gvr, { namespace, signal })
    const others = items.filter(
      ({ kind, metadata }) =>
        metadata.deletionTimestamp === undefined &&
        !(kind === 'ServiceAccount' && metadata.name === 'default') &&
        !(kind === 'ConfigMap' && metadata.name === 'kube-root-ca.crt'),
    )
    if (others.length > 0) return true
  }
  return false
}
