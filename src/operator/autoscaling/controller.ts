// Scales workloads that are divided among several members, by the HorizontalPodAutoscaler of their tenant: the
// autoscaler of one member would see its own pods alone. A workload in one member is scaled by the autoscaler there.
import type { GroupVersionResource, KubeObject } from '#apimachinery/meta/index.ts'
import { selectorFromObject, type LabelSelectorSource } from '#apimachinery/selector/index.ts'
import { systemClock, type Clock } from '#async/index.ts'
import { keyFor, namespaceKeyOf, parseKey, type DeepReadonly, type Informer, type KubeClient } from '#client/index.ts'
import { placedOn, replicasOf, workloadKinds } from '#crds/index.ts'
import type { ReconcileResult } from '#reconcile/index.ts'
import type { OperatorContext, OperatorController } from '#operator/framework/operator-context.ts'
import { loopWithMembers, untilOne } from '#operator/framework/loop.ts'
import type { Autoscaler } from './autoscaler.ts'
import { applyScale, applyStatus } from './apply.ts'
import { measure, type PodMetrics } from './observe.ts'
import { planRefused, planScale, type AutoscalerInput } from './plan.ts'
import { NoMetrics } from './replica-count.ts'
import { noHistory, type ScalingHistory } from './scaling-rules.ts'

type CachedObject = DeepReadonly<KubeObject>

export const autoscalers: GroupVersionResource = {
  group: 'autoscaling',
  version: 'v2',
  resource: 'horizontalpodautoscalers',
}
const pods: GroupVersionResource = { group: '', version: 'v1', resource: 'pods' }
const podMetrics: GroupVersionResource = { group: 'metrics.k8s.io', version: 'v1beta1', resource: 'pods' }
/** The kinds that can be divided. */
const scaledKinds = workloadKinds.filter(
  ({ move, paths: { replicas } }) => move === 'makeBeforeBreak' && replicas !== undefined,
)

export interface AutoscalingDeps {
  readonly clock?: Clock
  /** How often metrics are read. Default 15, as of kube-controller-manager. */
  readonly periodSeconds?: number
}

/** State of an autoscaler between two reconciles, in memory as in kube-controller-manager. */
interface Memory {
  history: ScalingHistory
  /** In Unix milliseconds: metrics are not read again before this time, unless the autoscaler has changed. */
  nextMs: number
  generation: number | undefined
  /** The last Events of a failure. */
  told: string
}

/** Scales divided workloads. Without members nothing is divided. */
export function autoscalingController({
  clock = systemClock,
  periodSeconds = 15,
}: AutoscalingDeps = {}): OperatorController {
  return loopWithMembers('autoscaling', async ({ context, signal }) => {
    const { tenantInformers } = context
    const scalers = tenantInformers.of<Autoscaler>(autoscalers)
    await untilOne(scalers, signal)
    const workloads = scaledKinds.map((row) => ({ ...row, informer: tenantInformers.of<KubeObject>(row.gvr) }))
    const byNamespace = tenantInformers.byNamespace(autoscalers)
    const podsByNamespace = tenantInformers.byNamespace(pods)
    const memory = new Map<string, Memory>()
    const inputs: Inputs = {
      scalers,
      workload: (kind, key) => workloads.find((row) => row.kind === kind)?.informer.store.get(key),
      podsIn: (namespaceKey) => [...podsByNamespace.of(namespaceKey)],
      memory,
      clock,
      periodMs: periodSeconds * 1000,
    }
    return {
      workers: 4,
      maxMs: 60_000,
      informers: [scalers, tenantInformers.of(pods), ...workloads.map(({ informer }) => informer)],
      follow: (add) => [
        scalers.onChange(({ key, after }) => {
          if (after === undefined) memory.delete(key)
          else add(key)
        }),
        ...workloads.map(({ informer }) =>
          informer.onChange(({ key, before, after }) => {
            if (isDivided(before) === isDivided(after) && isAsleep(before) === isAsleep(after)) return
            for (const scaler of byNamespace.keysOf(namespaceKeyOf(key))) add(scaler)
          }),
        ),
      ],
      reconcile: (key, life) => reconcileOne(key, context, inputs, life),
    }
  })
}

