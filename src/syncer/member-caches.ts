// The caches of a member: what the syncer reads there, and the indexes over it.
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { isStatusError } from '#apimachinery/status/index.ts'
import {
  createInformer,
  namespaceKeyOf,
  ObjectIndex,
  withoutManagedFields,
  type Informer,
  type KubeClient,
} from '#client/index.ts'
import { managedLabel, parseDownstreamNamespace } from '#crds/index.ts'
import type { Logger } from '#telemetry/index.ts'
import { GatewayPorts } from './context/gateway-ports.ts'
import { controllerOf } from './context/owners.ts'
import { gvrs, type ResourceName } from './context/resources.ts'
import type { SyncContext } from './context/sync-context.ts'
import { forEachResource, type Upstream } from './context/upstream.ts'
import { podsIn } from './rules/slices.ts'
import type { NodeUp } from './transform/node-up.ts'
import { events, onlyOurs } from './up/events.ts'
import { reportedName } from './up/history.ts'
import { cachedNode, nodesGvr } from './up/nodes.ts'

/** Backoff of the member's informers: short, so that a member that comes back is noticed within seconds. */
const backoff = { firstMs: 100, maxMs: 5000 }

export type MemberCaches = Record<ResourceName, Informer<KubeObject>>

interface Source {
  readonly downstream: KubeClient
  readonly log: Logger
  readonly signal: AbortSignal
}

export function memberCaches({ downstream: client, log, signal }: Source): MemberCaches {
  const labelSelector = `${managedLabel}=true`
  const common = { client, labelSelector, transform: withoutManagedFields<KubeObject>, backoff, log, signal }
  return forEachResource((resource) => createInformer<KubeObject>({ ...common, gvr: gvrs[resource] }))
}

/** The member's Events. They have no label of ours to select by: of Events in other namespaces only names are kept. */
export function memberEvents(
  { downstream: client, log, signal }: Source,
  isAdopted: (namespace: string) => boolean,
): Informer<KubeObject> {
  const isOurs = (namespace: string): boolean =>
    parseDownstreamNamespace(namespace) !== undefined || isAdopted(namespace)
  return createInformer<KubeObject>({ client, gvr: events, transform: onlyOurs(isOurs), backoff, log, signal })
}

export function memberNodes({ downstream: client, log, signal }: Source): Informer<NodeUp> {
  return createInformer<NodeUp>({ client, gvr: nodesGvr, transform: cachedNode, backoff, log, signal })
}

/**
 * Resolves when the caches of the member are complete. A member that joined before a kind was synced does not let us
 * read it: objects of this kind wait until the member has joined again, and the others do not wait for them.
 */
export async function memberSynced({ downstream, log, signal }: Source, caches: MemberCaches): Promise<void> {
  const synced = async (resource: ResourceName): Promise<void> => {
    try {
      await downstream.list(gvrs[resource], { limit: 1, metadataOnly: true, signal })
    } catch (error) {
      if (isStatusError(error, 'Forbidden')) {
        log.warn('the member must be joined again before this kind is synced', { resource })
        return
      }
      // The informer retries after any other error.
    }
    await caches[resource].synced(signal)
  }
  await Promise.all((Object.keys(caches) as ResourceName[]).map(synced))
}

/** The indexes over the caches of both sides that one syncer has. */
export class Indexes implements Disposable {
  /** Objects in the member by namespace. */
  readonly byNamespace: Readonly<Record<ResourceName, ObjectIndex>>
  /** Objects in the member by `NAMESPACE|KIND/NAME` of their controllers. */
  readonly byController: Readonly<Record<Parameters<SyncContext['controlledBy']>[0], ObjectIndex>>
  /** EndpointSlices in the member by `NAMESPACE/NAME` of the pods that they name. */
  readonly byPod: ObjectIndex
  /** Upstream ReplicaSets by `CLUSTER|NAMESPACE|NAME`; NAME is the name that this member reported for its own one. */
  readonly byReported: ObjectIndex

  constructor(caches: MemberCaches, upstream: Upstream, member: string) {
    this.byNamespace = forEachResource((resource) => new ObjectIndex(caches[resource], (key) => [namespaceKeyOf(key)]))
    this.byController = {
      pods: byController(caches.pods),
      replicasets: byController(caches.replicasets),
      jobs: byController(caches.jobs),
      controllerrevisions: byController(caches.controllerrevisions),
      persistentvolumeclaims: byController(caches.persistentvolumeclaims),
    }
    this.byPod = new ObjectIndex(caches.endpointslices, (key, slice) =>
      podsIn(slice).map((name) => `${namespaceKeyOf(key)}/${name}`),
    )
    this.byReported = new ObjectIndex(upstream.informers.replicasets, (key, replicaSet) => {
      const name = reportedName(replicaSet, member)
      return name === undefined ? [] : [`${namespaceKeyOf(key)}|${name}`]
    })
  }

  [Symbol.dispose](): void {
    const { byNamespace, byController: controlled, byPod, byReported } = this
    for (const index of [...Object.values(byNamespace), ...Object.values(controlled), byPod, byReported])
      index[Symbol.dispose]()
  }
}

function byController(informer: Informer<KubeObject>): ObjectIndex {
  return new ObjectIndex(informer, (key, object) => {
    const owner = controllerOf(object)
    return owner === undefined ? [] : [`${namespaceKeyOf(key)}|${owner.kind}/${owner.name}`]
  })
}

/** The ports of the gateway in the member, as its EndpointSlices have them now. */
export function gatewayPorts({ endpointslices }: MemberCaches): GatewayPorts {
  const ports = new GatewayPorts(() => performance.now())
  for (const slice of endpointslices.store.list()) ports.load(slice)
  return ports
}
