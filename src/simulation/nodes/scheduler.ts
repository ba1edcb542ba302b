// The scheduler: binds each pod to a node that fits, or says in kube-scheduler's words why none does.
import { addAmounts, amountsOf, totalOfPod, type Amounts, type Quantity } from '#apimachinery/quantity/index.ts'
import { selectorFromObject } from '#apimachinery/selector/index.ts'
import { tolerate } from '#apimachinery/status/index.ts'
import type { JsonObject } from '#apimachinery/meta/index.ts'
import { gvrOf, keyOf, type Node, type Pod, type PodAffinityTerm } from '#simulation/cluster/objects.ts'
import { hasEnded, withCondition } from '#simulation/cluster/pod-facts.ts'
import type { Simulation } from '#simulation/cluster/simulation.ts'
import { matchesNode, untoleratedTaint } from './node-fit.ts'

const by = 'default-scheduler'
/** After a change that may make room, pending pods are tried again together; the more there are, the later. */
const [retryMs, retryMsPerPod] = [200, 2]

export function startScheduler(simulation: Simulation): void {
  const { pods, nodes, persistentvolumeclaims } = simulation.cache
  const pending = new Set<string>()
  simulation.loop({
    name: by,
    // One at a time: each decision sees the one before it.
    workers: 1,
    follow(enqueue) {
      const retry = (): void => {
        for (const key of pending) enqueue(key, retryMs + pending.size * retryMsPerPod)
      }
      pods.onChange((after, before) => {
        if (after !== undefined && isWaiting(after)) enqueue(keyOf(after))
        else if (after === undefined || hasEnded(after.status?.phase)) retry()
        if (after === undefined && before !== undefined) pending.delete(keyOf(before))
      })
      nodes.onChange((after, before) => {
        if (
          JSON.stringify([after?.spec, after?.status?.allocatable]) !==
          JSON.stringify([before?.spec, before?.status?.allocatable])
        )
          retry()
      })
      persistentvolumeclaims.onChange(retry)
    },
    reconcile: async (key) => {
      const pod = pods.get(key)
      if (pod === undefined || !isWaiting(pod)) {
        pending.delete(key)
        return
      }
      const decision = decide(simulation, pod)
      if (decision.node === undefined) {
        pending.add(key)
        await tellUnschedulable(simulation, pod, decision.message)
      } else {
        pending.delete(key)
        await bind(simulation, pod, decision.node)
      }
    },
  })
}

function isWaiting({ spec, metadata, status }: Pod): boolean {
  return (
    spec.nodeName === undefined &&
    metadata.deletionTimestamp === undefined &&
    !hasEnded(status?.phase) &&
    (spec.schedulingGates ?? []).length === 0 &&
    (spec.schedulerName ?? by) === by
  )
}

type Decision = { readonly node: Node } | { readonly node?: undefined; readonly message: string }

interface Misfit {
  readonly reasons: readonly string[]
  /** Other pods on the node are the reason, so fewer of them would help. */
  readonly isResolvable: boolean
}

function decide(simulation: Simulation, pod: Pod): Decision {
  const nodes = simulation.cache.nodes.all()
  if (nodes.length === 0) return { message: 'no nodes available to schedule pods' }
  const volumes = missingVolumes(simulation, pod)
  if (volumes?.isMissing === true)
    return { message: `0/${nodes.length} nodes are available: ${volumes.why}. not found` }
  if (volumes !== undefined) return { message: noneFits(nodes.length, [volumes.why], { helpful: 0 }) }
  const misfits: Misfit[] = []
  let best: { node: Node; load: number } | undefined
  for (const node of nodes) {
    const there = podsOn(simulation, node)
    const misfit = misfitOf(simulation, pod, { node, there })
    if (misfit !== undefined) misfits.push(misfit)
    else {
      const load = loadOf(pod, { node, there })
      if (best === undefined || load < best.load) best = { node, load }
    }
  }
  if (best !== undefined) return { node: best.node }
  const counts = new Map<string, number>()
  for (const { reasons } of misfits) for (const reason of reasons) counts.set(reason, (counts.get(reason) ?? 0) + 1)
  const texts = [...counts].map(([reason, count]) => `${count} ${reason}`).sort()
  return {
    message: noneFits(nodes.length, texts, { helpful: misfits.filter(({ isResolvable }) => isResolvable).length }),
  }
}

