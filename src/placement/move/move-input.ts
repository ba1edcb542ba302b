// The input of the move engine: the decision that is written, the wanted one with its refusals, and the reports of
// members.
import type { CopyState, PlacedCopy, PlacedOn } from '#crds/index.ts'

export interface Rejection {
  /** Empty: it concerns no single member. */
  readonly cluster: string
  readonly reason: string
  readonly message: string
}

export interface Decision {
  /**
   * Where it should run. `none`: somebody asked for no member. `undecided`: nothing changes. `members` is never empty.
   */
  readonly wanted:
    | { readonly kind: 'members'; readonly names: readonly string[] }
    | { readonly kind: 'none' }
    | { readonly kind: 'undecided' }
  /** Named members that cannot take it now: their copies are Held, and no other copy is removed meanwhile. */
  readonly held: readonly Rejection[]
  /** How many replicas each wanted member has. Absent, for a member or for all: as many as the spec says. */
  readonly shares?: Readonly<Record<string, number>>
  /** Members that were considered and refused. */
  readonly rejected: readonly Rejection[]
}

/**
 * How a workload changes its member. makeBeforeBreak: the new copy serves before the old one goes. breakBeforeMake: the
 * old one is gone before the new one is created. ordinalByOrdinal: the same for one pod of a StatefulSet after the
 * other.
 */
export type Strategy = 'makeBeforeBreak' | 'breakBeforeMake' | 'ordinalByOrdinal'

/** Knowledge about one copy. */
export interface CopySeen {
  /** The member's controller has processed the present spec, with the replicas that this member has of it. */
  readonly observed: boolean
  /** The rollout of the present spec is complete. Implies observed. */
  readonly available: boolean
  /** Its ready endpoints are known in every member that can reach them. */
  readonly published: boolean
  /** The most endpoints of it that any member knows, in one Service. */
  readonly endpoints?: number
  /** No member knows an endpoint of it. */
  readonly endpointsGone: boolean
  /** The member's syncer has confirmed that nothing of it is left. */
  readonly gone: boolean
  /** Objects that the copy began must end before the copy goes: the Jobs of a CronJob. */
  readonly isBusy?: boolean
  /** Clients reach it at addresses of the member: of an Ingress, or of a load balancer. */
  readonly external?: boolean
  /** Pods that the member's controller counts, those that end included. */
  readonly pods?: number
  /** Of these, the pods that are available. */
  readonly ready?: number
  /** Of these, the pods that have the present template. */
  readonly updated?: number
  /** The tenant has paused its rollout, so the member makes no pods of a new template. */
  readonly isPaused?: boolean
  /** Why its pods are not made or not ready, in the words of the member. */
  readonly problem?: string
  /** The member has not answered for lostAfterMs. */
  readonly lost?: {
    /** In Unix milliseconds: when the workload leaves; absent while it does not leave by itself. */
    readonly failoverAtMs?: number
  }
  /** The member does not answer, and somebody has made sure that nothing runs there. */
  readonly isFenced?: boolean
}

/** Knowledge about the volumes of a workload. */
export interface VolumesSeen {
  /** The members with the data. */
  readonly in: readonly string[]
  /** Whether all but the last changes are in the member, so that the workload may stop. */
  readonly isCopied: (to: string) => boolean
  /** How far the copy is, in words. */
  readonly progress?: string
  /** A member with a claim that is not in the logical cluster yet: what it has, nobody knows. */
  readonly unknownIn?: string
  /** The volumes by the ordinal of their pod. Absent: pods share them, or have no ordinals. */
  readonly byOrdinal?: OrdinalVolumes
}

export interface OrdinalVolumes {
  /** The members with data of this pod. */
  readonly in: (ordinal: number) => readonly string[]
  /** Whether all but the last changes of this pod are in the member. */
  readonly isCopied: (ordinal: number, to: string) => boolean
  /** The first ordinal with data in another member; undefined: all data is here. */
  readonly firstElsewhere: (member: string) => number | undefined
}

export interface MoveInput {
  readonly now: number
  readonly placedOn: PlacedOn
  readonly decision: Decision
  /** Default makeBeforeBreak. */
  readonly strategy?: Strategy
  /**
   * The pods in the spec: their number, default 1; of a StatefulSet, the first ordinal, default 0, and the
   * first one to which a rollout gives the present template, default the first of all.
   */
  readonly scale?: { readonly replicas: number; readonly start: number; readonly updatesFrom?: number }
  readonly seen: (member: string) => CopySeen
  /** Whether the copy may drain: without a flat network, a namespace leaves a member as a whole. */
  readonly mayDrain: (member: string) => boolean
  readonly drainSeconds: number
  /** How long a copy must be Serving before another one drains. */
  readonly soakSeconds: number
  /** How long a member without any copy forwards requests that still come to its addresses. Default 0: not at all. */
  readonly forwardSeconds?: number
  /** The volumes of the workload. Absent: it has none with data. */
  readonly volumes?: VolumesSeen
  /** Whether pods of other members can be reached from the member. Default: they cannot. */
  readonly forwards?: (member: string) => boolean
}

/** One copy at one moment; `before` is undefined where the workload has none. */
export interface Copy {
  readonly name: string
  readonly before: PlacedCopy | undefined
  readonly seen: CopySeen
}

/** The role of the member in the decision: it should have a copy, it should and cannot, or it should not. */
export type Role = 'wanted' | 'refused' | 'leaving'

/** States in which a member runs pods that may serve. */
export const liveStates: readonly CopyState[] = ['Syncing', 'Applied', 'Available', 'Serving']

/** How long the copy has been in its state; without a time, for ever. */
export function elapsedMs(copy: PlacedCopy, { now }: Pick<MoveInput, 'now'>): number {
  const since = Date.parse(copy.since ?? '')
  return Number.isNaN(since) ? Number.MAX_SAFE_INTEGER : now - since
}

/** The number of replicas and the first ordinal that the spec asks for. */
export function scaleOf({ scale }: MoveInput): NonNullable<MoveInput['scale']> {
  return scale ?? { replicas: 1, start: 0 }
}

/** How many replicas the member has of the workload. */
export function shareOf(copy: PlacedCopy, input: MoveInput): number {
  return copy.replicas ?? scaleOf(input).replicas
}
