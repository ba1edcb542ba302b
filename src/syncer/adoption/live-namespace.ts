// The objects of a namespace in a member, and the objects of which controllers there have made others.
import type { GroupVersionResource, KubeObject } from '#apimachinery/meta/index.ts'
import { isStatusError } from '#apimachinery/status/index.ts'
import type { KubeClient } from '#client/index.ts'
import { controllerOf } from '#syncer/context/owners.ts'
import { gvrs, type ResourceName } from '#syncer/context/resources.ts'

/** The kinds that can be adopted, in the order in which their objects are made in the logical cluster. */
export const adoptable = [
  'serviceaccounts',
  'secrets',
  'configmaps',
  'persistentvolumeclaims',
  'limitranges',
  'networkpolicies',
  'services',
  'poddisruptionbudgets',
  'statefulsets',
  'deployments',
  'daemonsets',
  'replicasets',
  'replicationcontrollers',
  'jobs',
  'cronjobs',
  'horizontalpodautoscalers',
  'ingresses',
] as const satisfies readonly ResourceName[]
export type AdoptableResource = (typeof adoptable)[number]

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
  readonly objects: readonly { readonly resource: AdoptableResource; readonly live: KubeObject }[]
  readonly pods: readonly KubeObject[]
  readonly slices: readonly KubeObject[]
  readonly staying: readonly { readonly live: KubeObject; readonly why: string }[]
  /** By uid, the objects that may be owners of others. */
  readonly byUid: ReadonlyMap<string, KubeObject>
}

/** Reads the namespace from the member. Rejects with StatusError. */
export async function readNamespace(
  client: KubeClient,
  namespace: string,
  signal: AbortSignal,
): Promise<LiveNamespace> {
  const list = async (gvr: GroupVersionResource): Promise<readonly KubeObject[]> => {
    const { items } = await client.list<KubeObject>(gvr, { namespace, limit: maxOfKind, signal })
    return items
  }
  const objects: { resource: AdoptableResource; live: KubeObject }[] = []
  for (const resource of adoptable) for (const live of await list(gvrs[resource])) objects.push({ resource, live })
  const kept: { live: KubeObject; why: string }[] = []
  for (const { gvr, why } of staying) {
    const found = await list(gvr).catch((error: unknown) => {
      // The member joined before kcp asked for this.
      if (!isStatusError(error, 'Forbidden')) throw error
      return []
    })
    for (const live of found) kept.push({ live, why })
  }
  const [pods, slices] = [await list(gvrs.pods), await list(gvrs.endpointslices)]
  const byUid = new Map([...objects.map(({ live }) => live), ...pods].map((one) => [one.metadata.uid ?? '', one]))
  return { objects, pods, slices, staying: kept, byUid }
}

/** The object at the end of the chain of controllers; a reference if the last of them is not in the namespace. */
export function rootOf(
  object: KubeObject,
  byUid: LiveNamespace['byUid'],
): { readonly root: KubeObject } | { readonly missing: string } {
  let root = object
  for (let depth = 0; depth < 5; depth++) {
    const controller = controllerOf(root)
    if (controller === undefined) return { root }
    const owner = byUid.get(controller.uid)
    if (owner === undefined) return { missing: `${controller.kind} "${controller.name}"` }
    root = owner
  }
  return { root }
}
