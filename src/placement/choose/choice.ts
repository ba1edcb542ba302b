// The question which members a workload should run on, from the workload, the rules that apply and the members. Pure.
import type { DeepReadonly, KubeObject } from '#apimachinery/meta/index.ts'
import {
  adoptedNamespace,
  adoptedObject,
  clustersAnnotation,
  hasCopy,
  hasEnded,
  memberStatusesOf,
  placedOn,
  podRequestsOf,
  replicasOf,
  requestsOf,
  runsOnAsleep,
  surgeOf,
  workloadKindOfObject,
  type MemberCluster,
  type MemberStatus,
  type PlacedOn,
  type PlacementMove,
  type WorkloadKind,
} from '#crds/index.ts'
import type { MoveInput } from '#placement/move/move-input.ts'
import { currentMembers, moveKindOf } from '#placement/move/move.ts'
import type { ApplicableRules } from '#placement/rules/applicable-rules.ts'
import type { Candidate, Demand, DivideDemand, PodDemand } from '#placement/rules/candidate.ts'
import { namedClasses } from '#placement/rules/classes.ts'
import { rebalanceRule, rebalancingOf, type RebalanceRule, type Rebalancing } from '#placement/rules/rebalance-rule.ts'
import {
  byRank,
  type ChosenTarget,
  demandOf,
  type PlacementRule,
  type Target,
  targetOf,
} from '#placement/rules/target.ts'
import type { PlacedRoom } from './placed-room.ts'
import { volumeRuleOf } from '#placement/rules/volume-rule.ts'
import { claimsWithData, membersOfClaims, usesSingleWriterVolume } from '#placement/rules/volumes.ts'

type CachedObject = DeepReadonly<KubeObject>

/** The question which members a workload should run on. */
export interface Choice {
  readonly namespace: string
  readonly target: Target
  /** The rule that decides about the target, in words. */
  readonly source: string
  /** The caller's key of the Placement that decides; undefined if an annotation decides, or no rule at all. */
  readonly placementKey: string | undefined
  readonly demand: Demand
  readonly candidates: readonly Candidate[]
  /** Members with a copy now. */
  readonly current: readonly string[]
  /** Of these, the members whose copy serves. */
  readonly serving: readonly string[]
  /** How many replicas each member has, of a divided workload; of others, how many are available there. */
  readonly present?: Readonly<Record<string, number>>
  /** Members with another workload of the namespace. */
  readonly near: readonly string[]
  /** Members with volumes of the workload. */
  readonly volumesIn: readonly string[]
  /** A copy of these volumes that another member keeps; undefined: there is none. */
  readonly volumeCopy?: VolumeCopy
  /** Why these volumes do not move; undefined: they do. */
  readonly volumesStay?: string
  readonly move: WorkloadKind['move']
  /** Replicas, and the first ordinal of a StatefulSet; absent where the kind has no replicas. */
  readonly scale?: NonNullable<MoveInput['scale']> & { readonly hasOrdinals: boolean }
  /** Whether the workload is a Job or pod that has ended. */
  readonly hasEnded: boolean
  /** How long the steps of a move last, where a Placement says so. */
  readonly moveTimes?: PlacementMove
  /** Changes made in members are reported, not corrected. */
  readonly reportsDrift?: true
  /** Why it has no pods, because its logical cluster is asleep; absent: it is awake, or the workload runs on. */
  readonly asleep?: string
  /** The admins' rule of rebalancing; absent: none. */
  readonly rebalance?: RebalanceRule
  /** A move for balance that is under way or begins now. */
  readonly rebalancing?: Rebalancing
  /** What limits of logical clusters leave; absent: there are none. */
  readonly room?: PlacedRoom
}

/** A copy of the volumes of a workload in another member. */
export interface VolumeCopy {
  readonly member: string
  /** RFC 3339: it has nothing that was written after this time. */
  readonly asOf: string
  /** The claims, of which each needs the consent of the tenant. */
  readonly claims: readonly string[]
  /** Whether the tenant has agreed to go on with this copy, whatever was written since. */
  readonly isAgreed: boolean
}

