// The logical clusters as the syncers of one process see them: informers over all logical clusters, shared by all
// members.
import type { ClusterId, KubeObject } from '#apimachinery/meta/index.ts'
import type { PodSecurityLevel } from '#apimachinery/pod-security/index.ts'
import {
  clusterInKey,
  namespaceKeyOf,
  ObjectIndex,
  type Informer,
  type KubeClient,
  type SharedInformers,
} from '#client/index.ts'
import { adoptedNamespace, memberAnnotation, volumeAnnotation, workloadKinds } from '#crds/index.ts'
import { FormerTemplates } from './former-templates.ts'
import { namedMembers } from './named-members.ts'
import { OrphaningDeletions } from './orphans.ts'
import { asOrdinalClaim } from './references.ts'
import { gvrs, type CachedObject, type ResourceName } from './resources.ts'
import { Tombstones } from './tombstones.ts'

const nodesGvr = { group: '', version: 'v1', resource: 'nodes' } as const
const priorityClassesGvr = { group: 'scheduling.k8s.io', version: 'v1', resource: 'priorityclasses' } as const

/** Ids of logical clusters by name and back, kept current by the program that starts syncers. */
export interface ClusterIds {
  idOf(cluster: string): ClusterId | undefined
  nameOf(id: string): string | undefined
  /** spec.podSecurity.enforce of the LogicalCluster, or its default. */
  podSecurityOf(cluster: string): PodSecurityLevel
  /**
   * Calls the listener with the name of each logical cluster that becomes known or changes its pod security. Returns
   * the function that ends it.
   */
  onKnown(listener: (cluster: string) => void): () => void
  /** True for recently deleted logical clusters; a limited number is remembered. */
  isGone(id: string): boolean
  /** Calls the listener with the id of each deleted logical cluster. Returns the function that ends it. */
  onGone(listener: (id: string) => void): () => void
}

export interface UpstreamOptions {
  /** Informers over `/clusters/*`, with `allClusters`. The caller ends them. */
  readonly informers: SharedInformers
  /** Reads and writes one logical cluster. */
  readonly client: (cluster: string) => KubeClient
  readonly ids: ClusterIds
}

export interface Upstream {
  readonly ids: ClusterIds
  readonly informers: Readonly<Record<ResourceName, Informer<KubeObject>>>
  /** PriorityClasses are not synced: a template that names one gets a PriorityClass of the member instead. */
  readonly priorityClasses: Informer<KubeObject>
  /** The nodes of members, as logical clusters show them. */
  readonly nodes: Informer<KubeObject>
  /** The objects of each informer by `CLUSTER|NAMESPACE`. */
  readonly byNamespace: Readonly<Record<ResourceName, ObjectIndex>>
  /** Workloads and orphans by `CLUSTER|NAMESPACE MEMBER` of each member that they name. */
  readonly workloadsByMember: readonly ObjectIndex[]
  /** Namespaces that were adopted, by `MEMBER`, and by `MEMBER/NAME` of the namespace in the member. */
  readonly adoptedNamespaces: ObjectIndex
  /** PersistentVolumeClaims by `CLUSTER|NAMESPACE MEMBER` of the members that have, or will have, their volume. */
  readonly claimsByMember: ObjectIndex
  /** Claims whose names end with an ordinal of a StatefulSet, by `CLUSTER|NAMESPACE|REFERENCE` (asOrdinalClaim). */
  readonly claimsOfOrdinals: ObjectIndex
  /** ReplicaSets by `CLUSTER|NAMESPACE|UID` of their owners. */
  readonly replicaSetsByOwner: ObjectIndex
  /** Pods that members made or run, in two groups each: onNode of their logical cluster, and onNode of all (empty). */
  readonly podsByNode: ObjectIndex
  /** The objects whose deletion was seen. */
  readonly tombstones: Tombstones
  /** The workloads that are being deleted without their dependents. */
  readonly orphaning: OrphaningDeletions
  /** The pod templates that tenants wrote before the present ones. */
  readonly formerTemplates: FormerTemplates
  client(cluster: string): KubeClient
  /** Resolves when every informer has its first list. */
  synced(signal: AbortSignal): Promise<void>
}

