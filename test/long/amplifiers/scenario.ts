// A story of requests at one size, and what each of them cost at every size that was tried.
import { growthExponent } from './growth.ts'
import type { Cost, Sent } from './measured-process.ts'
import type { Subject } from './subject.ts'

export interface Step {
  /** `create`, `merge patch` ... */
  readonly name: string
  readonly sent: Sent
  /** The rest is left out, but for what cleans up, where this is refused. */
  readonly needed?: boolean
  /** Sent at the same time. Their cost counts as this step's. */
  readonly beside?: readonly Sent[]
}

export interface Scenario {
  readonly title: string
  /** The smallest and the largest size; the server's bounds are below. */
  readonly from?: number
  readonly largest?: number
  /** What is there before, unmeasured. */
  readonly before?: (n: number) => readonly Sent[]
  readonly steps: (n: number) => readonly Step[]
  /** Afterwards, whatever became of it, unmeasured. */
  readonly after?: (n: number) => readonly Sent[]
}

/** How often the second scenario of a pair is sent beside each step of the first. */
const besideCount = 4

/** Each step of the first scenario, while the first step of the second is sent several times. */
export function pairOf(first: Scenario, second: Scenario): Scenario {
  const both = (of: 'before' | 'after') => (n: number) => [...(first[of]?.(n) ?? []), ...(second[of]?.(n) ?? [])]
  return {
    title: `${first.title}, beside ${second.title}`,
    from: Math.max(first.from ?? 64, second.from ?? 64),
    largest: Math.min(first.largest ?? 32_768, second.largest ?? 32_768),
    before: both('before'),
    after: both('after'),
    steps: (n) => {
      const [other] = second.steps(n)
      const beside = other === undefined ? [] : Array.from({ length: besideCount }, () => other.sent)
      return first.steps(n).map((step) => ({ ...step, beside }))
    },
  }
}

export interface Measured extends Omit<Cost, 'text'> {
  readonly scenario: string
  readonly step: string
  readonly n: number
  /** The longest wait of the neighbour meanwhile, milliseconds. */
  readonly neighbourMs: number
}

export interface Verdict {
  readonly scenario: string
  readonly step: string
  readonly points: readonly Measured[]
  readonly exponent: number | undefined
  readonly worstNeighbourMs: number
}

/** Nobody is to wait longer for another tenant, milliseconds. */
export const mostWaitMs = 100
/**
 * n log n over the doublings that are fitted is 1.2 at most. The rest is noise of processor times: caches that other
 * programs empty and garbage collections, which are a larger part of what takes little.
 */
const mostExponent = (costMs: number): number => (costMs < 500 ? 1.6 : 1.4)
/** A growth is looked into from here on, milliseconds of the largest size: below, nobody feels it. */
const feltMs = 100

/** What a scenario needs of a server. */
export type Measurable = Pick<Subject, 'measure' | 'prepare' | 'worstWait'>

/** Runs it at one size. Stops where a request that the others need is refused. */
async function runAt(
  subject: Measurable,
  scenario: Scenario,
  { n, settle }: { n: number; settle: boolean },
): Promise<Measured[]> {
  const measured: Measured[] = []
  try {
    // What cannot be prepared at this size cannot be measured at it.
    if ((await subject.prepare(scenario.before?.(n) ?? [])) !== undefined) return []
    for (const { name, sent, needed = false, beside = [] } of scenario.steps(n)) {
      const others = subject.prepare(beside)
      const { text: _text, ...cost } = await subject.measure(sent, { settle })
      await others
      const neighbourMs = subject.worstWait(cost.began, cost.ended)
      measured.push({ ...cost, scenario: scenario.title, step: name, n, neighbourMs })
      if (cost.hasDied || (needed && cost.status >= 300)) break
    }
  } finally {
    await subject.prepare(scenario.after?.(n) ?? [])
  }
  return measured
}

const isRefused = ({ status }: Measured): boolean => status === 0 || status === 413 || status === 414 || status === 431
/** Longer steps are not doubled again, milliseconds of processor time. */
const longestMs = 3000

