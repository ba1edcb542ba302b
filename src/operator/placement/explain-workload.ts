// The decision about one workload with all its grounds, from the operator's own inputs; written nowhere.
import {
  decide,
  explain,
  waitText,
  whyNotRebalanced,
  type Choice,
  type CopySeen,
  type Explanation,
  type Target,
} from '#placement/index.ts'
import { systemClock } from '#async/index.ts'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { namespaceKeyOf, type DeepReadonly } from '#client/index.ts'
import { selects } from './copy-seen.ts'
import { observe } from './observe.ts'
import type { PlacementInputs } from './placement-inputs.ts'
import { parseWorkloadKey, workloadKey } from './workload-key.ts'
import { memberStatusesOf, type PlacedOn, type WorkloadKind } from '#crds/index.ts'

type CachedObject = DeepReadonly<KubeObject>

export interface WorkloadExplanation extends Explanation {
  readonly target: Target
  /** The rule that decides: an annotation, a Placement by name, or none. */
  readonly source: string
  readonly placedOn: PlacedOn
  /** The reason of each copy that waits, one line per copy. */
  readonly waits: readonly string[]
  /** Failures of members to sync the workload, or the Services that lead to it: `MEMBER: MESSAGE`. */
  readonly failures: readonly string[]
  /** Why it has no pods, because its logical cluster is asleep; absent: it is awake. */
  readonly asleep?: string
  /** Whether it may be moved for balance, and why not; or that it is being moved. */
  readonly balance: string
}

export interface WorkloadName {
  readonly kind: WorkloadKind
  readonly cluster: string
  readonly namespace: string
  readonly name: string
}

/** Explains where the workload should run and why; undefined if there is no such workload or logical cluster. */
export function explainWorkload(
  inputs: PlacementInputs,
  { kind, cluster, namespace, name }: WorkloadName,
  nowMs = systemClock.now(),
): WorkloadExplanation | undefined {
  const ref = parseWorkloadKey(workloadKey(kind, `${cluster}|${namespace}/${name}`))
  const workload = ref === undefined ? undefined : inputs.workload(ref)
  const observed = ref === undefined || workload === undefined ? undefined : observe(ref, workload, inputs, nowMs)
  if (observed === undefined || ref === undefined || workload === undefined) return undefined
  const { choice, placedOn } = observed
  // The decision of the plan also knows what concerns no single member, such as the length of the namespace.
  return {
    ...explain(choice),
    decision: decide(choice),
    target: choice.target,
    source: choice.source,
    placedOn,
    ...(choice.asleep !== undefined && { asleep: choice.asleep }),
    waits: waitsOf(placedOn, observed.seen),
    failures: [...failuresOf(workload), ...servicesOf(workload, inputs, ref.objectKey).flatMap(failuresOfService)],
    balance: balanceOf(choice, () => {
      const budgets = inputs.budgetsIn(namespaceKeyOf(ref.objectKey))
      return whyNotRebalanced({ choice, placedOn, workload, budgets, nowMs })
    }),
  }
}

function balanceOf({ rebalance, rebalancing, demand }: Choice, whyNot: () => string | undefined): string {
  if (rebalancing !== undefined) {
    const { from, to, isOver, message } = rebalancing
    return isOver ? `goes back from ${to} to ${from}` : `moves from ${from} to ${to}: ${message}`
  }
  const reason = whyNot()
  if (reason !== undefined || rebalance === undefined) return `is not moved: ${reason ?? ''}`
  const { placement, thresholdPercent } = rebalance
  if (demand.divide !== undefined)
    return `may be divided again for Placement "${placement}" when ${thresholdPercent} % of its replicas should be elsewhere`
  return `may be moved by Placement "${placement}" when another member cluster would be less full by ${thresholdPercent} percentage points`
}

function servicesOf(workload: CachedObject, inputs: PlacementInputs, objectKey: string): CachedObject[] {
  return [...inputs.servicesIn(namespaceKeyOf(objectKey))].filter((service) => selects(service, workload))
}

function failuresOf(object: CachedObject): string[] {
  return Object.entries(memberStatusesOf<{ readonly error?: unknown }>(object as KubeObject)).flatMap(
    ([member, { error }]) => (typeof error === 'string' ? [`${member}: ${error}`] : []),
  )
}

function failuresOfService(service: CachedObject): string[] {
  return failuresOf(service).map((text) => `service "${service.metadata.name ?? ''}" in ${text}`)
}

function waitsOf(placedOn: PlacedOn, seen: (member: string) => CopySeen): string[] {
  return Object.entries(placedOn).flatMap(([member, { wait }]) => {
    if (wait === undefined) return []
    const then = wait.until === undefined ? 'without limit' : `until ${wait.until}, then ${wait.then}`
    return [`${member}: ${waitText(wait.gate, seen(member))} (${wait.gate}), since ${wait.since}, ${then}`]
  })
}
