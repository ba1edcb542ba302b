// The story of a workload for its tenant: when a move began, from where, to where and why, and when it was over. Pure.
import type { KubeObject } from '#apimachinery/meta/index.ts'
import type { DeepReadonly } from '#client/index.ts'
import { contentHash, newEvent, placementHistory, type CopyState, type PlacedOn } from '#crds/index.ts'
import { evict } from '#placement/index.ts'
import type { Choice } from '#placement/index.ts'
import type { WorkloadRef } from './workload-key.ts'

/** Why a workload got another member. New: it had none. */
export type MoveCause = 'New' | 'Edit' | 'Drain' | 'Taint' | 'Failover' | 'Rebalance'

export interface Move {
  readonly from: readonly string[]
  readonly to: readonly string[]
  readonly cause: MoveCause
  readonly message: string
}

/** One entry of the annotation, the newest first. */
interface HistoryEntry extends Move {
  /** RFC 3339. */
  readonly time: string
}

const maxEntries = 10
const maxMessage = 256

/** The move that begins when `after` is written instead of `before`; undefined if no other member gets a copy. */
export function moveBegun(before: PlacedOn, after: PlacedOn, choice: Choice): Move | undefined {
  const to = membersOf(after).filter((member) => !isThere(before, member))
  if (to.length === 0) return undefined
  const from = membersOf(before).filter((member) => !wants(choice, member))
  const balance = choice.rebalancing
  if (balance !== undefined && to.includes(balance.to))
    return { from, to, cause: 'Rebalance', message: balance.message }
  return { from, to, ...causeOf(from, membersOf(before).length === 0, choice) }
}

/**
 * The members on which the workload settles with this write; undefined while it moves, and if it had settled there
 * before.
 */
export function settledOn(before: PlacedOn, after: PlacedOn): string[] | undefined {
  const settled = settledMembers(after)
  if (settled === undefined) return undefined
  return settledMembers(before)?.join() === settled.join() ? undefined : settled
}

/** The value of the history annotation with one more move; bounded. */
export function historyWith(workload: DeepReadonly<KubeObject>, move: Move, now: string): string {
  const entry: HistoryEntry = { time: now, ...move, message: move.message.slice(0, maxMessage) }
  return JSON.stringify([entry, ...placementHistory(workload)].slice(0, maxEntries))
}

/** The Event that tells of the begin of a move. */
export function moveEvent(move: Move): EventText {
  const to = move.to.map((name) => `"${name}"`).join(', ')
  if (move.cause === 'New') return { reason: 'Placing', message: `goes to member cluster ${to}: ${move.message}` }
  const from = move.from.map((name) => `"${name}"`).join(', ')
  const origin = from === '' ? 'also runs on' : `moves from member cluster ${from} to`
  const reason = move.cause === 'Rebalance' ? 'Rebalanced' : 'Moving'
  return { reason, message: `${origin} ${to} (${move.cause}): ${move.message}` }
}

/** The Event that tells of the arrival of a workload on its members. */
export function settledEvent(members: readonly string[]): EventText {
  return { reason: 'Placed', message: `runs on member cluster ${members.map((name) => `"${name}"`).join(', ')}` }
}

/** The Events about members that, as of this write, do not answer any more or answer again. */
export function lossEvents(before: PlacedOn, after: PlacedOn, { candidates }: Choice, nowMs: number): EventText[] {
  return Object.entries(after).flatMap(([member, { state }]): EventText[] => {
    const isLost = state === 'Lost'
    if (isLost === (before[member]?.state === 'Lost') || (!isLost && !isThere(after, member))) return []
    if (!isLost) return [{ reason: 'MemberAnswers', message: `member cluster "${member}" answers again` }]
    const { unreachableMs = 0 } = candidates.find(({ name }) => name === member) ?? {}
    const since = new Date(nowMs - unreachableMs).toISOString().replace(/\.\d+Z$/, 'Z')
    const message = `member cluster "${member}" has not answered since ${since}: status and pods are as it reported them last`
    return [{ type: 'Warning', reason: 'MemberLost', message }]
  })
}

export interface EventText {
  /** Default Normal. */
  readonly type?: 'Normal' | 'Warning'
  readonly reason: string
  readonly message: string
}

/** An Event on the workload. `now`: RFC 3339. */
export function workloadEvent(
  { kind, namespace, name }: WorkloadRef,
  { metadata: { uid = '', resourceVersion = '' } }: DeepReadonly<KubeObject>,
  { type = 'Normal', reason, message }: EventText,
  now: string,
): KubeObject {
  return newEvent({
    // One name for one version of the object: a repeated reconcile writes no second Event.
    metadata: { namespace, name: `${name.slice(0, 200)}.${contentHash([uid, resourceVersion, reason, message])}` },
    about: { apiVersion: kind.apiVersion, kind: kind.kind, namespace, name, uid, resourceVersion },
    component: 'kcp-placement',
    ...{ type, reason, message, now },
  })
}

function causeOf(from: readonly string[], isNew: boolean, choice: Choice): Pick<Move, 'cause' | 'message'> {
  if (isNew) return { cause: 'New', message: `chosen by ${choice.source}` }
  for (const candidate of choice.candidates) {
    const reason = from.includes(candidate.name) ? evict(candidate, choice.demand) : undefined
    if (reason === undefined) continue
    const cause = causes[reason.reason] ?? 'Edit'
    return { cause, message: reason.message }
  }
  return { cause: 'Edit', message: `chosen by ${choice.source}` }
}

const causes: Readonly<Record<string, MoveCause>> = {
  ClusterDraining: 'Drain',
  TaintNotTolerated: 'Taint',
  ClusterFenced: 'Failover',
  ClusterLost: 'Failover',
}

function wants({ target, candidates, demand, rebalancing }: Choice, member: string): boolean {
  if (target.kind === 'members') return target.names.includes(member)
  const candidate = candidates.find(({ name }) => name === member)
  if (rebalancing?.from === member) return false
  return target.kind === 'best' && candidate !== undefined && evict(candidate, demand) === undefined
}

/** Members with a copy, or that get one next. */
function membersOf(placed: PlacedOn): string[] {
  return Object.keys(placed)
    .filter((member) => isThere(placed, member))
    .sort()
}

function isThere(placed: PlacedOn, member: string): boolean {
  const state = placed[member]?.state
  return state !== undefined && !['Held', 'Terminating', 'Forwarding', 'Fenced'].includes(state)
}

/** States of copies in which a member has no part of the workload: a settled workload may still have such copies. */
const hasNoPart: readonly CopyState[] = ['Held', 'Terminating', 'Forwarding', 'Lost', 'Fenced']

function settledMembers(placed: PlacedOn): string[] | undefined {
  const copies = Object.entries(placed).filter(([, { state }]) => !hasNoPart.includes(state))
  const settled = copies.length > 0 && copies.every(([, { state }]) => state === 'Serving')
  return settled ? copies.map(([member]) => member).sort() : undefined
}
