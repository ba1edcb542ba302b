// The controllers of the operator with what they need of the syncer: operator and syncer know nothing of each other.
import { clusterIdOf, type ClusterId } from '../../apimachinery/meta/index.ts'
import type { KubeClient } from '../../client/index.ts'
import { logicalClusters, type LogicalCluster } from '../../crds/index.ts'
import {
  allControllers,
  memberClusterController,
  placementController,
  type OperatorContext,
  type OperatorController,
} from '../../operator/index.ts'
import { createUpstream, ensureNameserver, startSyncer, type ClusterIds, type Upstream } from '../../syncer/index.ts'

export interface MemberControllersOptions {
  /** Where pods in members reach the direct listener. */
  readonly advertise: { readonly host: string; readonly port: number }
  /** Default registry.k8s.io/coredns/coredns:v1.12.4. */
  readonly nameserverImage?: string
  readonly drainSeconds?: number
}

/** All controllers of the operator. One set of informers over the logical clusters serves the syncers of all members. */
export function memberControllers({
  advertise,
  nameserverImage,
  drainSeconds,
}: MemberControllersOptions): OperatorController[] {
  const upstreams = new WeakMap<OperatorContext, Upstream>()
  const members = memberClusterController({
    async startSyncer({ name, id, serviceNetwork, client: downstream, log, signal }, context) {
      let upstream = upstreams.get(context)
      if (upstream === undefined) {
        const { virtual, tenantInformers } = context
        const client = (cluster: string): KubeClient => virtual(`/clusters/${cluster}`)
        upstream = createUpstream({ informers: tenantInformers, client, ids: clusterIds(context) })
        upstreams.set(context, upstream)
      }
      const image = nameserverImage === undefined ? {} : { image: nameserverImage }
      const nameserver = await ensureNameserver({ member: downstream, apiAddress: advertise, ...image, signal })
      const member = { name, id, serviceNetwork }
      return startSyncer({ member, upstream, downstream, apiAddress: advertise, nameserver, log, signal })
    },
  })
  return [...allControllers, members, placementController(drainSeconds === undefined ? {} : { drainSeconds })]
}

/** Deleted logical clusters that are remembered: their last copies in members may show up a little later. */
const maxGone = 10_000

/** Ids of logical clusters, kept true by the operator's informer. */
function clusterIds({ informers }: OperatorContext): ClusterIds {
  const informer = informers.of<LogicalCluster>(logicalClusters)
  const names = new Map<string, string>()
  const ids = new Map<string, ClusterId>()
  const listeners = new Set<(cluster: string) => void>()
  const gone = new Set<string>()
  const goneListeners = new Set<(id: string) => void>()
  informer.onChange(({ key, before, after }) => {
    const known = before === undefined ? undefined : ids.get(key)
    if (known !== undefined && before?.metadata.uid !== after?.metadata.uid) {
      names.delete(known)
      ids.delete(key)
      gone.add(known)
      for (const oldest of gone) {
        if (gone.size <= maxGone) break
        gone.delete(oldest)
      }
      for (const listener of goneListeners) listener(known)
    }
    if (after === undefined || ids.has(key)) return
    const id = clusterIdOf(after.metadata.uid ?? '')
    ids.set(key, id)
    names.set(id, key)
    for (const listener of listeners) listener(key)
  })
  return {
    idOf: (cluster) => ids.get(cluster),
    nameOf: (id) => names.get(id),
    onKnown(listener) {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
    isGone: (id) => gone.has(id),
    onGone(listener) {
      goneListeners.add(listener)
      return () => void goneListeners.delete(listener)
    },
  }
}
