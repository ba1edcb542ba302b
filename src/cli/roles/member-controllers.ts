// Connects the operator's controllers with the syncer: neither of the two imports the other.
import { LRUCache } from 'lru-cache'
import { clusterIdOf, type ClusterId } from '#apimachinery/meta/index.ts'
import type { PodSecurityLevel } from '#apimachinery/pod-security/index.ts'
import { parseKey, type DeepReadonly, type KubeClient } from '#client/index.ts'
import {
  adoptedNamespace,
  defaultPodSecurity,
  downstreamNamespace,
  type LogicalCluster,
  logicalClusters,
  type MemberCluster,
  memberClusters,
  type VolumeMoveLimits,
  type UsageHistory,
} from '#crds/index.ts'
import {
  adoptionController,
  allControllers,
  autoscalingController,
  classesController,
  exportedApisController,
  lostMembersController,
  MemberApis,
  memberClusterController,
  type MemberToSync,
  type OperatorContext,
  type OperatorController,
  placementController,
  serviceExportsController,
  snapshotRetentionController,
  snapshotsController,
  snapshotSchedulesController,
  snapshotStoresController,
  volumeMoveController,
  volumesController,
  VolumeSnapshots,
} from '#operator/index.ts'
import {
  adoptionSteps,
  type ClusterIds,
  ClusterPresence,
  createUpstream,
  ensureApiEntrance,
  ensureNameserver,
  type GatewayPeer,
  removeMemberGateway,
  startMemberGateway,
  startSyncer,
  type Upstream,
} from '#syncer/index.ts'
import { programVersion } from '#telemetry/index.ts'
import { SyncedMembers } from './synced-members.ts'

interface MemberControllersOptions {
  /** Address at which pods in members reach the direct listener; in pull mode they reach it through the agent. */
  readonly advertise: { readonly host: string; readonly port: number }
  /** Default registry.k8s.io/coredns/coredns:v1.12.4. */
  readonly nameserverImage?: string
  /** Image of kcp for the gateways in members. Default kcp.dev/kcp with the version of this program. */
  readonly gatewayImage?: string
  /** How many volumes are copied at a time. Default: see the flags. */
  readonly volumeMoves?: VolumeMoveLimits
  /** Keeps rows of what logical clusters request in members. */
  readonly usageHistory?: (client: KubeClient) => UsageHistory
  readonly drainSeconds?: number
  readonly forwardSeconds?: number
  readonly soakSeconds?: number
  /** Seconds between two reads of metrics by autoscalers of divided workloads. Default 15. */
  readonly autoscaleSeconds?: number
  /** Seconds between two rounds of balancing members, if balancing is turned on. Default 60. */
  readonly rebalanceSeconds?: number
}

/** All controllers of the operator. The syncers of all members share one set of informers over the logical clusters. */
export function memberControllers({
  advertise,
  nameserverImage,
  gatewayImage = `kcp.dev/kcp:${programVersion}`,
  volumeMoves,
  usageHistory,
  drainSeconds,
  forwardSeconds,
  soakSeconds,
  rebalanceSeconds,
  autoscaleSeconds,
}: MemberControllersOptions): OperatorController[] {
  const upstreams = new WeakMap<OperatorContext, Upstream>()
  const apis = new MemberApis()
  const synced = new SyncedMembers()
  const members = memberClusterController({
    apis,
    async startSyncer(toSync, context) {
      const { client: downstream, dialPod, exports, log, signal, hasAgent, gatewayReported: _, ...member } = toSync
      let upstream = upstreams.get(context)
      if (upstream === undefined) {
        const { virtual, tenantInformers } = context
        const client = (cluster: string): KubeClient => virtual(`/clusters/${cluster}`)
        upstream = createUpstream({ informers: tenantInformers, client, ids: clusterIds(context) })
        upstreams.set(context, upstream)
      }
      const image = nameserverImage === undefined ? {} : { image: nameserverImage }
      const entrance = hasAgent ? await ensureApiEntrance(downstream, signal) : { name: advertise, address: advertise }
      const nameserver = await ensureNameserver({
        memberName: member.name,
        member: downstream,
        apiAddress: entrance.address,
        ...image,
        signal,
      })
      const exported = exports === undefined ? {} : { exports }
      const gateway = await syncMemberGateway(toSync, { context, upstream, image: gatewayImage })
      const syncer = startSyncer({
        member,
        upstream,
        downstream,
        apiAddress: entrance.name,
        nameserver,
        ...exported,
        log,
        signal,
      })
      synced.add(member.name, { client: downstream, dialPod })
      return {
        suspendedDeletions: () => syncer.suspendedDeletions(),
        failures: () => syncer.failures(),
        async [Symbol.asyncDispose]() {
          synced.remove(member.name, downstream)
          await Promise.all([syncer[Symbol.asyncDispose](), gateway?.[Symbol.asyncDispose]()])
        },
      }
    },
  })
  const placement = placementController({
    apis,
    ...(usageHistory && { usageHistory }),
    ...(drainSeconds !== undefined && { drainSeconds }),
    ...(forwardSeconds !== undefined && { forwardSeconds }),
    ...(soakSeconds !== undefined && { soakSeconds }),
    ...(rebalanceSeconds !== undefined && { rebalanceSeconds }),
  })
  return [
    ...allControllers,
    members,
    placement,
    adoptionController({
      steps: adoptionSteps,
      clientOf: (member) => synced.get(member)?.client,
      onSyncerStarted: (listener) => synced.onAdded(listener),
    }),
    volumeMoveController({
      accessOf: (member) => synced.get(member),
      onSyncerStarted: (listener) => synced.onAdded(listener),
      image: gatewayImage,
      ...(volumeMoves !== undefined && { limits: volumeMoves }),
    }),
    exportedApisController(apis),
    autoscalingController(autoscaleSeconds === undefined ? {} : { periodSeconds: autoscaleSeconds }),
    classesController(),
    volumesController(),
    lostMembersController(),
    serviceExportsController(),
    snapshotStoresController(),
    snapshotsController({ volumes: new VolumeSnapshots({ accessOf: (member) => synced.get(member) }) }),
    snapshotSchedulesController(),
    snapshotRetentionController(),
  ]
}

