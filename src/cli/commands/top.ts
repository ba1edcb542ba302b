// `kcp top`: what logical clusters, members and pods request and use.
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { isStatusError } from '#apimachinery/status/index.ts'
import { sleep } from '#async/index.ts'
import { clusterOf, type KubeClient } from '#client/index.ts'
import { memberAnnotation, memberClusters, type MemberCluster } from '#crds/index.ts'
import {
  cpuText,
  memoryText,
  percentText,
  sumOf,
  usageOfMember,
  usageOfMetrics,
  usageOfPods,
  type Resources,
} from '#explain/index.ts'
import { allClusters, directOf, each, type Direct } from '#cli/across/direct.ts'
import { UsageError } from '#cli/process/exit-error.ts'
import { processSignal } from '#cli/process/process-signal.ts'
import { startProgress } from '#cli/process/progress.ts'
import type { InstallationFlags } from './flags.ts'
import { openDirect, openInstallation } from './installation.ts'
import { columns, documentText, type OutputFormat } from './output.ts'

export type TopSubject = 'clusters' | 'members' | 'pods'

interface Flags extends InstallationFlags {
  readonly clusters?: readonly string[]
  readonly watch?: boolean
  readonly sortBy: 'name' | 'cpu' | 'memory'
  readonly output: OutputFormat
}

/** A line of the table; absent numbers are not known. */
interface Usage {
  readonly name: readonly string[]
  readonly counts: readonly string[]
  readonly requests: Resources
  readonly used?: Resources
  readonly allocatable?: Resources
}

const pods = { group: '', version: 'v1', resource: 'pods' } as const
const podMetrics = { group: 'metrics.k8s.io', version: 'v1beta1', resource: 'pods' } as const
const refreshMs = 2000
/** Members are asked for the metrics of so many logical clusters at most, some at a time. */
const [maxMeasured, atATime] = [200, 8]

/** Runs the command. */
export async function run(subject: TopSubject, flags: Flags): Promise<void> {
  const { watch = false, output } = flags
  if (watch && output !== 'table' && output !== 'wide') throw new UsageError('-w goes with -o table and -o wide')
  const signal = processSignal()
  await using installation = await openInstallation(flags, signal)
  await using transport = await openDirect(installation)
  const direct = directOf(transport, signal)
  const read = async (): Promise<string> =>
    textOf(subject, await usages(subject, { direct, clusters: installation.clusters, flags }), flags)
  if (!watch) {
    using progress = startProgress()
    progress.tell('reading')
    const text = await read()
    progress[Symbol.dispose]()
    process.stdout.write(text)
    return
  }
  for (;;) {
    const text = await read()
    // Home, then each line erased to its end, then all that is below: no flicker.
    const screen = process.stdout.isTTY ? `\u001b[H${text.replaceAll('\n', '\u001b[K\n')}\u001b[J` : `${text}\n`
    process.stdout.write(screen)
    await sleep(refreshMs, signal).catch(() => undefined)
    if (signal.aborted) return
  }
}

interface Sources {
  readonly direct: Direct
  readonly clusters: KubeClient
  readonly flags: Flags
}

async function usages(subject: TopSubject, { direct, clusters, flags }: Sources): Promise<Usage[]> {
  if (subject === 'members') return membersUsage(clusters, direct)
  const found = await podsByCluster(direct, flags.clusters ?? [])
  const metrics = await metricsOf(direct, [...found.keys()])
  if (subject === 'clusters') return [...found].map(([name, list]) => clusterUsage(name, list, metrics.get(name)))
  return [...found].flatMap(([name, list]) => list.map((pod) => podUsage(name, pod, metrics.get(name))))
}

async function membersUsage(clusters: KubeClient, { signal }: Direct): Promise<Usage[]> {
  const { items } = await clusters.list<MemberCluster>(memberClusters, { signal })
  return items.map((member) => {
    const { readyNodes, nodes, placed, requested, allocatable } = usageOfMember(member)
    const { name } = member.metadata
    return { name: [name], counts: [`${readyNodes}/${nodes}`, String(placed)], requests: requested, allocatable }
  })
}

async function podsByCluster(direct: Direct, names: readonly string[]): Promise<Map<string, KubeObject[]>> {
  const { client, signal } = direct
  const found = new Map<string, KubeObject[]>(names.map((name) => [name, []]))
  if (names.length > 0) {
    await each(names, atATime, async (name) => found.set(name, (await client(name).list(pods, { signal })).items))
    return found
  }
  const { items } = await client(allClusters).list(pods, { signal })
  for (const pod of items) {
    const name = clusterOf(pod) ?? ''
    found.set(name, [...(found.get(name) ?? []), pod])
  }
  return found
}

