// Measures decisions of placement: the operator's own inputs, indexes and plans over objects in memory, without an API
// server. Members report at once what they were given, so only the time of decisions counts.
import { randomUUID } from 'node:crypto'
import { memoryUsage } from 'node:process'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { cloneJson, groupResourceText, type GroupVersionResource, type KubeObject } from '#apimachinery/meta/index.ts'
import { ObjectIndex, namespaceKeyOf, type Informer, type SharedInformers } from '#client/index.ts'
import { CacheStore } from '#client/informer/store.ts'
import {
  hasCopy,
  logicalClusters,
  memberClusters,
  memberStatusAnnotation,
  placedOnAnnotation,
  placements,
  sourceOf,
  syncerFinalizer,
  type MemberCluster,
  type PlacedOn,
} from '#crds/index.ts'
import { enqueueChanges } from '#operator/placement/enqueue.ts'
import { observe } from '#operator/placement/observe.ts'
import { PlacementInputs } from '#operator/placement/placement-inputs.ts'
import { plan } from '#operator/placement/plan.ts'
import { parseWorkloadKey } from '#operator/placement/workload-key.ts'
import type { Measurement, Numbers } from './measurement.ts'
import { quantile, rounded } from './statistics.ts'

const memberCount = 50
const clusterCount = 100
const namespacesPerCluster = 5
const perNamespace = 10
const replicas = 3

const deployments = { group: 'apps', version: 'v1', resource: 'deployments' }
const namespaces = { group: '', version: 'v1', resource: 'namespaces' }

export const placement: Measurement = {
  name: 'placement',
  describes: '5,000 Deployments on 50 members: decisions, a member that flaps, a drain; pure, without an API server',
  run: () => Promise.resolve(measure()),
}

function measure(): Numbers {
  const before = heapBytes()
  const fleet = new Fleet()
  using inputs = new PlacementInputs({ informers: fleet.admins, tenantInformers: fleet.tenants })
  fleet.fill()
  const filled = heapBytes()
  using world = new World(fleet, inputs)
  const first = world.settle()
  const after = heapBytes()
  const all = clusterCount * namespacesPerCluster * perNamespace

  fleet.setMember('member-07', { ready: false })
  const gone = world.settle()
  fleet.setMember('member-07', { ready: true })
  const back = world.settle()
  const placed = [...inputs.workloadKeysIn('member-07')].length

  fleet.setMember('member-07', { state: 'Draining' })
  const drain = world.settle()
  return {
    'decisions p50 ms': rounded(quantile(first.latencies, 0.5)),
    'decisions p99 ms': rounded(quantile(first.latencies, 0.99)),
    'decisions/s': rounded(first.latencies.length / first.seconds),
    'decisions per Deployment until it serves': rounded(first.latencies.length / all),
    'Deployments/s until they serve': rounded(all / first.seconds),
    'KiB of heap per Deployment, as objects': rounded((filled - before) / all / 1024),
    'KiB of heap per Deployment, of indexes and decisions': rounded((after - filled) / all / 1024),
    'workloads on the member that flaps': placed,
    'visits when it does not answer': gone.latencies.length,
    'visits when it answers again': back.latencies.length,
    'decisions that a flap changes': gone.changed + back.changed,
    'moves in a drain of it': placed - [...inputs.workloadKeysIn('member-07')].length,
    'moves/s in the drain': rounded(placed / drain.seconds),
  }
}

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

function heapBytes(): number {
  collect()
  return memoryUsage().heapUsed
}

/** Informers over objects that this program writes. */
class Fleet {
  readonly #stores = new Map<string, CacheStore<KubeObject>>()
  readonly #indexes = new Map<string, ObjectIndex>()
  readonly admins = this.#informers('admins')
  readonly tenants = this.#informers('tenants')

  store(side: string, gvr: GroupVersionResource): CacheStore<KubeObject> {
    const key = `${side} ${groupResourceText(gvr)}`
    let store = this.#stores.get(key)
    if (store === undefined) {
      store = new CacheStore<KubeObject>((error) => {
        throw error
      })
      this.#stores.set(key, store)
    }
    return store
  }