/** Number of deleted logical clusters that are remembered: copies in members may outlive them for a while. */
const maxDeletedIds = 10_000

function podSecurityOf(object: DeepReadonly<LogicalCluster> | undefined): PodSecurityLevel {
  return object?.spec?.podSecurity?.enforce ?? defaultPodSecurity
}

/** Ids of logical clusters, updated by the operator's informer. */
function clusterIds({ informers }: OperatorContext): ClusterIds {
  const informer = informers.of<LogicalCluster>(logicalClusters)
  const names = new Map<string, string>()
  const ids = new Map<string, ClusterId>()
  const listeners = new Set<(cluster: string) => void>()
  const deletedIds = new LRUCache<string, true>({ max: maxDeletedIds })
  const goneListeners = new Set<(id: string) => void>()
  informer.onChange(({ key, before, after }) => {
    const known = before === undefined ? undefined : ids.get(key)
    if (known !== undefined && before?.metadata.uid !== after?.metadata.uid) {
      names.delete(known)
      ids.delete(key)
      deletedIds.set(known, true)
      for (const listener of goneListeners) listener(known)
    }
    if (after === undefined) return
    if (ids.has(key)) {
      // The namespaces of the logical cluster in members carry the pod security level.
      if (podSecurityOf(before) !== podSecurityOf(after)) for (const listener of listeners) listener(key)
      return
    }
    const id = clusterIdOf(after.metadata.uid ?? '')
    ids.set(key, id)
    names.set(id, key)
    for (const listener of listeners) listener(key)
  })
  return {
    idOf: (cluster) => ids.get(cluster),
    nameOf: (id) => names.get(id),
    podSecurityOf: (cluster) => podSecurityOf(informer.store.get(cluster)),
    onKnown(listener) {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
    isGone: (id) => deletedIds.has(id),
    onGone(listener) {
      goneListeners.add(listener)
      return () => void goneListeners.delete(listener)
    },
  }
}

const presences = new WeakMap<Upstream, ClusterPresence>()

/**
 * Starts the gateway of a member with service network Gateway. In any other member, deletes the remains of a gateway.
 */
async function syncMemberGateway(
  { name, serviceNetwork, gatewayAddress, gatewayReported, client, log, signal }: MemberToSync,
  {
    context,
    upstream,
    image,
  }: { readonly context: OperatorContext; readonly upstream: Upstream; readonly image: string },
): Promise<AsyncDisposable | undefined> {
  if (serviceNetwork !== 'Gateway') {
    await removeMemberGateway(client, signal)
    return undefined
  }
  let presence = presences.get(upstream)
  if (presence === undefined) presences.set(upstream, (presence = new ClusterPresence(upstream.informers)))
  const placed = presence
  const members = context.informers.of<MemberCluster>(memberClusters)
  const peers = (): GatewayPeer[] =>
    members.store
      .list()
      .filter(({ metadata, spec }) => metadata.name !== name && spec?.serviceNetwork?.type === 'Gateway')
      .map(({ metadata, status }) => ({
        name: metadata.name,
        ...status?.gateway,
        clusterIds: [...placed.clustersIn(metadata.name)].flatMap((cluster) => upstream.ids.idOf(cluster) ?? []),
      }))
  const namespaces = (): Record<string, string> => usualNames(upstream, name)
  const onChange = (listener: () => void): (() => void) => {
    const ends = [
      upstream.informers.namespaces.onChange(({ before, after }) => {
        if ([before, after].some((one) => adoptedNamespace(one)?.member === name)) listener()
      }),
      placed.onChange((member) => {
        if (member !== name) listener()
      }),
      members.onChange(({ key, before, after }) => {
        const wayOf = (one: typeof before): string => JSON.stringify([one?.spec?.serviceNetwork, one?.status?.gateway])
        if (key !== name && wayOf(before) !== wayOf(after)) listener()
      }),
    ]
    return () => {
      for (const end of ends) end()
    }
  }
  return startMemberGateway({
    memberName: name,
    member: client,
    image,
    ...(gatewayAddress !== undefined && { address: gatewayAddress }),
    peers,
    namespaces,
    onChange,
    // Without the scheduler's decisions, the gateways would be configured as if no logical cluster were in any member.
    synced: (until) => upstream.synced(until),
    report: gatewayReported,
    log: log.with({ member: name }),
    signal,
  })
}

/** The namespaces that logical clusters have adopted from the member: the usual name for each name there. */
function usualNames({ adoptedNamespaces, informers, ids }: Upstream, member: string): Record<string, string> {
  const names: Record<string, string> = {}
  for (const key of adoptedNamespaces.keysOf(member)) {
    const { cluster = '', name } = parseKey(key)
    const id = ids.idOf(cluster)
    const record = adoptedNamespace(informers.namespaces.store.get(key))
    if (id !== undefined && record !== undefined) names[record.namespace] = downstreamNamespace(id, name)
  }
  return names
}
