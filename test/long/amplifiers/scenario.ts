// A story of requests at one size, and what each of them cost at every size that was tried.
import { availableParallelism, loadavg } from 'node:os'
import { growthExponent } from './growth.ts'
import type { Cost, Sent, Subject } from './subject.ts'

export interface Step {
  /** `create`, `merge patch` ... */
  readonly name: string
  readonly sent: Sent
  /** The rest is left out, but for what cleans up, where this is refused. */
  readonly needed?: boolean
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
/** n log n over the doublings that are fitted is 1.2 at most; the rest is noise of processor times. */
export const mostExponent = 1.4
/** A growth is looked into from here on, milliseconds of the largest size: below, nobody feels it. */
const feltMs = 100

const isMachineBusy = (): boolean => (loadavg()[0] ?? 0) > availableParallelism()

/** Runs it at one size. Stops where a request that the others need is refused. */
async function runAt(
  subject: Subject,
  scenario: Scenario,
  { n, settle }: { n: number; settle: boolean },
): Promise<Measured[]> {
  const measured: Measured[] = []
  try {
    // What cannot be prepared at this size cannot be measured at it.
    if ((await subject.prepare(scenario.before?.(n) ?? [])) !== undefined) return []
    for (const { name, sent, needed = false } of scenario.steps(n)) {
      const { text: _text, ...cost } = await subject.measure(sent, { settle })
      const waitedMs = subject.worstWait(cost.began, cost.ended)
      // On a busy machine the neighbour also waits for others than this server.
      const neighbourMs = isMachineBusy() ? Math.min(waitedMs, cost.mainMs) : waitedMs
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
export async function screen(subject: Subject, scenario: Scenario): Promise<Verdict[]> {
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
export async function fullDoubling(subject: Subject, scenario: Scenario): Promise<Verdict[]> {
  const points: Measured[] = []
  for (let n = scenario.from ?? 64; n <= (scenario.largest ?? 32_768); n *= 2) {
    const at = await runAt(subject, scenario, { n, settle: true })
    points.push(...at)
    if (at.some((one) => isRefused(one) || one.hasDied || one.cpuMs > longestMs)) break
  }
  return verdicts(points)
}

/** Whether this fails: it grows faster than n log n to what is felt, or lets others wait, or ends the server. */
export function fails({ points, exponent, worstNeighbourMs }: Verdict): boolean {
  if (points.some(({ hasDied }) => hasDied)) return true
  const mostMs = Math.max(0, ...points.map(({ cpuMs }) => cpuMs))
  return (exponent !== undefined && exponent > mostExponent && mostMs > feltMs) || worstNeighbourMs > mostWaitMs
}

/** The same step of several runs, point by point the cheaper one: noise only adds. */
export function best(first: Verdict, second: Verdict | undefined): Verdict {
  const points = first.points.map((point) => {
    const again = second?.points.find(({ n }) => n === point.n)
    if (again === undefined) return point
    const cheaper = again.cpuMs < point.cpuMs ? again : point
    return { ...cheaper, neighbourMs: Math.min(again.neighbourMs, point.neighbourMs) }
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
