// The number of replicas that one metric asks for: the calculation of kube-controller-manager (replica_calculator.go).
// Pure.

/** One pod of the workload, with its use of one resource and its request. */
export interface MeasuredPod {
  readonly name: string
  readonly phase: string
  readonly isDeleting: boolean
  /** Condition Ready; undefined if it has none. */
  readonly ready?: { readonly isTrue: boolean; readonly sinceMs: number }
  readonly startMs?: number
  /** In nanounits; undefined: not measured. */
  readonly usage?: { readonly nanos: bigint; readonly atMs: number; readonly windowMs: number }
  /** In nanounits, or the name of a container that has no request. */
  readonly request: bigint | { readonly missingIn: string }
}

export interface ResourceTarget {
  readonly resource: string
  /** Percent of the requests, or nanounits per pod. */
  readonly target: { readonly utilization: number } | { readonly averageNanos: bigint }
}

export interface Proposal {
  readonly replicas: number
  /** Percent of the requests; undefined for a target that is a value. */
  readonly utilization?: number
  /** Nanounits per pod. */
  readonly averageNanos: bigint
}

export const tolerance = 0.1
/** The use of a pod before this time, or before the pod was ready, says little of its later use. */
const cpuInitializationMs = 300_000
const initialReadinessMs = 30_000

/** Why no number can be calculated; the message is for people. */
export class NoMetrics extends Error {
  override readonly name = 'NoMetrics'
}

interface Groups {
  readonly measured: Map<string, bigint>
  readonly unready: readonly string[]
  readonly missing: readonly string[]
  readonly readyCount: number
}

/** The number of replicas for one metric. Throws NoMetrics. */
export function replicasFor(
  pods: readonly MeasuredPod[],
  current: number,
  { resource, target }: ResourceTarget,
  nowMs: number,
): Proposal {
  if (pods.length === 0) throw new NoMetrics('no pods returned by selector while calculating replica count')
  const { measured, unready, missing, readyCount } = groups(pods, resource, nowMs)
  if (measured.size === 0) throw new NoMetrics('did not receive metrics for targeted pods (pods might be unready)')
  const requests = 'utilization' in target ? requestsOf(pods, resource) : undefined
  const ratioOf = (usage: ReadonlyMap<string, bigint>): number =>
    'utilization' in target
      ? utilizationOf(usage, requests ?? new Map()) / target.utilization
      : Number(averageOf(usage)) / Number(target.averageNanos)
  const found = {
    averageNanos: averageOf(measured),
    ...(requests && { utilization: utilizationOf(measured, requests) }),
  }
  const ratio = ratioOf(measured)
  const countsUnready = unready.length > 0 && ratio > 1
  if (!countsUnready && missing.length === 0)
    return { ...found, replicas: isWithin(ratio) ? current : Math.ceil(round(ratio * readyCount)) }

  // The use of pods without metrics is assumed so that the number of replicas changes less.
  const all = new Map(measured)
  const ifDown = (name: string): bigint => {
    if (!('utilization' in target)) return target.averageNanos
    return ((requests?.get(name) ?? 0n) * BigInt(Math.max(100, target.utilization))) / 100n
  }
  if (ratio < 1) for (const name of missing) all.set(name, ifDown(name))
  else if (ratio > 1) for (const name of missing) all.set(name, 0n)
  if (countsUnready) for (const name of unready) all.set(name, 0n)
  const cautious = ratioOf(all)
  const turns = (ratio < 1 && cautious > 1) || (ratio > 1 && cautious < 1)
  if (isWithin(cautious) || turns) return { ...found, replicas: current }
  const replicas = Math.ceil(round(cautious * all.size))
  const goesBack = (cautious < 1 && replicas > current) || (cautious > 1 && replicas < current)
  return { ...found, replicas: goesBack ? current : replicas }
}

function groups(pods: readonly MeasuredPod[], resource: string, nowMs: number): Groups {
  const measured = new Map<string, bigint>()
  const unready: string[] = []
  const missing: string[] = []
  let readyCount = 0
  for (const pod of pods) {
    if (pod.isDeleting || pod.phase === 'Failed') continue
    if (pod.phase === 'Pending') unready.push(pod.name)
    else if (pod.usage === undefined) missing.push(pod.name)
    else if (resource === 'cpu' && isWarmingUp(pod, pod.usage, nowMs)) unready.push(pod.name)
    else {
      measured.set(pod.name, pod.usage.nanos)
      readyCount++
    }
  }
  return { measured, unready, missing, readyCount }
}

function isWarmingUp(
  { ready, startMs }: MeasuredPod,
  { atMs, windowMs }: NonNullable<MeasuredPod['usage']>,
  nowMs: number,
): boolean {
  if (ready === undefined || startMs === undefined) return true
  if (startMs + cpuInitializationMs > nowMs) return !ready.isTrue || atMs < ready.sinceMs + windowMs
  return !ready.isTrue && startMs + initialReadinessMs > ready.sinceMs
}

function requestsOf(pods: readonly MeasuredPod[], resource: string): Map<string, bigint> {
  const requests = new Map<string, bigint>()
  for (const { name, request } of pods) {
    if (typeof request === 'object')
      throw new NoMetrics(`missing request for ${resource} in container ${request.missingIn} of Pod ${name}`)
    requests.set(name, request)
  }
  return requests
}

/** Percent, without a fraction as in kube-controller-manager. */
function utilizationOf(usage: ReadonlyMap<string, bigint>, requests: ReadonlyMap<string, bigint>): number {
  let [used, requested] = [0n, 0n]
  for (const [name, nanos] of usage) {
    const request = requests.get(name)
    if (request === undefined) continue
    used += nanos
    requested += request
  }
  if (requested === 0n) throw new NoMetrics('no metrics returned matched known pods')
  return Number((used * 100n) / requested)
}

function averageOf(usage: ReadonlyMap<string, bigint>): bigint {
  let sum = 0n
  for (const nanos of usage.values()) sum += nanos
  return usage.size === 0 ? 0n : sum / BigInt(usage.size)
}

function isWithin(ratio: number): boolean {
  return Math.abs(1 - ratio) <= tolerance + 1e-9
}

/** The value without the error of floating point: 1.1 times 10 is 11 and not 11.000000000000002. */
function round(value: number): number {
  return Number(value.toFixed(9))
}