  #informers(side: string): SharedInformers {
    const of = <T extends KubeObject>(gvr: GroupVersionResource): Informer<T> => {
      const store = this.store(side, gvr)
      const informer = {
        store,
        onChange: (listener: Parameters<typeof store.subscribe>[0]) => store.subscribe(listener),
        synced: () => Promise.resolve(),
        hasSynced: true,
        [Symbol.asyncDispose]: () => Promise.resolve(),
      }
      return informer as unknown as Informer<T>
    }
    return {
      of,
      byNamespace: (gvr) => {
        const key = `${side} ${groupResourceText(gvr)}`
        const known = this.#indexes.get(key) ?? new ObjectIndex(of(gvr), (objectKey) => [namespaceKeyOf(objectKey)])
        this.#indexes.set(key, known)
        return known
      },
    }
  }

  fill(): void {
    for (let i = 0; i < memberCount; i++) {
      const name = `member-${String(i).padStart(2, '0')}`
      this.store('admins', memberClusters).put(name, memberObject(name, i))
    }
    this.store('admins', placements).put('eu', {
      apiVersion: 'kcp.dev/v1alpha1',
      kind: 'Placement',
      metadata: { name: 'eu', uid: 'eu', resourceVersion: '1' },
      spec: {
        logicalClusterSelector: { matchLabels: { home: 'eu' } },
        require: { labelSelector: { matchLabels: { region: 'eu' } } },
      },
    })
    for (let c = 0; c < clusterCount; c++) {
      const cluster = `tenant-${c}`
      const labels: Record<string, string> = c % 2 === 0 ? { home: 'eu' } : {}
      this.store('admins', logicalClusters).put(cluster, {
        apiVersion: 'kcp.dev/v1alpha1',
        kind: 'LogicalCluster',
        metadata: { name: cluster, uid: cluster, resourceVersion: '1', labels },
      })
      for (let n = 0; n < namespacesPerCluster; n++) this.#fillNamespace(cluster, `space-${n}`)
    }
  }

  #fillNamespace(cluster: string, namespace: string): void {
    const metadata = { name: namespace, uid: `${cluster}-${namespace}`, resourceVersion: '1' }
    this.store('tenants', namespaces).put(`${cluster}|${namespace}`, { apiVersion: 'v1', kind: 'Namespace', metadata })
    for (let d = 0; d < perNamespace; d++)
      this.store('tenants', deployments).put(
        `${cluster}|${namespace}/web-${d}`,
        deploymentObject(namespace, `web-${d}`),
      )
  }

  setMember(name: string, change: { ready?: boolean; state?: 'Active' | 'Draining' }): void {
    const store = this.store('admins', memberClusters)
    const member = cloneJson(store.get(name) as MemberCluster)
    const { ready, state } = change
    if (state !== undefined) member.spec = { ...member.spec, state }
    if (ready !== undefined) member.status = { ...member.status, conditions: conditionsOf(ready) }
    member.metadata.resourceVersion = String(Number(member.metadata.resourceVersion) + 1)
    store.put(name, member)
  }
}

interface Settled {
  readonly latencies: readonly number[]
  readonly seconds: number
  /** Decisions that differ from those before them. */
  readonly changed: number
}

/** The controller's loop: reconciles what changes concern until nothing changes any more. */
class World implements Disposable {
  readonly #fleet: Fleet
  readonly #inputs: PlacementInputs
  readonly #queue = new Set<string>()
  readonly #end: () => void
  #revision = 1

  constructor(fleet: Fleet, inputs: PlacementInputs) {
    this.#fleet = fleet
    this.#inputs = inputs
    this.#end = enqueueChanges(inputs, (key) => this.#queue.add(key))
  }

  [Symbol.dispose](): void {
    this.#end()
  }

  settle(): Settled {
    const latencies: number[] = []
    let changed = 0
    const began = performance.now()
    for (const key of this.#queue) {
      this.#queue.delete(key)
      const start = performance.now()
      if (this.#reconcile(key)) changed++
      latencies.push(performance.now() - start)
    }
    return { latencies, seconds: (performance.now() - began) / 1000, changed }
  }

  #reconcile(key: string): boolean {
    const ref = parseWorkloadKey(key)
    const workload = ref && this.#inputs.workload(ref)
    if (ref === undefined || workload === undefined) return false
    const nowMs = Date.now()
    const observed = observe(ref, workload, this.#inputs, nowMs)
    if (observed === undefined) return false
    const { placedOn } = plan(observed, { nowMs, drainSeconds: 0, soakSeconds: 0 })
    this.#inputs.usage.assume(key, placedOn, workload)
    if (placedOn === observed.placedOn) return false
    const written = withReports(workload as KubeObject, placedOn, String(++this.#revision))
    this.#fleet.store('tenants', deployments).put(ref.objectKey, written)
    return true
  }
}

/** The workload with the decision, and with what its members report when they have done it. */
function withReports(workload: KubeObject, placed: PlacedOn, resourceVersion: string): KubeObject {
  const members = Object.entries(placed).filter(([, copy]) => hasCopy(copy))
  const counts = { replicas, readyReplicas: replicas, availableReplicas: replicas, updatedReplicas: replicas }
  const reports = members.map(([member, copy]): [string, string] => [
    memberStatusAnnotation(member),
    JSON.stringify({ observed: sourceOf(workload['spec'], copy), ...counts }),
  ])
  return {
    ...workload,
    metadata: {
      ...workload.metadata,
      resourceVersion,
      annotations: { [placedOnAnnotation]: JSON.stringify(placed), ...Object.fromEntries(reports) },
      finalizers: members.map(([member]) => syncerFinalizer(member)),
    },
  }
}

function conditionsOf(ready: boolean): NonNullable<NonNullable<MemberCluster['status']>['conditions']> {
  const lastTransitionTime = new Date().toISOString()
  const reason = ready ? 'Answers' : 'NoAnswer'
  return (['Ready', 'Reachable'] as const).map((type) => ({
    ...{ type, status: ready ? ('True' as const) : ('False' as const), reason, message: '', lastTransitionTime },
  }))
}

function memberObject(name: string, i: number): KubeObject {
  return {
    apiVersion: 'kcp.dev/v1alpha1',
    kind: 'MemberCluster',
    metadata: {
      name,
      uid: name,
      resourceVersion: '1',
      labels: { region: i % 2 === 0 ? 'eu' : 'us', zone: `z${i % 5}` },
    },
    spec: {},
    status: { allocatable: { cpu: '400', memory: '1600Gi', pods: '2000' }, conditions: conditionsOf(true) },
  }
}

function deploymentObject(namespace: string, name: string): KubeObject {
  const labels = { app: name }
  const resources = { requests: { cpu: '100m', memory: '128Mi' } }
  const containers = [{ name: 'web', image: 'example/web:1', resources, ports: [{ containerPort: 8080 }] }]
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name, namespace, uid: randomUUID(), resourceVersion: '1', generation: 1, labels },
    spec: { replicas, selector: { matchLabels: labels }, template: { metadata: { labels }, spec: { containers } } },
  }
}
