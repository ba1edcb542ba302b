// What logical clusters, members and pods request and use: the numbers of `kcp top` and of the console. Pure.
import { addAmounts, amountsOf, totalOfPod, type Quantity } from '#apimachinery/quantity/index.ts'
import type { JsonObject } from '#apimachinery/meta/index.ts'
import { countOf, listOf, recordOf, textOf, type SeenObject } from './finding.ts'

/** Processor in thousandths of a core, memory in bytes. */
export interface Resources {
  readonly milliCpu: number
  readonly memoryBytes: number
}

export interface PodsUsage {
  readonly pods: number
  readonly ready: number
  readonly requests: Resources
}

const none: Resources = { milliCpu: 0, memoryBytes: 0 }

/** The pods among these that have not ended: how many, how many are ready, and what they request. */
export function usageOfPods(pods: readonly SeenObject[]): PodsUsage {
  const running = pods.filter(({ status }) => !['Succeeded', 'Failed'].includes(textOf(recordOf(status)['phase'])))
  const sum = new Map<string, Quantity>()
  for (const { spec } of running) addAmounts(sum, totalOfPod(recordOf(spec) as JsonObject, 'requests'))
  const ready = running.filter(({ status }) =>
    listOf(recordOf(status)['conditions'])
      .map(recordOf)
      .some(({ type, status: is }) => type === 'Ready' && is === 'True'),
  )
  return { pods: running.length, ready: ready.length, requests: resourcesOf(sum) }
}

/** What PodMetrics say that a pod uses. */
export function usageOfMetrics(metrics: SeenObject): Resources {
  const sum = new Map<string, Quantity>()
  for (const container of listOf(metrics['containers']).map(recordOf))
    addAmounts(sum, amountsOf(recordOf(container['usage'])))
  return resourcesOf(sum)
}

/** The sum of these. */
export function sumOf(all: readonly Resources[]): Resources {
  return all.reduce(
    (sum, one) => ({ milliCpu: sum.milliCpu + one.milliCpu, memoryBytes: sum.memoryBytes + one.memoryBytes }),
    none,
  )
}

export interface MemberUsage {
  readonly readyNodes: number
  readonly nodes: number
  /** Workloads with a copy there. */
  readonly placed: number
  readonly allocatable: Resources
  readonly requested: Resources
}

/** The numbers in the status of a MemberCluster. */
export function usageOfMember({ status }: SeenObject): MemberUsage {
  const { nodes, placed, allocatable, requested } = recordOf(status)
  const { ready, total } = recordOf(nodes)
  return {
    ...{ readyNodes: countOf(ready), nodes: countOf(total), placed: countOf(placed) },
    allocatable: resourcesOf(amountsOf(recordOf(allocatable))),
    requested: resourcesOf(amountsOf(recordOf(requested))),
  }
}

function resourcesOf(amounts: ReadonlyMap<string, Quantity>): Resources {
  const cpu = amounts.get('cpu')?.nanos ?? 0n
  const memory = amounts.get('memory')?.nanos ?? 0n
  return { milliCpu: Number(cpu / 1_000_000n), memoryBytes: Number(memory / 1_000_000_000n) }
}

/** Processor as kubectl prints it: 250m. */
export function cpuText({ milliCpu }: Resources): string {
  return `${milliCpu}m`
}

/** Memory as kubectl prints it: 128Mi. */
export function memoryText({ memoryBytes }: Resources): string {
  return `${Math.round(memoryBytes / 1024 / 1024)}Mi`
}

/** A share in percent; `-` of nothing. */
export function percentText(part: number, whole: number): string {
  return whole === 0 ? '-' : `${Math.round((100 * part) / whole)}%`
}
