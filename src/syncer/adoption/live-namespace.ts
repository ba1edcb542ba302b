// The objects of a namespace in a member, and the objects of which controllers there have made others.
import type { GroupVersionResource, KubeObject, OwnerReference } from '#apimachinery/meta/index.ts'
import { isStatusError } from '#apimachinery/status/index.ts'
import { controllerOf } from '#syncer/context/owners.ts'
import { gvrs } from '#syncer/context/resources.ts'
import { copiedKinds, customKinds, type AdoptableKind } from './adoptable-kinds.ts'
import type { AdoptionRequest } from './request.ts'

/** Kinds that are read only to tell that they stay in the member, with the reason. */
const staying: readonly { readonly gvr: GroupVersionResource; readonly why: string }[] = [
  {
    gvr: { group: 'rbac.authorization.k8s.io', version: 'v1', resource: 'roles' },
    why: 'rights in the member cluster are not rights in the logical cluster: grant them there',
  },
  {
    gvr: { group: 'rbac.authorization.k8s.io', version: 'v1', resource: 'rolebindings' },
    why: 'rights in the member cluster are not rights in the logical cluster: grant them there',
  },
  {
    gvr: { group: '', version: 'v1', resource: 'resourcequotas' },
    why: 'it goes on to limit the pods in the member cluster; in the logical cluster, limits are its own',
  },
]

/** At most this many objects of one kind: a namespace with more is not adopted. */
const maxOfKind = 5000

export interface LiveNamespace {
  readonly objects: readonly { readonly kind: AdoptableKind; readonly live: KubeObject }[]
  readonly pods: readonly KubeObject[]
  readonly slices: readonly KubeObject[]
  readonly staying: readonly { readonly live: KubeObject; readonly why: string }[]
  /** By uid, the objects that may be owners of others. */
  readonly byUid: ReadonlyMap<string, KubeObject>
}

/** Reads the namespace from the member. Rejects with StatusError. */
export async function readNamespace(request: AdoptionRequest): Promise<LiveNamespace> {
  const { downstream: client, memberNamespace: namespace, signal } = request
  const list = async (gvr: GroupVersionResource): Promise<readonly KubeObject[]> => {
    const { items } = await client.list<KubeObject>(gvr, { namespace, limit: maxOfKind, signal })
    return items
  }
  const objects: { kind: AdoptableKind; live: KubeObject }[] = []
  for (const kind of copiedKinds) for (const live of await list(kind.gvr)) objects.push({ kind, live })
  for (const kind of await customKinds(request))
    for (const live of await list(kind.gvr).catch(refusedAs([]))) objects.push({ kind, live })
  const kept: { live: KubeObject; why: string }[] = []
  for (const { gvr, why } of staying) {
    const found = await list(gvr).catch(refusedAs([]))
    for (const live of found) kept.push({ live, why })
  }
  const [pods, slices] = [await list(gvrs.pods), await list(gvrs.endpointslices)]
  const byUid = new Map([...objects.map(({ live }) => live), ...pods].map((one) => [one.metadata.uid ?? '', one]))
  return { objects, pods, slices, staying: kept, byUid }
}

/** For what the member refuses to show, because it joined before kcp asked for this. */
function refusedAs<T>(value: T): (error: unknown) => T {
  return (error) => {
    if (!isStatusError(error, 'Forbidden')) throw error
    return value
  }
}

/**
 * The owner that makes the object: its controller, or else an owner of an API that is not of Kubernetes itself, because
 * some operators do not say that they are controllers.
 */
export function makerOf(object: KubeObject): OwnerReference | undefined {
  return controllerOf(object) ?? object.metadata.ownerReferences?.find(({ apiVersion }) => !isOfKubernetes(apiVersion))
}

/** Whether an apiVersion is one of the groups that each cluster serves. */
export function isOfKubernetes(apiVersion: string): boolean {
  const group = apiVersion.includes('/') ? apiVersion.slice(0, apiVersion.indexOf('/')) : ''
  return !group.includes('.') || builtInGroups.has(group)
}

const builtInGroups: ReadonlySet<string> = new Set([
  'admissionregistration.k8s.io',
  'apiextensions.k8s.io',
  'apiregistration.k8s.io',
  'authentication.k8s.io',
  'authorization.k8s.io',
  'certificates.k8s.io',
  'coordination.k8s.io',
  'discovery.k8s.io',
  'events.k8s.io',
  'flowcontrol.apiserver.k8s.io',
  'internal.apiserver.k8s.io',
  'metrics.k8s.io',
  'networking.k8s.io',
  'node.k8s.io',
  'rbac.authorization.k8s.io',
  'resource.k8s.io',
  'scheduling.k8s.io',
  'storage.k8s.io',
  'storagemigration.k8s.io',
])

/** The object at the end of the chain of makers; a reference if the last of them is not known. */
export function rootOf(
  object: KubeObject,
  byUid: LiveNamespace['byUid'],
): { readonly root: KubeObject } | { readonly missing: OwnerReference } {
  let root = object
  for (let depth = 0; depth < 5; depth++) {
    const maker = makerOf(root)
    if (maker === undefined) return { root }
    const owner = byUid.get(maker.uid)
    if (owner === undefined) return { missing: maker }
    root = owner
  }
  return { root }
}