interface Inputs {
  readonly scalers: Informer<Autoscaler>
  readonly workload: (kind: string, key: string) => CachedObject | undefined
  readonly podsIn: (namespaceKey: string) => CachedObject[]
  readonly memory: Map<string, Memory>
  readonly clock: Clock
  readonly periodMs: number
}

async function reconcileOne(
  key: string,
  { virtual, log }: OperatorContext,
  inputs: Inputs,
  signal: AbortSignal,
): Promise<ReconcileResult> {
  const { memory, clock, periodMs } = inputs
  const autoscaler = inputs.scalers.store.get(key)
  const { cluster = '', namespace = '', name } = parseKey(key)
  const target = autoscaler?.spec?.scaleTargetRef
  const workload = target && inputs.workload(target.kind, keyFor({ cluster, namespace, name: target.name }))
  if (autoscaler === undefined || workload === undefined || !isDivided(workload)) {
    memory.delete(key)
    return {}
  }
  // Nothing is measured, and nothing is scaled, before it wakes.
  if (isAsleep(workload)) return {}
  const now = clock.now()
  const { generation } = autoscaler.metadata
  const before = memory.get(key)
  if (before !== undefined && before.generation === generation && now < before.nextMs)
    return { requeueAfterSeconds: (before.nextMs - now) / 1000 }
  const client = virtual(`/clusters/${cluster}`)
  const metrics = await readMetrics(client, namespace, signal)
  const selected = podsOf(workload, inputs.podsIn(namespaceKeyOf(key)))
  const input: AutoscalerInput = {
    autoscaler,
    workload: { specReplicas: replicasOf(workload), statusReplicas: statusReplicas(workload) },
    podsFor: (resource, container) => {
      if (metrics instanceof NoMetrics)
        throw new NoMetrics(`unable to get metrics for resource ${resource}: ${metrics.message}`)
      return measure(selected, metrics, resource, container)
    },
    history: before?.history ?? noHistory,
    nowMs: now,
  }
  const planned = planScale(input)
  const scaleError = await applyScale(planned.scaleTo, { workload, client, namespace }, signal)
  const done = scaleError === undefined ? planned : planRefused(planned, input, scaleError)
  const told = done.events.map(({ type, message }) => (type === 'Warning' ? message : '')).join('\n')
  // Before the status is written: a scale that was changed counts for the next reconcile, whatever becomes of the
  // status.
  memory.set(key, { history: done.history, nextMs: now + periodMs, generation, told })
  const plan = told !== '' && told === before?.told ? { ...done, events: [] } : done
  await applyStatus(plan, { autoscaler, workload, client, namespace, name, now, log }, signal)
  return { requeueAfterSeconds: periodMs / 1000 }
}

/** The metrics of a namespace, by pod; NoMetrics if no member of the logical cluster has any. */
async function readMetrics(
  client: KubeClient,
  namespace: string,
  signal: AbortSignal,
): Promise<ReadonlyMap<string, PodMetrics> | NoMetrics> {
  try {
    const { items } = await client.list<PodMetrics>(podMetrics, { namespace, signal })
    return new Map(items.map((one) => [one.metadata.name ?? '', one]))
  } catch (error) {
    if (signal.aborted || !(error instanceof Error)) throw error
    return new NoMetrics(`unable to fetch metrics from resource metrics API: ${error.message}`)
  }
}

/** Whether placement has divided the workload: a copy has a part of the replicas, and no range of ordinals. */
function isDivided(workload: CachedObject | undefined): boolean {
  if (workload === undefined) return false
  return Object.values(placedOn(workload as KubeObject)).some(
    ({ replicas, start }) => replicas !== undefined && start === undefined,
  )
}

/** Whether the workload has no pods because its logical cluster is asleep. */
function isAsleep(workload: CachedObject | undefined): boolean {
  return workload !== undefined && Object.values(placedOn(workload as KubeObject)).some(({ asleep }) => asleep)
}

function podsOf(workload: CachedObject, all: readonly CachedObject[]): CachedObject[] {
  const { selector } = (workload['spec'] ?? {}) as { selector?: LabelSelectorSource }
  const wanted = selectorFromObject(selector)
  return all.filter(({ metadata }) => wanted.matches(metadata.labels ?? {}))
}

function statusReplicas(workload: CachedObject): number {
  const { replicas = 0 } = (workload['status'] ?? {}) as { replicas?: number }
  return replicas
}
