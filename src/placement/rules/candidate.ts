// A member as placement sees it, and what a workload demands of its member.
import type { Amounts } from '#apimachinery/quantity/index.ts'
import type { DivisionBound, FixedSelector, Taint } from '#crds/index.ts'
import type { ClassNames, NamedClass } from './classes.ts'
import type { Toleration } from './taints.ts'

/** A member as placement sees it. */
export interface Candidate {
  readonly name: string
  readonly labels?: Readonly<Record<string, string>>
  /** Condition Ready is True. */
  readonly ready: boolean
  readonly state: 'Active' | 'Cordoned' | 'Draining'
  /** The member's logicalClusterSelector matches this logical cluster. */
  readonly admits: boolean
  /** Number of copies on the member: fewer is better. */
  readonly load: number
  /** Number of copies of this logical cluster on the member. */
  readonly ownLoad?: number
  readonly taints?: readonly Readonly<Taint>[]
  /** For how long it has not answered; absent while it answers. */
  readonly unreachableMs?: number
  /** Too many members do not answer: it is more likely that we are cut off, so nothing moves away from lost members. */
  readonly isFailoverFrozen?: boolean
  /** Whether the member does not answer, and somebody has made sure that nothing runs there. */
  readonly isFenced?: boolean
  /** Limits of all requests there; a resource that is absent is not limited. */
  readonly limits?: Amounts
  /** A field that the workload uses and the member does not know; empty: the kind itself. */
  readonly unknownField?: string
  /** The classes that it has. */
  readonly classes?: ClassNames
  /** An admin has set the limits: nothing there grows beyond them. */
  readonly isBounded?: boolean
  /** Requests of others there, with decisions that are not written yet. */
  readonly requested?: Amounts
}

/** A Placement of an admin that restricts where a workload may run, whether an admin or a tenant chooses. */
export interface Bound {
  readonly placement: string
  readonly clusters?: readonly string[]
  readonly require?: FixedSelector
  /** A CEL expression that must hold. */
  readonly cel?: string
}

export interface Preference {
  readonly weight: number
  readonly labelSelector?: FixedSelector
}

export interface Spread {
  /** Members with the same value of this label are one domain. */
  readonly topologyKey: string
  /** How many copies more than the emptiest domain a domain may have. */
  readonly maxSkew: number
  /** With fewer domains than this, the emptiest one counts as empty. */
  readonly minDomains?: number
}

/** Demands of a workload on its member, besides the target. */
export interface Demand {
  readonly bounds: readonly Bound[]
  /** The labels that the deciding Placement requires. */
  readonly require?: { readonly placement: string; readonly labelSelector: FixedSelector }
  /** A CEL expression of the Placement that decides. */
  readonly requireCel?: { readonly placement: string; readonly expression: string }
  readonly prefer: readonly Preference[]
  readonly tolerations: readonly Toleration[]
  readonly spread: readonly Spread[]
  /** Requests of its pods. */
  readonly requests: Amounts
  /** Classes that it, or one of its claims, names. */
  readonly classes?: readonly NamedClass[]
  /** After how long without an answer of its member it starts elsewhere. Default 300. */
  readonly tolerationSeconds?: number
  /** The workload must not run twice, so it leaves a member that does not answer only when the member is fenced. */
  readonly runsOnce?: boolean
  /** Its pods. Absent for kinds without replicas. */
  readonly pods?: PodDemand
  /** How the members divide the replicas. Absent: each member runs all replicas. */
  readonly divide?: DivideDemand
}

/** The pods of a workload. */
export interface PodDemand {
  readonly replicas: number
  /** Requests of one pod. */
  readonly perPod: Amounts
  /** How many pods more than these replicas a rollout has for a while. */
  readonly surge: (replicas: number) => number
}

/** How the replicas of a workload are divided among members. */
export interface DivideDemand extends PodDemand {
  readonly division: 'Balanced' | 'Weighted' | 'ByCapacity'
  readonly bounds: readonly DivisionBound[]
}

/** Demands nothing. */
export const noDemand: Demand = { bounds: [], prefer: [], tolerations: [], spread: [], requests: new Map() }
