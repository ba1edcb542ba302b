// StatefulSets: pods with fixed names, in their order, each with claims of its own.
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { isStatusError } from '#apimachinery/status/index.ts'
import type { ReconcileResult } from '#reconcile/index.ts'
import { controlledBy, keyOf, type Pod, type StatefulSet, type Volume } from '#simulation/cluster/objects.ts'
import { availableInMs, countAvailable, hasEnded, isReady } from '#simulation/cluster/pod-facts.ts'
import type { Simulation } from '#simulation/cluster/simulation.ts'
import { createPod, deletePod, followOwnedPods, hashOf } from './pod-control.ts'
import { isSameStatus } from './replica-sets.ts'

const by = 'statefulset-controller'
const revisionLabel = 'controller-revision-hash'

export function startStatefulSets(simulation: Simulation): void {
  const { statefulsets } = simulation.cache
  simulation.loop({
    name: by,
    follow(enqueue) {
      statefulsets.onChange((after) => {
        if (after !== undefined) enqueue(keyOf(after))
      })
      followOwnedPods(simulation, 'StatefulSet', enqueue)
    },
    reconcile: async (key) => {
      const set = statefulsets.get(key)
      if (set === undefined || set.metadata.deletionTimestamp !== undefined) return undefined
      return await reconcileSet(simulation, set)
    },
  })
}

interface Observed {
  readonly set: StatefulSet
  readonly revision: string
  /** By ordinal. */
  readonly pods: ReadonlyMap<number, Pod>
  readonly start: number
  readonly end: number
  readonly isOrdered: boolean
}

async function reconcileSet(simulation: Simulation, set: StatefulSet): Promise<ReconcileResult | undefined> {
  const revision = await ensureRevision(simulation, set)
  const observed = observe(simulation, set, revision)
  try {
    if (await fill(simulation, observed)) if (await shrink(simulation, observed)) await update(simulation, observed)
  } finally {
    await writeStatus(simulation, observe(simulation, set, revision))
  }
  return countAvailable([...observed.pods.values()], set.spec.minReadySeconds).again
}

function observe(simulation: Simulation, set: StatefulSet, revision: string): Observed {
  const start = set.spec.ordinals?.start ?? 0
  const pods = simulation.cache.pods.controlledBy(set.metadata.uid ?? '')
  const byOrdinal = new Map(pods.map((pod) => [Number(/\d+$/.exec(pod.metadata.name ?? '')?.[0]), pod]))
  const isOrdered = set.spec.podManagementPolicy !== 'Parallel'
  return { set, revision, pods: byOrdinal, start, end: start + (set.spec.replicas ?? 1), isOrdered }
}

/** The ControllerRevision of the template; makes it if it is missing. Resolves with its name. */
async function ensureRevision(simulation: Simulation, set: StatefulSet): Promise<string> {
  const { namespace = '', name = '', uid = '' } = set.metadata
  const data = { spec: { template: { ...set.spec.template, $patch: 'replace' } } }
  const revision = `${name}-${hashOf(set.spec.template)}`
  const known = simulation.cache.controllerrevisions.controlledBy(uid)
  if (known.some(({ metadata }) => metadata.name === revision)) return revision
  const highest = Math.max(0, ...known.map((one) => Number(one['revision'] ?? 0)))
  const object: KubeObject = {
    apiVersion: 'apps/v1',
    kind: 'ControllerRevision',
    metadata: {
      name: revision,
      namespace,
      labels: {
        ...set.spec.template.metadata?.labels,
        'controller.kubernetes.io/hash': revision.slice(name.length + 1),
      },
      ownerReferences: [controlledBy(set)],
    },
    data,
    revision: highest + 1,
  }
  await simulation.create('controllerrevisions', object).catch((error: unknown) => {
    if (!isStatusError(error, 'AlreadyExists')) throw error
  })
  return revision
}

/** Makes the missing pods, in order. Resolves with true if all are there and nothing has to be waited for. */
async function fill(
  simulation: Simulation,
  { set, pods, start, end, isOrdered, revision }: Observed,
): Promise<boolean> {
  for (let ordinal = start; ordinal < end; ordinal++) {
    const pod = pods.get(ordinal)
    if (pod === undefined) {
      await createOrdinal(simulation, { set, ordinal, revision: revisionFor(set, { ordinal, start, revision }) })
      if (isOrdered) return false
      continue
    }
    if (hasEnded(pod.status?.phase) && pod.metadata.deletionTimestamp === undefined) {
      await deletePod(simulation, set, pod, by)
      return false
    }
    if (isOrdered && !isServing(set, pod)) return false
  }
  return true
}

/** Below the partition of a rolling update, pods are made of the former template; it is kept in its revision. */
function revisionFor(
  set: StatefulSet,
  { ordinal, start, revision }: { readonly ordinal: number; readonly start: number; readonly revision: string },
): string {
  const partition = set.spec.updateStrategy?.rollingUpdate?.partition ?? 0
  const current = set.status?.currentRevision
  return current !== undefined && ordinal < start + partition ? current : revision
}