/** The message of kube-scheduler; nothing is preempted here. */
function noneFits(nodes: number, reasons: readonly string[], { helpful }: { readonly helpful: number }): string {
  const parts = [
    ...(helpful > 0 ? [`${helpful} No preemption victims found for incoming pod`] : []),
    ...(helpful < nodes ? [`${nodes - helpful} Preemption is not helpful for scheduling`] : []),
  ].sort()
  const none = `0/${nodes} nodes are available`
  return `${none}: ${reasons.join(', ')}. no new claims to deallocate, preemption: ${none}: ${parts.join(', ')}.`
}

/** Why a claim of the pod keeps it from being scheduled. */
function missingVolumes(
  simulation: Simulation,
  { metadata, spec }: Pod,
): { readonly why: string; readonly isMissing?: true } | undefined {
  for (const { persistentVolumeClaim } of spec.volumes ?? []) {
    if (persistentVolumeClaim === undefined) continue
    const { claimName } = persistentVolumeClaim
    const claim = simulation.cache.persistentvolumeclaims.get(`${metadata.namespace ?? ''}/${claimName}`)
    if (claim === undefined) return { why: `persistentvolumeclaim "${claimName}" not found`, isMissing: true }
    if (claim.metadata.deletionTimestamp !== undefined)
      return { why: `persistentvolumeclaim "${claimName}" is being deleted` }
    if (claim.status?.phase !== 'Bound') return { why: 'pod has unbound immediate PersistentVolumeClaims' }
  }
  return undefined
}

function podsOn(simulation: Simulation, { metadata }: Node): Pod[] {
  return simulation.cache.pods.withValue(metadata.name ?? '').filter(({ status }) => !hasEnded(status?.phase))
}

interface Place {
  readonly node: Node
  readonly there: readonly Pod[]
}

function misfitOf(simulation: Simulation, pod: Pod, place: Place): Misfit | undefined {
  const { node } = place
  const never = (reason: string): Misfit => ({ reasons: [reason], isResolvable: false })
  if (node.spec?.unschedulable === true && !toleratesUnschedulable(pod)) return never('node(s) were unschedulable')
  const taint = untoleratedTaint(pod.spec.tolerations, node)
  if (taint !== undefined) return never('node(s) had untolerated taint(s)')
  if (!matchesNode(pod.spec, node)) return never("node(s) didn't match Pod's node affinity/selector")
  return insufficient(pod, place) ?? separated(simulation, pod, node)
}

function toleratesUnschedulable({ spec }: Pod): boolean {
  const key = 'node.kubernetes.io/unschedulable'
  const node = { apiVersion: 'v1', kind: 'Node', metadata: {}, spec: { taints: [{ key, effect: 'NoSchedule' }] } }
  return untoleratedTaint(spec.tolerations, node) === undefined
}

const requests = new WeakMap<Pod, Amounts>()

function requestsOf(pod: Pod): Amounts {
  const known = requests.get(pod)
  if (known !== undefined) return known
  const sum = totalOfPod(pod.spec as unknown as JsonObject, 'requests')
  requests.set(pod, sum)
  return sum
}

function insufficient(pod: Pod, { node, there }: Place): Misfit | undefined {
  const allocatable = amountsOf(node.status?.allocatable)
  const used = new Map<string, Quantity>()
  for (const other of there) addAmounts(used, requestsOf(other))
  const reasons: string[] = []
  let isResolvable = true
  if (there.length + 1 > Number(node.status?.allocatable?.['pods'] ?? 110)) reasons.push('Too many pods')
  for (const [name, { nanos }] of requestsOf(pod)) {
    const most = allocatable.get(name)?.nanos ?? 0n
    if (nanos === 0n || nanos + (used.get(name)?.nanos ?? 0n) <= most) continue
    reasons.push(`Insufficient ${name}`)
    if (nanos > most) isResolvable = false
  }
  return reasons.length === 0 ? undefined : { reasons, isResolvable }
}

