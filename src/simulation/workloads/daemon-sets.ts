// DaemonSets: a pod on each node that fits.
import { isStatusError } from '#apimachinery/status/index.ts'
import type { ReconcileResult } from '#reconcile/index.ts'
import { toleratesNode, matchesNode } from '#simulation/nodes/node-fit.ts'
import { keyOf, type DaemonSet, type Node, type Pod } from '#simulation/cluster/objects.ts'
import { countAvailable, hasEnded, isReady, numberOf } from '#simulation/cluster/pod-facts.ts'
import type { Simulation } from '#simulation/cluster/simulation.ts'
import { createPod, deletePod, followOwnedPods, hashOf } from './pod-control.ts'
import { isSameStatus } from './replica-sets.ts'

const by = 'daemonset-controller'
const hashLabel = 'controller-revision-hash'

/** Tolerations that the controller adds to every pod. */
const tolerations = [
  { key: 'node.kubernetes.io/not-ready', operator: 'Exists', effect: 'NoExecute' },
  { key: 'node.kubernetes.io/unreachable', operator: 'Exists', effect: 'NoExecute' },
  { key: 'node.kubernetes.io/unschedulable', operator: 'Exists', effect: 'NoSchedule' },
]

export function startDaemonSets(simulation: Simulation): void {
  const { daemonsets, nodes } = simulation.cache
  simulation.loop({
    name: by,
    follow(enqueue) {
      daemonsets.onChange((after) => {
        if (after !== undefined) enqueue(keyOf(after))
      })
      nodes.onChange((after, before) => {
        const isSame =
          JSON.stringify([after?.spec, after?.metadata.labels]) ===
          JSON.stringify([before?.spec, before?.metadata.labels])
        if (!isSame) for (const set of daemonsets.all()) enqueue(keyOf(set))
      })
      followOwnedPods(simulation, 'DaemonSet', enqueue)
    },
    reconcile: async (key) => {
      const set = daemonsets.get(key)
      if (set === undefined || set.metadata.deletionTimestamp !== undefined) return undefined
      return await reconcileSet(simulation, set)
    },
  })
}

async function reconcileSet(simulation: Simulation, set: DaemonSet): Promise<ReconcileResult | undefined> {
  const hash = hashOf(set.spec.template)
  const wanted = simulation.cache.nodes.all().filter((node) => fits(set, node))
  for (const node of wanted) {
    const known = podsOn(simulation, set, node)
    if (known.length === 0) await createOn(simulation, { set, node, hash })
    for (const pod of known)
      if (hasEnded(pod.status?.phase) && pod.metadata.deletionTimestamp === undefined)
        await deletePod(simulation, set, pod, by)
  }
  const names = new Set(wanted.map(({ metadata }) => metadata.name))
  for (const pod of podsOf(simulation, set))
    if (!names.has(nodeOf(pod)) && pod.metadata.deletionTimestamp === undefined)
      await deletePod(simulation, set, pod, by)
  await replaceOld(simulation, { set, hash, wanted: wanted.length })
  return await writeStatus(simulation, { set, hash, wanted: wanted.length })
}

function fits({ spec: { template } }: DaemonSet, node: Node): boolean {
  const own = [...(template.spec.tolerations ?? []), ...tolerations]
  return matchesNode(template.spec, node) && toleratesNode(own, node)
}

function podsOf(simulation: Simulation, { metadata }: DaemonSet): Pod[] {
  return simulation.cache.pods.controlledBy(metadata.uid ?? '')
}

function podsOn(simulation: Simulation, set: DaemonSet, { metadata }: Node): Pod[] {
  return podsOf(simulation, set).filter((pod) => nodeOf(pod) === metadata.name)
}

/** The node that the pod is for, as its affinity says before it is scheduled. */
function nodeOf({ spec }: Pod): string | undefined {
  const [term] = spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms ?? []
  return term?.matchFields?.[0]?.values?.[0] ?? spec.nodeName
}

async function createOn(
  simulation: Simulation,
  { set, node, hash }: { readonly set: DaemonSet; readonly node: Node; readonly hash: string },
): Promise<void> {
  const { template } = set.spec
  const matchFields = [{ key: 'metadata.name', operator: 'In', values: [node.metadata.name ?? ''] }]
  const nodeAffinity = { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [{ matchFields }] } }
  await createPod(simulation, set, template, {
    labels: { [hashLabel]: hash, 'pod-template-generation': '1' },
    spec: {
      affinity: { ...template.spec.affinity, nodeAffinity },
      tolerations: [...(template.spec.tolerations ?? []), ...tolerations],
    },
    by,
  }).catch((error: unknown) => {
    if (!isStatusError(error) || error.code >= 500) throw error
  })
}

/** Deletes pods of another template, as many at a time as may be unavailable. */
async function replaceOld(
  simulation: Simulation,
  { set, hash, wanted }: { readonly set: DaemonSet; readonly hash: string; readonly wanted: number },
): Promise<void> {
  const { type, rollingUpdate } = set.spec.updateStrategy ?? {}
  if (type === 'OnDelete') return
  const pods = podsOf(simulation, set)
  const unavailable = wanted - pods.filter((pod) => isReady(pod) && pod.metadata.deletionTimestamp === undefined).length
  const old = pods.filter(
    ({ metadata }) => metadata.labels?.[hashLabel] !== hash && metadata.deletionTimestamp === undefined,
  )
  const allowed = Math.max(1, numberOf(rollingUpdate?.maxUnavailable ?? 1, wanted, 'up')) - unavailable
  const broken = old.filter((pod) => !isReady(pod))
  const serving = old.filter(isReady).slice(0, Math.max(0, allowed))
  for (const pod of [...broken, ...serving]) await deletePod(simulation, set, pod, by)
}

async function writeStatus(
  simulation: Simulation,
  { set, hash, wanted }: { readonly set: DaemonSet; readonly hash: string; readonly wanted: number },
): Promise<ReconcileResult | undefined> {
  const live = podsOf(simulation, set).filter(({ metadata }) => metadata.deletionTimestamp === undefined)
  const { available, again } = countAvailable(live, set.spec.minReadySeconds)
  const status = {
    observedGeneration: set.metadata.generation ?? 0,
    desiredNumberScheduled: wanted,
    currentNumberScheduled: live.length,
    numberMisscheduled: 0,
    numberReady: live.filter(isReady).length,
    updatedNumberScheduled: live.filter(({ metadata }) => metadata.labels?.[hashLabel] === hash).length,
    numberAvailable: available,
    numberUnavailable: Math.max(0, wanted - available),
  }
  const before = simulation.cache.daemonsets.get(keyOf(set))?.status as object | undefined
  if (!isSameStatus(before, status)) await simulation.patchStatus('daemonsets', set, status)
  return again
}
