// Deployments: a ReplicaSet for each template, and rolling updates between them, by the rules of Kubernetes.
import { jsonEqual } from '#apimachinery/json/index.ts'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import type { ReconcileResult } from '#reconcile/index.ts'
import {
  controlledBy,
  keyOf,
  type Condition,
  type Deployment,
  type PodTemplate,
  type ReplicaSet,
} from '#simulation/cluster/objects.ts'
import { numberOf, withCondition } from '#simulation/cluster/pod-facts.ts'
import type { Simulation } from '#simulation/cluster/simulation.ts'
import { hashOf } from './pod-control.ts'
import { isSameStatus } from './replica-sets.ts'

const by = 'deployment-controller'
const hashLabel = 'pod-template-hash'
const revisionAnnotation = 'deployment.kubernetes.io/revision'
const desiredAnnotation = 'deployment.kubernetes.io/desired-replicas'
const maxAnnotation = 'deployment.kubernetes.io/max-replicas'
const notCopied = new Set([
  revisionAnnotation,
  desiredAnnotation,
  maxAnnotation,
  'kubectl.kubernetes.io/last-applied-configuration',
])

export function startDeployments(simulation: Simulation): void {
  const { deployments, replicasets, pods } = simulation.cache
  simulation.loop({
    name: by,
    follow(enqueue) {
      deployments.onChange((after) => {
        if (after !== undefined) enqueue(keyOf(after))
      })
      replicasets.onChange((after, before) => {
        const set = after ?? before
        const owner = set?.metadata.ownerReferences?.find(
          ({ controller, kind }) => controller === true && kind === 'Deployment',
        )
        if (owner !== undefined) enqueue(`${set?.metadata.namespace ?? ''}/${owner.name}`)
      })
      // Strategy Recreate waits until the last old pod is gone.
      pods.onChange((after, before) => {
        if (after !== undefined || before === undefined) return
        const set = before.metadata.ownerReferences?.find(({ kind }) => kind === 'ReplicaSet')
        const owner =
          set && replicasets.get(`${before.metadata.namespace ?? ''}/${set.name}`)?.metadata.ownerReferences?.[0]
        if (owner !== undefined) enqueue(`${before.metadata.namespace ?? ''}/${owner.name}`)
      })
    },
    reconcile: async (key) => {
      const deployment = deployments.get(key)
      if (deployment === undefined || deployment.metadata.deletionTimestamp !== undefined) return undefined
      return await new Rollout(simulation, deployment).reconcile()
    },
  })
}

/** One reconcile of a Deployment. */
class Rollout {
  readonly #simulation: Simulation
  readonly #deployment: Deployment
  readonly #replicas: number

  constructor(simulation: Simulation, deployment: Deployment) {
    this.#simulation = simulation
    this.#deployment = deployment
    this.#replicas = deployment.spec.replicas ?? 1
  }

  async reconcile(): Promise<ReconcileResult | undefined> {
    const { spec } = this.#deployment
    const isPaused = spec.paused === true
    const current = isPaused ? this.#newSet() : await this.#ensureNewSet()
    const before = this.#oldSets(current)
    if (isPaused) await this.#scaleInPlace(current)
    else if (spec.strategy?.type === 'Recreate') await this.#recreate(current, before)
    else await this.#roll(current, before)
    if (!isPaused) await this.#removeHistory(current)
    return await this.#writeStatus(current)
  }

