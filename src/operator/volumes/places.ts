// The places of VolumeMoves: how many volumes are copied at a time, and which move begins next. Pure.
import type { VolumeMoveLimits, VolumeMovePhase } from '#crds/index.ts'

/** A move that copies, or wants to. */
export interface Candidate {
  readonly name: string
  readonly logicalCluster: string
  readonly from: string
  readonly to: string
  /** Since when it waits, in Unix milliseconds. */
  readonly sinceMs: number
}

/** Why a move has no place. */
export interface PlaceWait {
  /** Moves with a place, and moves that have waited longer, which the same limit counts. */
  readonly ahead: number
  readonly sinceMs: number
  /** What is full, in words. */
  readonly why: string
}

/**
 * Whether a move of this phase keeps its place. A move gives it back when its application may stop: otherwise the claims
 * of a workload with more claims than places would wait for each other. The application has to be without its data only
 * as briefly as possible, so the last round needs no place.
 */
export function mayHavePlace(phase: VolumeMovePhase | undefined): boolean {
  return phase === undefined || phase === 'Preparing' || phase === 'Copying' || phase === 'Finishing'
}

/** Whether a move of this phase may have a place for rounds that keep its copy as new as it is. */
export function mayBeRefreshed(phase: VolumeMovePhase | undefined): boolean {
  return phase === 'Copying' || phase === 'Ready'
}

/**
 * Hands out the places. A place that becomes free goes to the logical cluster that has the fewest, and in it to the move
 * that has waited longest and whose members have room. A call costs at most n log n, with n moves that wait.
 */
export class Places {
  readonly #limits: VolumeMoveLimits
  readonly #placed: (move: string) => void
  readonly #holders = new Map<string, Candidate>()
  /** By logical cluster; the longest wait first. */
  readonly #waiting = new Map<string, Candidate[]>()
  readonly #counts = new Map<string, number>()

  /** `placed` is called with the name of a move that has waited and has a place now. */
  constructor(limits: VolumeMoveLimits, placed: (move: string) => void) {
    this.#limits = limits
    this.#placed = placed
  }

  has(move: string): boolean {
    return this.#holders.has(move)
  }

  /** Whether moves wait for a place. */
  get areWanted(): boolean {
    return this.#waiting.size > 0
  }

  /** Gives a place without asking for the limits, to a move that had it before this process began. */
  resume(move: Candidate): void {
    if (!this.#holders.has(move.name)) this.#hold(move)
  }

  /** Undefined if the move has a place now; else why it waits. It keeps its turn if it asks again. */
  take(move: Candidate): PlaceWait | undefined {
    if (this.#holders.has(move.name)) return undefined
    const known = this.#waiting.get(move.logicalCluster)?.find(({ name }) => name === move.name)
    // Whoever waits has found a limit, so a place that is free for this move is free for it alone.
    if (known === undefined && this.#fullFor(move) === undefined) {
      this.#hold(move)
      return undefined
    }
    if (known === undefined) this.#wait(move)
    return this.#reasonOf(known ?? move)
  }

  /** Whether the move has a place, after it got one if there was room. It does not wait. */
  tryTake(move: Candidate): boolean {
    if (this.#holders.has(move.name)) return true
    if (this.areWanted || this.#fullFor(move) !== undefined) return false
    this.#hold(move)
    return true
  }

  /** The move has ended, or copies no more for now. Nothing if it has no place and does not wait. */
  giveBack(name: string, logicalCluster: string): void {
    this.#forget(name, logicalCluster)
    const held = this.#holders.get(name)
    if (held === undefined) return
    this.#holders.delete(name)
    for (const key of keysOf(held)) this.#counts.set(key, this.#count(key) - 1)
    this.#fill()
  }

  #count(key: string): number {
    return this.#counts.get(key) ?? 0
  }

  #hold(move: Candidate): void {
    this.#holders.set(move.name, move)
    for (const key of keysOf(move)) this.#counts.set(key, this.#count(key) + 1)
  }

  #wait(move: Candidate): void {
    const queue = this.#waiting.get(move.logicalCluster) ?? []
    const at = queue.findLastIndex(({ sinceMs }) => sinceMs <= move.sinceMs) + 1
    this.#waiting.set(move.logicalCluster, queue.toSpliced(at, 0, move))
  }

  #forget(name: string, logicalCluster: string): void {
    const rest = this.#waiting.get(logicalCluster)?.filter((one) => one.name !== name)
    if (rest === undefined) return
    if (rest.length === 0) this.#waiting.delete(logicalCluster)
    else this.#waiting.set(logicalCluster, rest)
  }

  /** The first limit that leaves no room for the move. */
  #fullFor(move: Candidate): 'total' | 'cluster' | 'from' | 'to' | undefined {
    const { total, perMember, perLogicalCluster } = this.#limits
    if (this.#count(clusterKey(move)) >= perLogicalCluster) return 'cluster'
    if (this.#count(memberKey(move.from)) >= perMember) return 'from'
    if (this.#count(memberKey(move.to)) >= perMember) return 'to'
    return this.#holders.size >= total ? 'total' : undefined
  }

  #fill(): void {
    for (let next = this.#next(); next !== undefined; next = this.#next()) {
      this.#forget(next.name, next.logicalCluster)
      this.#hold(next)
      this.#placed(next.name)
    }
  }

  #next(): Candidate | undefined {
    if (this.#holders.size >= this.#limits.total) return undefined
    const fitting = [...this.#waiting.values()].flatMap(
      (queue) => queue.find((move) => this.#fullFor(move) === undefined) ?? [],
    )
    const held = (move: Candidate): number => this.#count(clusterKey(move))
    const [first] = fitting.toSorted((a, b) => held(a) - held(b) || a.sinceMs - b.sinceMs)
    return first
  }

  #reasonOf(move: Candidate): PlaceWait {
    const { total, perMember, perLogicalCluster } = this.#limits
    const full = this.#fullFor(move) ?? 'total'
    const key = { total: totalKey, cluster: clusterKey(move), from: memberKey(move.from), to: memberKey(move.to) }[full]
    const concerns = (other: Candidate): boolean => key === totalKey || keysOf(other).includes(key)
    const before = [...this.#waiting.values()]
      .flat()
      .filter((other) => other.sinceMs < move.sinceMs && concerns(other)).length
    const memberText = (member: string): string =>
      `member cluster "${member}" takes part in ${perMember} ${perMember === 1 ? 'copy' : 'copies'} at a time`
    const why = {
      total: `${volumes(total)} copied at a time`,
      cluster: `${volumes(perLogicalCluster)} copied at a time for one logical cluster`,
      from: memberText(move.from),
      to: memberText(move.to),
    }[full]
    const holding = key === totalKey ? this.#holders.size : this.#count(key)
    return { ahead: holding + before, sinceMs: move.sinceMs, why }
  }
}

const totalKey = ''

function clusterKey({ logicalCluster }: Candidate): string {
  return `cluster/${logicalCluster}`
}

function memberKey(member: string): string {
  return `member/${member}`
}

function keysOf(move: Candidate): readonly string[] {
  return [clusterKey(move), memberKey(move.from), memberKey(move.to)]
}

function volumes(count: number): string {
  return count === 1 ? 'one volume is' : `${count} volumes are`
}
