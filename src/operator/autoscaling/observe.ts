// The pods of a workload in all members with what they use, as the metrics API of their logical cluster tells.
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { amountsOf, roundUpToMilli, tryQuantity } from '#apimachinery/quantity/index.ts'
import type { DeepReadonly } from '#client/index.ts'
import { NoMetrics, type MeasuredPod } from './replica-count.ts'

type CachedObject = DeepReadonly<KubeObject>

/** An object of kind PodMetrics (metrics.k8s.io/v1beta1). */
export interface PodMetrics extends KubeObject {
  readonly timestamp?: string
  readonly window?: string
  readonly containers?: readonly { readonly name: string; readonly usage?: Readonly<Record<string, string>> }[]
}

interface PodStatus {
  readonly phase?: string
  readonly startTime?: string
  readonly conditions?: readonly {
    readonly type: string
    readonly status: string
    readonly lastTransitionTime?: string
  }[]
}

interface Container {
  readonly name: string
  readonly resources?: { readonly requests?: Readonly<Record<string, string>> }
  readonly restartPolicy?: string
}

/**
 * The pods with their use of one resource, in all containers or in one. As in kube-controller-manager, each number is
 * rounded up to thousandths. Throws NoMetrics if no pod has metrics.
 */
export function measure(
  pods: readonly CachedObject[],
  metrics: ReadonlyMap<string, DeepReadonly<PodMetrics>>,
  resource: string,
  container: string | undefined,
): MeasuredPod[] {
  if (!pods.some(({ metadata: { name = '' } }) => metrics.has(name)))
    throw new NoMetrics(`unable to get metrics for resource ${resource}: no metrics returned from resource metrics API`)
  const measured: MeasuredPod[] = []
  for (const pod of pods) {
    const { name = '', deletionTimestamp } = pod.metadata
    const { phase = '', startTime, conditions = [] } = (pod['status'] ?? {}) as PodStatus
    const ready = conditions.find(({ type }) => type === 'Ready')
    const usage = usageOf(metrics.get(name), resource, container)
    measured.push({
      name,
      phase,
      isDeleting: deletionTimestamp !== undefined,
      ...(ready && {
        ready: { isTrue: ready.status === 'True', sinceMs: Date.parse(ready.lastTransitionTime ?? '') || 0 },
      }),
      ...(startTime !== undefined && { startMs: Date.parse(startTime) }),
      ...(usage && { usage }),
      request: requestOf(pod, resource, container),
    })
  }
  return measured
}

/**
 * The use of one pod; undefined if it is not measured. As in kube-controller-manager, a pod is not measured if one of
 * its containers is not, or if it has no such container.
 */
function usageOf(
  metrics: DeepReadonly<PodMetrics> | undefined,
  resource: string,
  container: string | undefined,
): MeasuredPod['usage'] {
  if (metrics === undefined) return undefined
  const { containers = [], timestamp = '', window = '' } = metrics
  const asked = container === undefined ? containers : containers.filter(({ name }) => name === container)
  let nanos = 0n
  for (const { usage } of asked) {
    const quantity = tryQuantity(usage?.[resource] ?? '')
    if (quantity === undefined) return undefined
    nanos += roundUpToMilli(quantity).nanos
  }
  return asked.length === 0 ? undefined : { nanos, atMs: Date.parse(timestamp) || 0, windowMs: durationMs(window) }
}

/** Requests of the containers and sidecars, or of one container. */
function requestOf(pod: CachedObject, resource: string, container: string | undefined): MeasuredPod['request'] {
  const spec = (pod['spec'] ?? {}) as {
    readonly resources?: { readonly requests?: Readonly<Record<string, string>> }
    readonly containers?: readonly Container[]
    readonly initContainers?: readonly Container[]
  }
  const own = amountsOf(spec.resources?.requests).get(resource)
  if (container === undefined && own !== undefined) return roundUpToMilli(own).nanos
  const sidecars = (spec.initContainers ?? []).filter(({ restartPolicy }) => restartPolicy === 'Always')
  const asked = [...(spec.containers ?? []), ...sidecars].filter(
    ({ name }) => container === undefined || name === container,
  )
  let nanos = 0n
  for (const { name, resources } of asked) {
    const amount = amountsOf(resources?.requests).get(resource)
    if (amount === undefined) return { missingIn: name }
    nanos += roundUpToMilli(amount).nanos
  }
  return nanos
}

const units: Readonly<Record<string, number>> = {
  h: 3_600_000,
  m: 60_000,
  s: 1000,
  ms: 1,
  us: 0.001,
  µs: 0.001,
  ns: 0.000001,
}

/** A Go duration, such as `15.2s`, in milliseconds. */
function durationMs(text: string): number {
  let ms = 0
  for (const [, number = '0', unit = ''] of text.matchAll(/([0-9.]+)(ms|us|µs|ns|h|m|s)/g))
    ms += Number(number) * (units[unit] ?? 0)
  return ms
}