  #sets(): ReplicaSet[] {
    return this.#simulation.cache.replicasets.controlledBy(this.#deployment.metadata.uid ?? '')
  }

  /** The ReplicaSet with the template of the Deployment, as it is in the cache now. */
  #newSet(): ReplicaSet | undefined {
    const { template } = this.#deployment.spec
    return this.#sets()
      .sort((a, b) => (a.metadata.creationTimestamp ?? '').localeCompare(b.metadata.creationTimestamp ?? ''))
      .find((set) => jsonEqual(withoutHash(set.spec.template), withoutHash(template)))
  }

  #oldSets(current: ReplicaSet | undefined): ReplicaSet[] {
    return this.#sets().filter(({ metadata }) => metadata.uid !== current?.metadata.uid)
  }

  async #ensureNewSet(): Promise<ReplicaSet | undefined> {
    const found = this.#newSet()
    const highest = Math.max(0, ...this.#oldSets(found).map(revisionOf))
    if (found === undefined) return await this.#createSet(highest + 1)
    const revision = Math.max(highest + 1, revisionOf(found))
    await this.#writeRevision(revision)
    const wanted = { ...this.#copiedAnnotations(), [revisionAnnotation]: String(revision) }
    const known = found.metadata.annotations ?? {}
    const isSame = Object.entries(wanted).every(([name, value]) => known[name] === value)
    return isSame ? found : await this.#simulation.patch('replicasets', found, { metadata: { annotations: wanted } })
  }

  async #createSet(revision: number): Promise<ReplicaSet> {
    const { metadata, spec } = this.#deployment
    const hash = hashOf(spec.template)
    const { template, minReadySeconds } = spec
    const selector = { ...spec.selector, matchLabels: { ...spec.selector.matchLabels, [hashLabel]: hash } }
    const labels = { ...template.metadata?.labels, [hashLabel]: hash }
    const object: KubeObject = {
      apiVersion: 'apps/v1',
      kind: 'ReplicaSet',
      metadata: {
        name: `${(metadata.name ?? '').slice(0, 240)}-${hash}`,
        namespace: metadata.namespace ?? '',
        labels,
        annotations: {
          ...this.#copiedAnnotations(),
          [revisionAnnotation]: String(revision),
          ...this.#sizeAnnotations(),
        },
        ownerReferences: [controlledBy(this.#deployment)],
      },
      spec: {
        replicas: this.#newReplicas(0),
        ...(minReadySeconds !== undefined && { minReadySeconds }),
        selector,
        template: { ...template, metadata: { ...template.metadata, labels } },
      },
    }
    const made = await this.#simulation.create('replicasets', object)
    await this.#writeRevision(revision)
    this.#tell(
      'ScalingReplicaSet',
      `Scaled up replica set ${made.metadata.name ?? ''} from 0 to ${made.spec.replicas ?? 0}`,
    )
    return made
  }

  #copiedAnnotations(): Record<string, string> {
    const entries = Object.entries(this.#deployment.metadata.annotations ?? {})
    return Object.fromEntries(entries.filter(([name]) => !notCopied.has(name)))
  }

  #sizeAnnotations(): Record<string, string> {
    return { [desiredAnnotation]: String(this.#replicas), [maxAnnotation]: String(this.#replicas + this.#surge()) }
  }

  async #writeRevision(revision: number): Promise<void> {
    const text = String(revision)
    if (this.#deployment.metadata.annotations?.[revisionAnnotation] === text) return
    const patch = { metadata: { annotations: { [revisionAnnotation]: text } } }
    // With the status, as upstream: an annotation that is written alone raises the generation.
    await this.#simulation.patch('deployments', this.#deployment, patch, { subresource: 'status' })
  }

  #surge(): number {
    const { strategy } = this.#deployment.spec
    return strategy?.type === 'Recreate' ? 0 : numberOf(strategy?.rollingUpdate?.maxSurge, this.#replicas, 'up')
  }

  #maxUnavailable(): number {
    const { strategy } = this.#deployment.spec
    if (strategy?.type === 'Recreate') return 0
    const down = numberOf(strategy?.rollingUpdate?.maxUnavailable, this.#replicas, 'down')
    // Otherwise the rollout could not go on.
    return Math.min(this.#replicas, down === 0 && this.#surge() === 0 ? 1 : down)
  }

  /** How many replicas the new ReplicaSet may have now. `has`: how many it has. */
  #newReplicas(has: number): number {
    const others = this.#oldSets(this.#newSet()).reduce((sum, set) => sum + (set.spec.replicas ?? 0), 0)
    if (this.#deployment.spec.strategy?.type === 'Recreate') return others === 0 ? this.#replicas : 0
    const room = this.#replicas + this.#surge() - others - has
    return room <= 0 ? has : Math.min(this.#replicas, has + room)
  }

  async #roll(current: ReplicaSet | undefined, before: readonly ReplicaSet[]): Promise<void> {
    if (current === undefined) return
    const has = current.spec.replicas ?? 0
    const next = has > this.#replicas ? this.#replicas : this.#newReplicas(has)
    await this.#scale(current, next)
    let spare = this.#spare(before, next)
    // First replicas that do not serve, then those that do.
    const active = before.filter(({ spec }) => (spec.replicas ?? 0) > 0)
    for (const set of active) {
      const unhealthy = (set.spec.replicas ?? 0) - (set.status?.availableReplicas ?? 0)
      const cut = Math.min(unhealthy, spare.all)
      if (cut > 0 && isObserved(set)) {
        await this.#scale(set, (set.spec.replicas ?? 0) - cut)
        spare = { all: spare.all - cut, available: spare.available }
      }
    }
    for (const set of this.#oldSets(current).filter(({ spec }) => (spec.replicas ?? 0) > 0)) {
      const cut = Math.min(set.spec.replicas ?? 0, spare.available, spare.all)
      if (cut <= 0) return
      await this.#scale(set, (set.spec.replicas ?? 0) - cut)
      spare = { all: spare.all - cut, available: spare.available - cut }
    }
  }

  /** How many old replicas may go: of all, and of those that are available. */
  #spare(before: readonly ReplicaSet[], newReplicas: number): { all: number; available: number } {
    const minAvailable = this.#replicas - this.#maxUnavailable()
    const current = this.#newSet()
    const all = [...before, ...(current === undefined ? [] : [current])]
    const total = before.reduce((sum, set) => sum + (set.spec.replicas ?? 0), 0) + newReplicas
    const newAvailable = current?.status?.availableReplicas ?? 0
    const available = all.reduce(
      (sum, set) => sum + Math.min(set.status?.availableReplicas ?? 0, set.spec.replicas ?? 0),
      0,
    )
    return { all: total - minAvailable - (newReplicas - newAvailable), available: available - minAvailable }
  }

  async #recreate(current: ReplicaSet | undefined, before: readonly ReplicaSet[]): Promise<void> {
    for (const set of before) await this.#scale(set, 0)
    const { pods } = this.#simulation.cache
    const isOldGone = before.every(({ metadata }) => pods.controlledBy(metadata.uid ?? '').length === 0)
    if (current !== undefined && isOldGone) await this.#scale(current, this.#replicas)
  }

  /** A paused Deployment is scaled without a rollout: its largest ReplicaSet takes the difference. */
  async #scaleInPlace(current: ReplicaSet | undefined): Promise<void> {
    const active = this.#sets().filter(({ spec }) => (spec.replicas ?? 0) > 0)
    const [largest = current] = active.sort((a, b) => (b.spec.replicas ?? 0) - (a.spec.replicas ?? 0))
    if (largest === undefined) return
    const total = active.reduce((sum, set) => sum + (set.spec.replicas ?? 0), 0)
    await this.#scale(largest, Math.max(0, (largest.spec.replicas ?? 0) + this.#replicas - total))
  }

  async #scale(set: ReplicaSet, replicas: number): Promise<void> {
    const from = set.spec.replicas ?? 0
    const annotations = this.#sizeAnnotations()
    const known = set.metadata.annotations ?? {}
    if (from === replicas && Object.entries(annotations).every(([name, value]) => known[name] === value)) return
    await this.#simulation.patch('replicasets', set, { metadata: { annotations }, spec: { replicas } })
    if (from === replicas) return
    const way = replicas > from ? 'up' : 'down'
    this.#tell('ScalingReplicaSet', `Scaled ${way} replica set ${set.metadata.name ?? ''} from ${from} to ${replicas}`)
  }

  async #removeHistory(current: ReplicaSet | undefined): Promise<void> {
    const limit = this.#deployment.spec.revisionHistoryLimit ?? 10
    const empty = this.#oldSets(current)
      .filter((set) => (set.spec.replicas ?? 0) === 0 && (set.status?.replicas ?? 0) === 0)
      .filter((set) => isObserved(set) && set.metadata.deletionTimestamp === undefined)
      .sort((a, b) => revisionOf(b) - revisionOf(a))
    for (const set of empty.slice(limit))
      await this.#simulation.delete('replicasets', set, { propagationPolicy: 'Background' })
  }

  async #writeStatus(current: ReplicaSet | undefined): Promise<ReconcileResult | undefined> {
    const { deployments } = this.#simulation.cache
    const latest = deployments.get(keyOf(this.#deployment)) ?? this.#deployment
    const fresh = current && this.#sets().find(({ metadata }) => metadata.uid === current.metadata.uid)
    const count = (field: 'replicas' | 'readyReplicas' | 'availableReplicas'): number =>
      this.#sets().reduce((sum, { status }) => sum + (status?.[field] ?? 0), 0)
    const available = count('availableReplicas')
    const total = count('replicas')
    const wanted = this.#sets().reduce((sum, { spec }) => sum + (spec.replicas ?? 0), 0)
    const updated = fresh?.status?.replicas ?? 0
    const counts = {
      replicas: total,
      updatedReplicas: updated,
      readyReplicas: count('readyReplicas'),
      availableReplicas: available,
      unavailableReplicas: Math.max(0, wanted - available),
    }
    const isComplete = updated === this.#replicas && total === this.#replicas && available === this.#replicas
    const { conditions, again } = this.#conditions(latest, fresh, { isComplete, counts })
    const status = { observedGeneration: this.#deployment.metadata.generation ?? 0, ...counts, conditions }
    if (!isSameStatus(latest.status, status)) await this.#simulation.patchStatus('deployments', latest, status)
    return again
  }

  #conditions(
    { status, spec }: Deployment,
    current: ReplicaSet | undefined,
    { isComplete, counts }: { readonly isComplete: boolean; readonly counts: Readonly<Record<string, number>> },
  ): { readonly conditions: readonly Condition[]; readonly again?: ReconcileResult } {
    const now = this.#simulation.now()
    const isAvailable = (counts['availableReplicas'] ?? 0) >= this.#replicas - this.#maxUnavailable()
    let conditions = dated(status?.conditions, now, {
      type: 'Available',
      status: isAvailable ? 'True' : 'False',
      reason: isAvailable ? 'MinimumReplicasAvailable' : 'MinimumReplicasUnavailable',
      message: `Deployment ${isAvailable ? 'has' : 'does not have'} minimum availability.`,
    })
    const progress = this.#progress(status, current, {
      isComplete,
      counts,
      deadline: spec.progressDeadlineSeconds ?? 600,
    })
    conditions = dated(conditions, now, progress.condition)
    const failure = current?.status?.conditions?.find(({ type }) => type === 'ReplicaFailure')
    conditions = conditions.filter(({ type }) => type !== 'ReplicaFailure')
    if (failure !== undefined) conditions = dated(conditions, now, failure)
    return { conditions, ...(progress.again && { again: progress.again }) }
  }

  #progress(
    before: Deployment['status'],
    current: ReplicaSet | undefined,
    {
      isComplete,
      counts,
      deadline,
    }: { isComplete: boolean; counts: Readonly<Record<string, number>>; deadline: number },
  ): { condition: Omit<Condition, 'lastTransitionTime'>; again?: ReconcileResult } {
    const known = before?.conditions?.find(({ type }) => type === 'Progressing')
    const named = `ReplicaSet "${current?.metadata.name ?? ''}"`
    const now = this.#simulation.now()
    const condition = (status: Condition['status'], reason: string, message: string, lastUpdateTime?: string) => ({
      condition: {
        type: 'Progressing',
        status,
        reason,
        message,
        ...(lastUpdateTime !== undefined && { lastUpdateTime }),
      },
    })
    if (this.#deployment.spec.paused === true) return condition('Unknown', 'DeploymentPaused', 'Deployment is paused')
    if (isComplete) return condition('True', 'NewReplicaSetAvailable', `${named} has successfully progressed.`)
    // Without a rollout, pods that fail later say nothing about progress.
    if (known?.reason === 'NewReplicaSetAvailable' && counts['replicas'] === counts['updatedReplicas'])
      return { condition: known }
    const was = (before ?? {}) as Readonly<Record<string, number | undefined>>
    const hasProgressed =
      known === undefined ||
      known.reason === 'NewReplicaSetAvailable' ||
      known.status === 'Unknown' ||
      ['updatedReplicas', 'readyReplicas', 'availableReplicas'].some(
        (field) => (counts[field] ?? 0) > (was[field] ?? 0),
      )
    if (!hasProgressed && known.status === 'False') return { condition: known }
    const since = hasProgressed ? now : (known.lastUpdateTime ?? known.lastTransitionTime ?? now)
    const leftMs = Date.parse(since) + deadline * 1000 - Date.now()
    if (leftMs <= 0) return condition('False', 'ProgressDeadlineExceeded', `${named} has timed out progressing.`)
    const progressing = condition('True', 'ReplicaSetUpdated', `${named} is progressing.`, since)
    return { ...progressing, again: { requeueAfterSeconds: leftMs / 1000 + 0.5 } }
  }

  #tell(reason: string, message: string): void {
    void this.#simulation.event(this.#deployment, { type: 'Normal', reason, message, by })
  }
}

function revisionOf({ metadata }: ReplicaSet): number {
  return Number(metadata.annotations?.[revisionAnnotation] ?? 0)
}

function isObserved({ metadata, status }: ReplicaSet): boolean {
  return (status?.observedGeneration ?? 0) >= (metadata.generation ?? 0)
}

function withoutHash({ metadata = {}, spec }: PodTemplate): object {
  const { [hashLabel]: _, ...labels } = metadata.labels ?? {}
  return { metadata: { ...metadata, labels }, spec }
}

/** The conditions with this one, and the time of its last change, which rollouts are timed by. */
function dated(
  conditions: readonly Condition[] | undefined,
  now: string,
  next: Omit<Condition, 'lastTransitionTime'>,
): Condition[] {
  const before = conditions?.find(({ type }) => type === next.type)
  const isSame = before?.status === next.status && before.reason === next.reason && before.message === next.message
  const updated = next.lastUpdateTime ?? (isSame ? before.lastUpdateTime : undefined) ?? now
  return withCondition(conditions, { ...next, lastUpdateTime: updated }, now)
}
