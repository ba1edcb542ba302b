// A logical cluster played by an ordinary cluster with its namespace controller and garbage collector, members with all
// controllers and a simulated node, and a syncer for each member.
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { sharedInformers, type KubeClient } from '#client/index.ts'
import { placedOnAnnotation } from '#crds/index.ts'
import { gvrs } from '#syncer/context/resources.ts'
import { startSyncer, type Syncer } from '#syncer/syncer.ts'
import { createUpstream } from '#syncer/context/upstream.ts'
import { createLogger } from '#telemetry/index.ts'
import { startCluster, waitFor, type Cluster, type ClusterOptions } from '#test/support/index.ts'
import { asWildcard, clientOf, oneCluster } from './ordinary-upstream.ts'
import { simulateKubelet, type SimulatedKubelet } from './played-member.ts'

export type Resource = keyof typeof gvrs

interface PlayedMember {
  readonly client: KubeClient
  readonly kubelet: SimulatedKubelet
  /** Path of its kubeconfig. */
  readonly kubeconfig: string
}

export interface SyncedMembers extends AsyncDisposable {
  readonly up: KubeClient
  readonly members: Readonly<Record<string, PlayedMember>>
  /** Name of an upstream namespace in members. */
  readonly below: (namespace: string) => string
  /** Stops the syncer of a member, as if the member did not answer; the function that is returned starts it again. */
  readonly cutOff: (member: string) => Promise<() => void>
}

/** Starts everything; `names` are those of the members. */
export async function startSyncedMembers(names: readonly string[]): Promise<SyncedMembers> {
  await using stack = new AsyncDisposableStack()
  const life = new AbortController()
  const log = createLogger({ level: (process.env['KCP_TEST_LOG'] as 'debug' | undefined) ?? 'error' })
  const ids = oneCluster('acme')
  const flags = {
    'kube-apiserver': ['--disable-admission-plugins=ServiceAccount'],
    'kube-controller-manager': [
      '--controllers=namespace-controller,garbage-collector-controller,persistentvolumeclaim-protection-controller',
    ],
  }
  const started = async (options: ClusterOptions): Promise<Cluster> => stack.use(await startCluster(options))
  const [upCluster, clusters] = await Promise.all([
    started({ name: 'up', controllerManager: true, flags }),
    Promise.all(names.map((name) => started({ name, controllerManager: true }))),
  ])
  const up = await clientOf(upCluster.kubeconfig, stack)
  const informers = sharedInformers(asWildcard(up, 'acme'), { allClusters: true, log, signal: life.signal })
  const upstream = createUpstream({ informers, client: () => up, ids })
  const members: Record<string, PlayedMember> = {}
  const syncers = new Map<string, Syncer>()
  const start = (name: string, downstream: KubeClient): void =>
    void syncers.set(
      name,
      startSyncer({
        member: { name, id: `${name}member`, serviceNetwork: 'Flat' },
        upstream,
        downstream,
        apiAddress: { host: 'kcp.example', port: 7443 },
        log,
        signal: life.signal,
      }),
    )
  for (const [index, cluster] of clusters.entries()) {
    const { name } = cluster
    const client = await clientOf(cluster.kubeconfig, stack)
    members[name] = {
      client,
      kubeconfig: cluster.kubeconfig,
      kubelet: simulateKubelet(client, { subnet: `10.9${index}.0`, signal: life.signal }),
    }
    start(name, client)
  }
  stack.defer(async () => {
    life.abort()
    await Promise.all([...syncers.values()].map((syncer) => syncer[Symbol.asyncDispose]()))
  })
  const owned = stack.move()
  return {
    up,
    members,
    below: (namespace) => `${ids.id}-${namespace}`,
    async cutOff(name) {
      await syncers.get(name)?.[Symbol.asyncDispose]()
      return () => start(name, members[name]!.client)
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  }
}

/** What the scheduler would have written: a copy in each member. */
export function servingOn(...members: readonly string[]): Record<string, string> {
  return {
    [placedOnAnnotation]: JSON.stringify(Object.fromEntries(members.map((name) => [name, { state: 'Serving' }]))),
  }
}

/** Waits for what the attempt returns. */
export function until<T>(what: string, attempt: () => Promise<T | undefined | false>): Promise<T> {
  return waitFor(async () => (await attempt()) || undefined, { what, deadlineMs: 60_000 })
}

/** A namespace upstream or in a member, with the requests that tests make there. */
export function space(client: KubeClient, namespace: string): Space {
  const { signal } = new AbortController()
  return {
    create: (resource, object) =>
      client.create(gvrs[resource], { ...object, metadata: { ...object.metadata, namespace } }, { signal }),
    get: (resource, name) => client.tryGet<KubeObject>(gvrs[resource], { namespace, name }, { signal }),
    list: async (resource) => (await client.list<KubeObject>(gvrs[resource], { namespace, signal })).items,
    patch: (resource, name, patch) =>
      client.patch<KubeObject>(gvrs[resource], { namespace, name }, 'merge', patch, { signal }),
    delete: (resource, name, propagationPolicy) =>
      client.delete(gvrs[resource], { namespace, name }, { propagationPolicy, signal }),
    begin: async () => {
      const object = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } }
      await client.create(gvrs.namespaces, object, { signal })
    },
    end: () => client.delete(gvrs.namespaces, { name: namespace }, { signal }),
  }
}

export interface Space {
  create(resource: Resource, object: KubeObject): Promise<KubeObject>
  get(resource: Resource, name: string): Promise<KubeObject | undefined>
  list(resource: Resource): Promise<KubeObject[]>
  patch(resource: Resource, name: string, patch: object): Promise<KubeObject>
  delete(resource: Resource, name: string, propagationPolicy: 'Background' | 'Foreground' | 'Orphan'): Promise<void>
  /** Creates the namespace. */
  begin(): Promise<void>
  /** Deletes the namespace. */
  end(): Promise<void>
}