export interface ChoiceInput {
  readonly workload: CachedObject
  readonly namespace: string
  /** Undefined if the namespace does not exist. */
  readonly namespaceObject: CachedObject | undefined
  readonly rules: ApplicableRules
  /** PersistentVolumeClaims of the namespace. */
  readonly claims: readonly CachedObject[]
  readonly members: () => readonly DeepReadonly<MemberCluster>[]
  readonly candidates: readonly Candidate[]
  /** Members with another workload of the namespace. */
  readonly near: readonly string[]
  /** The key of a Placement: of the tenant, or of the admins. */
  readonly keyOf: (placement: string, isTenants: boolean) => string
  /** Finds a copy of these claims that a member keeps. */
  readonly copyOf?: (claims: readonly CachedObject[]) => VolumeCopy | undefined
  /** A move for balance that begins now. */
  readonly rebalancing?: Rebalancing
  /** What limits of logical clusters leave for it. */
  readonly room?: PlacedRoom
  /** That its logical cluster is asleep, in words; absent: it is awake. */
  readonly asleep?: string | undefined
  /** In Unix milliseconds; default 0, at which no move for balance has lasted too long. */
  readonly nowMs?: number
}

/** Everything that the decision about one workload depends on. */
export function choiceOf(input: ChoiceInput): Choice {
  const { workload, namespace, namespaceObject, rules, claims, members, candidates, near, keyOf, nowMs = 0 } = input
  const ruled = targetOf({
    object: workload.metadata.annotations,
    namespace: namespaceObject?.metadata.annotations,
    placements: [rules.ofTenant, rules.ofCluster, rules.global],
  })
  const runsIn = adoptedFrom(workload, namespaceObject)
  const chosen = runsIn === undefined ? ruled : { ...ruled, target: { kind: 'members', names: [runsIn] } as const }
  const placed = placedOn(workload as KubeObject)
  const bounds = [...rules.ofCluster, ...rules.global]
  const move = moveKindOf(workload, { usesSingleWriterVolume: usesSingleWriterVolume(workload, claims) })
  const withData = claimsWithData(workload, claims)
  const volumesStay = withData.map((claim) => whyItStays(claim, rules)).find((why) => why !== undefined)
  const volumeCopy = withData.length === 0 ? undefined : input.copyOf?.(withData)
  const pods = podDemandOf(workload)
  const divided = divideDemandOf(pods, move, chosen.rule?.replicas)
  const { source, rule } = chosen
  const times = moveTimes(rules)
  const rebalance = rebalanceRule(rules, [workload, namespaceObject])
  const rebalancing = rebalancingOf(workload, placed, { rule: rebalance, begins: input.rebalancing, nowMs })
  return {
    namespace,
    target: chosen.target,
    source: runsIn === undefined ? sourceText(chosen) : 'its adoption',
    placementKey: source === 'placement' && rule ? keyOf(rule.name, rules.ofTenant.includes(rule)) : undefined,
    demand: {
      ...demandOf(chosen, {
        bounds,
        requests: divided ? podRequestsOf(workload) : requestsOf(workload),
        classes: namedClasses(workload, () => claims, members),
      }),
      runsOnce: move !== 'makeBeforeBreak',
      ...(pods && { pods }),
      ...(divided && { divide: divided }),
    },
    present: divided ? presentOf(placed, divided.replicas) : availableOf(workload),
    candidates,
    current: currentMembers(placed),
    serving: Object.keys(placed).filter((member) => placed[member]?.state === 'Serving'),
    near,
    volumesIn: membersOfClaims(withData),
    ...(volumesStay !== undefined && { volumesStay }),
    ...(volumeCopy && { volumeCopy }),
    move,
    scale: specScaleOf(workload),
    hasEnded: hasEnded(workload),
    ...(times && { moveTimes: times }),
    ...(firstSaid(rules, (rule) => rule.apply?.drift) === 'Report' && { reportsDrift: true as const }),
    ...(input.asleep !== undefined && !runsOnAsleep(workload) && { asleep: input.asleep }),
    ...(rebalance && { rebalance }),
    ...(rebalancing && { rebalancing }),
    ...(input.room && { room: input.room }),
  }
}