/** Starts the informers that syncers need, unless they run already. */
export function createUpstream({ informers: shared, client, ids }: UpstreamOptions): Upstream {
  const informers = forEachResource((resource) => shared.of<KubeObject>(gvrs[resource]))
  const priorityClasses = shared.of<KubeObject>(priorityClassesGvr)
  const nodes = shared.of<KubeObject>(nodesGvr)
  return {
    ids,
    informers,
    priorityClasses,
    nodes,
    byNamespace: forEachResource((resource) => shared.byNamespace(gvrs[resource])),
    workloadsByMember: workloadKinds.map(
      ({ gvr }) =>
        new ObjectIndex(informers[gvr.resource], (key, workload) =>
          [...namedMembers(workload)].map((member) => inMember(namespaceKeyOf(key), member)),
        ),
    ),
    adoptedNamespaces: new ObjectIndex(informers.namespaces, (_key, object) => {
      const adopted = adoptedNamespace(object)
      return adopted === undefined ? [] : [adopted.member, `${adopted.member}/${adopted.namespace}`]
    }),
    claimsByMember: new ObjectIndex(informers.persistentvolumeclaims, (key, { metadata: { annotations = {} } }) =>
      [annotations[memberAnnotation], annotations[volumeAnnotation]]
        .filter((member) => member !== undefined)
        .map((member) => inMember(namespaceKeyOf(key), member)),
    ),
    claimsOfOrdinals: new ObjectIndex(informers.persistentvolumeclaims, (key, { metadata: { name = '' } }) => {
      const found = asOrdinalClaim(name)
      return found === undefined ? [] : [`${namespaceKeyOf(key)}|${found.reference}`]
    }),
    replicaSetsByOwner: new ObjectIndex(informers.replicasets, (key, { metadata: { ownerReferences = [] } }) =>
      ownerReferences.map(({ uid }) => `${namespaceKeyOf(key)}|${uid}`),
    ),
    podsByNode: new ObjectIndex(informers.pods, (key, pod) => {
      const [member, node] = [pod.metadata.annotations?.[memberAnnotation], nodeNameOf(pod)]
      return member === undefined || node === undefined
        ? []
        : [onNode(clusterInKey(key), member, node), onNode('', member, node)]
    }),
    tombstones: new Tombstones(informers),
    orphaning: new OrphaningDeletions(workloadKinds.map(({ gvr }) => informers[gvr.resource])),
    formerTemplates: new FormerTemplates(withFormerTemplates.map((resource) => informers[resource])),
    client,
    async synced(signal) {
      await Promise.all(
        [...Object.values(informers), priorityClasses, nodes].map((informer) => informer.synced(signal)),
      )
    },
  }
}

/** The resources from whose templates members make objects that are shown upstream. */
const withFormerTemplates = ['deployments', 'statefulsets', 'daemonsets', 'cronjobs'] as const

/** The node of a pod; undefined while it has none. */
export function nodeNameOf(pod: CachedObject | undefined): string | undefined {
  return (pod?.['spec'] as { readonly nodeName?: string } | undefined)?.nodeName || undefined
}

/** The group of the pods of a logical cluster, or of all if it is empty, that run on a node of a member. */
export function onNode(cluster: string, member: string, node: string): string {
  return `${cluster} ${member}/${node}`
}

/** The group (key of an index) of the objects of a namespace, given as `CLUSTER|NAMESPACE`, that concern a member. */
export function inMember(namespaceKey: string, member: string): string {
  return `${namespaceKey} ${member}`
}

/** A record with one value for each resource that a syncer watches. */
export function forEachResource<T>(make: (resource: ResourceName) => T): Record<ResourceName, T> {
  return Object.fromEntries(
    (Object.keys(gvrs) as ResourceName[]).map((resource) => [resource, make(resource)]),
  ) as Record<ResourceName, T>
}
