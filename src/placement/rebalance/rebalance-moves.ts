// The next move of a workload from a fuller to an emptier member. Each move makes the fuller of its two members less
// full, so there is no way back to an earlier state, and the moves end. Pure.
import { addAmounts, type Amounts, type Quantity } from '#apimachinery/quantity/index.ts'

export interface RebalanceMember {
  readonly name: string
  /** Limits of requests there. */
  readonly limits: Amounts
  /** Requests there, after the moves that are under way. */
  readonly requested: Amounts
}

/** A workload with one copy. */
export interface RebalanceUnit {
  readonly key: string
  readonly member: string
  readonly requests: Amounts
}

export interface RebalanceProposal<U extends RebalanceUnit> {
  readonly unit: U
  readonly to: string
  /** How full the two members are before, and the target with the workload; in percent. */
  readonly fromPercent: number
  readonly toPercent: number
  /** The difference of both. */
  readonly gainPercent: number
}

/** The outcome of a proposal: the workload moves, may go to another member only, or stays. */
export type RebalanceAnswer = 'move' | 'otherMember' | 'stays'

/** The largest part of any limited resource that is requested, in percent. */
export function fullnessOf(limits: Amounts, requested: Amounts): number {
  let most = 0
  for (const [name, { nanos }] of limits) {
    const part = (Number(requested.get(name)?.nanos ?? 0n) * 100) / Number(nanos)
    if (nanos > 0n && part > most) most = part
  }
  return most
}

/**
 * Proposes moves with a gain of at least `minGainPercent`, from the fullest member and the largest workload on, and
 * counts those that the caller accepts. Each workload moves once at most. n log n over the workloads of members that
 * are fuller by so much, times members.
 */
export function* rebalanceMoves<U extends RebalanceUnit>(
  members: readonly RebalanceMember[],
  units: Iterable<U>,
  minGainPercent: number,
): Generator<RebalanceProposal<U>, void, RebalanceAnswer> {
  const states = members.map((member) => new MemberState<U>(member))
  const byName = new Map(states.map((state) => [state.name, state]))
  for (const unit of units) byName.get(unit.member)?.units.push(unit)
  const sources = new Set(states)
  for (;;) {
    const source = fullest(sources)
    if (source === undefined) return
    const others = states.filter((state) => state !== source)
    const unit = others.some(({ percent }) => source.percent - percent >= minGainPercent)
      ? source.nextUnit()
      : undefined
    if (unit === undefined) {
      sources.delete(source)
      continue
    }
    // A workload that requests nothing of the resource that the member is short of stays: its move would not help.
    if (source.percentAfter(unit, -1) >= source.percent) continue
    const targets = others
      .map((state) => ({ state, toPercent: state.percentAfter(unit, 1) }))
      .filter(({ toPercent }) => toPercent <= 100 && source.percent - toPercent >= minGainPercent)
      .sort((a, b) => a.toPercent - b.toPercent || (a.state.name < b.state.name ? -1 : 1))
    for (const { state, toPercent } of targets) {
      const [fromPercent, to] = [source.percent, state.name]
      const answer = yield { unit, to, fromPercent, toPercent, gainPercent: fromPercent - toPercent }
      if (answer === 'otherMember') continue
      if (answer === 'move') {
        source.add(unit, -1)
        state.add(unit, 1)
      }
      break
    }
  }
}

function fullest<U extends RebalanceUnit>(sources: Iterable<MemberState<U>>): MemberState<U> | undefined {
  let most: MemberState<U> | undefined
  for (const state of sources)
    if (
      most === undefined ||
      state.percent > most.percent ||
      (state.percent === most.percent && state.name < most.name)
    )
      most = state
  return most
}

class MemberState<U extends RebalanceUnit> {
  readonly name: string
  readonly units: U[] = []
  readonly #limits: Amounts
  #requested: Map<string, Quantity>
  #percent: number
  #isSorted = false

  constructor({ name, limits, requested }: RebalanceMember) {
    this.name = name
    this.#limits = limits
    this.#requested = new Map(requested)
    this.#percent = fullnessOf(limits, requested)
  }

  get percent(): number {
    return this.#percent
  }

  /** The largest workload that was not returned yet. Workloads are sorted only where one may leave. */
  nextUnit(): U | undefined {
    if (!this.#isSorted) {
      const sized = this.units.map((unit) => ({ unit, size: fullnessOf(this.#limits, unit.requests) }))
      sized.sort((a, b) => a.size - b.size || (a.unit.key < b.unit.key ? 1 : -1))
      this.units.splice(0, Infinity, ...sized.map(({ unit }) => unit))
      this.#isSorted = true
    }
    return this.units.pop()
  }

  percentAfter({ requests }: RebalanceUnit, sign: 1 | -1): number {
    return fullnessOf(this.#limits, sumOf(this.#requested, requests, sign))
  }

  add({ requests }: RebalanceUnit, sign: 1 | -1): void {
    this.#requested = sumOf(this.#requested, requests, sign)
    this.#percent = fullnessOf(this.#limits, this.#requested)
  }
}

function sumOf(requested: Amounts, more: Amounts, sign: 1 | -1): Map<string, Quantity> {
  const sum = new Map(requested)
  addAmounts(sum, more, sign)
  return sum
}