/** Two sizes, n and 4n: what grows faster than linearly there, or costs something, is doubled all the way. */
export async function screen(subject: Measurable, scenario: Scenario): Promise<Verdict[]> {
  const { from = 64, largest = 32_768 } = scenario
  const low = Math.max(from, Math.min(1536, largest / 8))
  const sizes = [low, low * 4]
  const points: Measured[] = []
  for (const n of sizes) {
    const at = await runAt(subject, scenario, { n, settle: false })
    points.push(...at)
    // Seconds at the smallest size are answer enough.
    if (at.some(({ hasDied, cpuMs }) => hasDied || cpuMs > longestMs)) break
  }
  return verdicts(points)
}

/** True for what the screen found to grow too fast, or to hold up others. */
export function isSuspicious({ points, worstNeighbourMs }: Verdict): boolean {
  const [low, high] = points
  if (low === undefined) return false
  if (high === undefined) return low.hasDied || low.cpuMs > feltMs
  const grows = high.cpuMs > 60 && high.cpuMs > 6 * Math.max(low.cpuMs, 4)
  return grows || high.mainMs > 60 || worstNeighbourMs > mostWaitMs
}

/** Doubles the size from the smallest up to what the server admits, or until it costs seconds. */
export async function fullDoubling(subject: Measurable, scenario: Scenario): Promise<Verdict[]> {
  const points: Measured[] = []
  for (let n = scenario.from ?? 64; n <= (scenario.largest ?? 32_768); n *= 2) {
    const at = await runAt(subject, scenario, { n, settle: true })
    points.push(...at)
    if (at.some((one) => isRefused(one) || one.hasDied || one.cpuMs > longestMs)) break
  }
  return verdicts(points)
}

/** Rounds in which what fails at first is measured again. */
const rounds = 6

/**
 * As `fullDoubling`, and what would fail is measured again where it fails, size by size in turn: only what is the same
 * each time is no noise. Seconds, or a server that ended, are certain at once.
 */
export async function confirmedDoubling(subject: Measurable, scenario: Scenario): Promise<Verdict[]> {
  let found = await fullDoubling(subject, scenario)
  for (let round = 0; round < rounds; round++) {
    const doubtful = found.filter((verdict) => fails(verdict) && !isCertain(verdict))
    if (doubtful.length === 0) break
    const sizes = new Set(doubtful.flatMap(decidingSizes))
    const again: Measured[] = []
    for (const n of sizes) again.push(...(await runAt(subject, scenario, { n, settle: true })))
    found = found.map((verdict) => cheaper(verdict, again))
  }
  return found
}

const isCertain = ({ points }: Verdict): boolean => points.some(({ hasDied, cpuMs }) => hasDied || cpuMs > 2000)

/** The largest sizes, and those at which the neighbour waited. */
const decidingSizes = ({ points }: Verdict): number[] => {
  const answered = points.filter((point) => !isRefused(point)).slice(-4)
  const waited = points.filter(({ neighbourMs }) => neighbourMs > mostWaitMs)
  return [...answered, ...waited].map(({ n }) => n)
}

/** Whether this fails: it grows faster than n log n to what is felt, or lets others wait, or ends the server. */
export function fails({ points, exponent, worstNeighbourMs }: Verdict): boolean {
  if (points.some(({ hasDied }) => hasDied)) return true
  const mostMs = Math.max(0, ...points.map(({ cpuMs }) => cpuMs))
  return (exponent !== undefined && exponent > mostExponent(mostMs) && mostMs > feltMs) || worstNeighbourMs > mostWaitMs
}

/** The same step measured again, point by point the cheaper one: noise only adds. */
function cheaper(first: Verdict, again: readonly Measured[]): Verdict {
  const points = first.points.map((point) => {
    const other = again.find(({ n, step }) => n === point.n && step === first.step)
    if (other === undefined) return point
    const least = other.cpuMs < point.cpuMs ? other : point
    return { ...least, neighbourMs: Math.min(other.neighbourMs, point.neighbourMs) }
  })
  return verdictOf(points) ?? first
}

function verdicts(points: readonly Measured[]): Verdict[] {
  return [...Map.groupBy(points, ({ step }) => step).values()].flatMap((of) => verdictOf(of) ?? [])
}

function verdictOf(points: readonly Measured[]): Verdict | undefined {
  const [first] = points
  if (first === undefined) return undefined
  const { scenario, step } = first
  // A refusal is a bound, and no cost to compare with.
  const answered = points.filter((point) => !isRefused(point))
  const worstNeighbourMs = Math.max(0, ...points.map(({ neighbourMs }) => neighbourMs))
  return { scenario, step, points, exponent: growthExponent(answered), worstNeighbourMs }
}