type Measured = ReadonlyMap<string, Resources>

/** What the pods of each logical cluster use, as far as their members measure it. */
async function metricsOf({ client, signal }: Direct, names: readonly string[]): Promise<ReadonlyMap<string, Measured>> {
  const measured = names.slice(0, maxMeasured)
  const lists = await each(measured, atATime, async (name): Promise<Measured> => {
    try {
      const { items } = await client(name).list(podMetrics, { signal })
      return new Map(items.map((one) => [keyOf(one), usageOfMetrics(one)]))
    } catch (error) {
      // No member measures, or one does not answer.
      if (isStatusError(error)) return new Map()
      throw error
    }
  })
  return new Map(measured.map((name, index) => [name, lists[index] ?? new Map()]))
}

function keyOf({ metadata }: KubeObject): string {
  return `${metadata.namespace ?? ''}/${metadata.name ?? ''}`
}

function clusterUsage(name: string, list: readonly KubeObject[], measured: Measured = new Map()): Usage {
  const usage = usageOfPods(list)
  const used = measured.size === 0 ? {} : { used: sumOf([...measured.values()]) }
  return { name: [name], counts: [`${usage.ready}/${usage.pods}`], requests: usage.requests, ...used }
}

function podUsage(cluster: string, pod: KubeObject, measured: Measured = new Map()): Usage {
  const { requests, ready, pods: running } = usageOfPods([pod])
  const used = measured.get(keyOf(pod))
  const { namespace = '', name = '', annotations = {} } = pod.metadata
  const counts = [annotations[memberAnnotation] ?? '', `${ready}/${running}`]
  return { name: [cluster, namespace, name], counts, requests, ...(used !== undefined && { used }) }
}

const headings: Readonly<Record<TopSubject, readonly string[]>> = {
  clusters: ['NAME', 'PODS'],
  members: ['NAME', 'NODES', 'PLACED'],
  pods: ['CLUSTER', 'NAMESPACE', 'NAME', 'MEMBER', 'READY'],
}

function textOf(subject: TopSubject, all: readonly Usage[], { sortBy, output }: Flags): string {
  const sorted = [...all].sort((one, other) => order(one, other, sortBy))
  if (output === 'json' || output === 'yaml')
    return documentText({ items: sorted.map((one) => itemOf(subject, one)) }, output)
  if (output === 'name') return sorted.map(({ name }) => `${name.join('/')}\n`).join('')
  const isMember = subject === 'members'
  const measures = isMember ? ['CPU FREE', 'MEMORY FREE', 'CPU%', 'MEMORY%'] : ['CPU USED', 'MEMORY USED']
  const heading = [...headings[subject], 'CPU REQUESTS', 'MEMORY REQUESTS', ...measures]
  return columns([
    heading,
    ...sorted.map((one) => [
      ...one.name,
      ...one.counts,
      cpuText(one.requests),
      memoryText(one.requests),
      ...measuresOf(one),
    ]),
  ])
}

function measuresOf({ requests, used, allocatable }: Usage): string[] {
  if (allocatable === undefined) return used === undefined ? ['-', '-'] : [cpuText(used), memoryText(used)]
  const free = {
    milliCpu: allocatable.milliCpu - requests.milliCpu,
    memoryBytes: allocatable.memoryBytes - requests.memoryBytes,
  }
  return [
    ...[cpuText(free), memoryText(free)],
    percentText(requests.milliCpu, allocatable.milliCpu),
    percentText(requests.memoryBytes, allocatable.memoryBytes),
  ]
}

function itemOf(subject: TopSubject, { name, counts, requests, used, allocatable }: Usage): object {
  const cells = headings[subject].map((heading, index) => [heading.toLowerCase(), [...name, ...counts][index]])
  return {
    ...Object.fromEntries(cells),
    requests,
    ...(used && { used }),
    ...(allocatable && { allocatable }),
  } as object
}

function order(one: Usage, other: Usage, by: Flags['sortBy']): number {
  const amount = ({ used, requests }: Usage): number =>
    by === 'cpu' ? (used ?? requests).milliCpu : (used ?? requests).memoryBytes
  const difference = by === 'name' ? 0 : amount(other) - amount(one)
  return difference === 0 ? compare(one.name.join('/'), other.name.join('/')) : difference
}

function compare(one: string, other: string): number {
  return one < other ? -1 : one > other ? 1 : 0
}