async function createOrdinal(
  simulation: Simulation,
  { set, ordinal, revision }: { readonly set: StatefulSet; readonly ordinal: number; readonly revision: string },
): Promise<void> {
  const { name: setName = '', namespace = '' } = set.metadata
  const name = `${setName}-${ordinal}`
  const stored = simulation.cache.controllerrevisions.get(`${namespace}/${revision}`)
  const kept = (stored?.['data'] as { spec?: { template?: StatefulSet['spec']['template'] } } | undefined)?.spec
    ?.template
  const template = kept ?? set.spec.template
  const volumes: Volume[] = []
  for (const claim of set.spec.volumeClaimTemplates ?? []) {
    const claimName = `${claim.metadata.name ?? ''}-${name}`
    await ensureClaim(simulation, { set, claim, claimName })
    volumes.push({ name: claim.metadata.name ?? '', persistentVolumeClaim: { claimName } })
  }
  const isShadowed = (volume: { readonly name: string }): boolean => volumes.some((one) => one.name === volume.name)
  const others = (template.spec.volumes ?? []).filter((volume) => !isShadowed(volume))
  await createPod(simulation, set, template, {
    name,
    labels: {
      'statefulset.kubernetes.io/pod-name': name,
      'apps.kubernetes.io/pod-index': String(ordinal),
      [revisionLabel]: revision,
    },
    spec: {
      hostname: name,
      ...(set.spec.serviceName && { subdomain: set.spec.serviceName }),
      volumes: [...volumes, ...others],
    },
    by,
  })
}

async function ensureClaim(
  simulation: Simulation,
  {
    set,
    claim,
    claimName,
  }: {
    readonly set: StatefulSet
    readonly claim: NonNullable<StatefulSet['spec']['volumeClaimTemplates']>[number]
    readonly claimName: string
  },
): Promise<void> {
  const namespace = set.metadata.namespace ?? ''
  if (simulation.cache.persistentvolumeclaims.get(`${namespace}/${claimName}`) !== undefined) return
  const { labels, annotations } = claim.metadata
  const matched = set.spec.selector.matchLabels ?? {}
  const metadata = {
    name: claimName,
    namespace,
    labels: { ...labels, ...matched },
    ...(annotations && { annotations }),
  }
  const object = { apiVersion: 'v1', kind: 'PersistentVolumeClaim', metadata, spec: claim.spec }
  await simulation.create('persistentvolumeclaims', object).catch((error: unknown) => {
    if (!isStatusError(error, 'AlreadyExists')) throw error
  })
}

/** Deletes pods beyond the replicas, the highest first. Resolves with true if there are none. */
async function shrink(simulation: Simulation, { set, pods, start, end, isOrdered }: Observed): Promise<boolean> {
  const surplus = [...pods].filter(([ordinal]) => ordinal < start || ordinal >= end).sort(([a], [b]) => b - a)
  for (const [, pod] of surplus) {
    if (pod.metadata.deletionTimestamp === undefined) await deletePod(simulation, set, pod, by)
    if (isOrdered) return false
  }
  return surplus.length === 0
}

/** Replaces pods of another template, the highest first, each when the one before it serves. */
async function update(simulation: Simulation, { set, pods, start, end, revision }: Observed): Promise<void> {
  const { type, rollingUpdate } = set.spec.updateStrategy ?? {}
  if (type === 'OnDelete') return
  for (let ordinal = end - 1; ordinal >= start + (rollingUpdate?.partition ?? 0); ordinal--) {
    const pod = pods.get(ordinal)
    if (pod === undefined || pod.metadata.deletionTimestamp !== undefined) return
    if (pod.metadata.labels?.[revisionLabel] !== revision) {
      await deletePod(simulation, set, pod, by)
      return
    }
    if (!isServing(set, pod)) return
  }
}

function isServing({ spec }: StatefulSet, pod: Pod): boolean {
  if (pod.metadata.deletionTimestamp !== undefined) return false
  return availableInMs(pod, spec.minReadySeconds ?? 0, Date.now()) === 0
}

async function writeStatus(simulation: Simulation, { set, pods, revision, start, end }: Observed): Promise<void> {
  const all = [...pods.values()]
  const live = all.filter(({ metadata }) => metadata.deletionTimestamp === undefined)
  const updated = live.filter(({ metadata }) => metadata.labels?.[revisionLabel] === revision).length
  const { status, metadata } = simulation.cache.statefulsets.get(keyOf(set)) ?? set
  const before = status?.currentRevision ?? revision
  const isDone = updated === end - start && live.every(isReady)
  const currentRevision = isDone ? revision : before
  const next = {
    observedGeneration: metadata.generation ?? 0,
    replicas: all.length,
    readyReplicas: live.filter(isReady).length,
    availableReplicas: countAvailable(live, set.spec.minReadySeconds).available,
    currentReplicas: live.filter((pod) => pod.metadata.labels?.[revisionLabel] === currentRevision).length,
    updatedReplicas: updated,
    currentRevision,
    updateRevision: revision,
    collisionCount: 0,
  }
  if (!isSameStatus(status, next)) await simulation.patchStatus('statefulsets', set, next)
}