/** Required affinity and anti-affinity to other pods. */
function separated(simulation: Simulation, pod: Pod, node: Node): Misfit | undefined {
  const { podAffinity, podAntiAffinity } = pod.spec.affinity ?? {}
  const isNear = (term: PodAffinityTerm): boolean => matching(simulation, pod, { term, node }).length > 0
  const anti = podAntiAffinity?.requiredDuringSchedulingIgnoredDuringExecution ?? []
  if (anti.some(isNear)) return { reasons: ["node(s) didn't match pod anti-affinity rules"], isResolvable: true }
  const wanted = podAffinity?.requiredDuringSchedulingIgnoredDuringExecution ?? []
  const isFirst = (term: PodAffinityTerm): boolean =>
    selects(term, pod, pod) && matching(simulation, pod, { term }).length === 0
  if (wanted.every((term) => isNear(term) || isFirst(term))) return undefined
  return { reasons: ["node(s) didn't match pod affinity rules"], isResolvable: false }
}

/** The pods that the term selects, in the same domain as the node; without a node, anywhere. */
function matching(simulation: Simulation, pod: Pod, { term, node }: { term: PodAffinityTerm; node?: Node }): Pod[] {
  const domain = node?.metadata.labels?.[term.topologyKey]
  if (node !== undefined && domain === undefined) return []
  const labelOf = (other: Pod): string | undefined =>
    simulation.cache.nodes.get(other.spec.nodeName ?? '')?.metadata.labels?.[term.topologyKey]
  return simulation.cache.pods
    .all()
    .filter((other) => other.spec.nodeName !== undefined && !hasEnded(other.status?.phase) && selects(term, pod, other))
    .filter((other) => node === undefined || labelOf(other) === domain)
}

function selects({ labelSelector, namespaces }: PodAffinityTerm, pod: Pod, other: Pod): boolean {
  const { namespace = '' } = other.metadata
  const inScope = namespaces === undefined ? namespace === pod.metadata.namespace : namespaces.includes(namespace)
  return inScope && selectorFromObject(labelSelector).matches(other.metadata.labels ?? {})
}

/** How full the node is, and how many pods of the same owner it has: pods of one owner spread. */
function loadOf(pod: Pod, { node, there }: Place): number {
  const owner = pod.metadata.ownerReferences?.[0]?.uid
  const siblings = there.filter(
    ({ metadata }) => owner !== undefined && metadata.ownerReferences?.[0]?.uid === owner,
  ).length
  const used = new Map<string, Quantity>()
  for (const other of there) addAmounts(used, requestsOf(other))
  const [has, most] = [used.get('cpu')?.nanos ?? 0n, amountsOf(node.status?.allocatable).get('cpu')?.nanos ?? 1n]
  return siblings * 10 + there.length / 1000 + Number((has * 1000n) / (most === 0n ? 1n : most)) / 1000
}

async function bind(simulation: Simulation, pod: Pod, node: Node): Promise<void> {
  const { name = '', namespace = '', uid = '' } = pod.metadata
  const target = { apiVersion: 'v1', kind: 'Node', name: node.metadata.name ?? '' }
  const binding = { apiVersion: 'v1', kind: 'Binding', metadata: { name, namespace, uid }, target }
  const client = simulation.client('kube-scheduler')
  await client
    .create(gvrOf('pods'), binding, { subresource: 'binding', signal: simulation.signal })
    .catch(tolerate('NotFound', 'Conflict'))
  const bound = await client.tryGet<Pod>(gvrOf('pods'), { name, namespace }, { signal: simulation.signal })
  // The next decision counts this pod.
  if (bound !== undefined) simulation.cache.pods.put(bound)
  const message = `Successfully assigned ${namespace}/${name} to ${target.name}`
  void simulation.event(pod, { type: 'Normal', reason: 'Scheduled', message, by })
}

async function tellUnschedulable(simulation: Simulation, pod: Pod, message: string): Promise<void> {
  const conditions = pod.status?.conditions ?? []
  if (conditions.some((one) => one.type === 'PodScheduled' && one.message === message)) return
  const condition = { type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message } as const
  await simulation.patchStatus(
    'pods',
    pod,
    { conditions: withCondition(conditions, condition, simulation.now()) },
    'kube-scheduler',
  )
  void simulation.event(pod, { type: 'Warning', reason: 'FailedScheduling', message, by })
}