function whyItStays(claim: CachedObject, rules: ApplicableRules): string | undefined {
  const rule = volumeRuleOf(claim, rules)
  return 'why' in rule ? rule.why : undefined
}

/** The member in which a workload runs that is being adopted, or given back; undefined for any other workload. */
function adoptedFrom(workload: CachedObject, namespace: CachedObject | undefined): string | undefined {
  const record = adoptedNamespace(namespace)
  const isHeld = record !== undefined && record.state !== 'Adopted'
  return isHeld && adoptedObject(workload)?.adoption === record.adoption ? record.member : undefined
}

function sourceText({ source, rule }: ChosenTarget): string {
  if (source === 'placement') return `Placement "${rule?.name ?? ''}"`
  if (source === 'default') return 'no rule'
  return `annotation ${clustersAnnotation} of the ${source}`
}

/** The pods of the workload as a demand; undefined for kinds without replicas. */
function podDemandOf(workload: CachedObject): PodDemand | undefined {
  if (workloadKindOfObject(workload)?.paths.replicas === undefined) return undefined
  return {
    replicas: replicasOf(workload),
    perPod: podRequestsOf(workload),
    surge: (replicas) => surgeOf(workload, replicas),
  }
}

/** How to divide the replicas; undefined if the rule does not divide, or the kind has none or runs on one member. */
function divideDemandOf(
  pods: PodDemand | undefined,
  move: WorkloadKind['move'],
  rule: PlacementRule['replicas'],
): DivideDemand | undefined {
  if (rule?.mode !== 'Divide' || move !== 'makeBeforeBreak' || pods === undefined) return undefined
  return { ...pods, division: rule.division ?? 'Balanced', bounds: rule.bounds ?? [] }
}

/** How many replicas are available in each member. */
function availableOf(workload: CachedObject): Record<string, number> {
  const reports = Object.entries(memberStatusesOf<MemberStatus>(workload as KubeObject))
  return Object.fromEntries(
    reports.map(([name, { availableReplicas }]) => [
      name,
      typeof availableReplicas === 'number' ? availableReplicas : 0,
    ]),
  )
}

/** How many replicas each member has. */
function presentOf(placed: PlacedOn, replicas: number): Record<string, number> {
  const copies = Object.entries(placed).filter(([, copy]) => hasCopy(copy))
  return Object.fromEntries(copies.map(([name, copy]) => [name, copy.replicas ?? replicas]))
}

function specScaleOf(workload: CachedObject): NonNullable<Choice['scale']> {
  const { ordinals, updateStrategy } = (workload['spec'] ?? {}) as {
    ordinals?: { start?: number }
    updateStrategy?: { type?: string; rollingUpdate?: { partition?: number } }
  }
  const replicas = replicasOf(workload)
  if (workload.kind !== 'StatefulSet') return { replicas, start: 0, hasOrdinals: false }
  const { type, rollingUpdate } = updateStrategy ?? {}
  const start = ordinals?.start ?? 0
  const updatesFrom = type === 'OnDelete' ? Infinity : start + (rollingUpdate?.partition ?? 0)
  return { replicas, start, updatesFrom, hasOrdinals: true }
}

/**
 * The value of the first Placement that has it: the tenant's, then those for the logical cluster, then those for
 * all, by rank.
 */
export function moveTimes(rules: ApplicableRules): PlacementMove | undefined {
  return firstSaid(rules, ({ move }) => move)
}

function firstSaid<T>(
  { ofTenant, ofCluster, global }: ApplicableRules,
  said: (rule: PlacementRule) => T | undefined,
): T | undefined {
  for (const level of [ofTenant, ofCluster, global]) {
    const [first] = level.filter((rule) => said(rule) !== undefined).toSorted(byRank)
    if (first !== undefined) return said(first)
  }
  return undefined
}
