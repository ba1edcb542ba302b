// Gauges of what logical clusters use: the sum over all of them, and the largest with their names. However many there
// are, a measure has at most 51 series.
import type { Labels, Metrics } from './metrics.ts'

/** How many logical clusters a measure names: the largest. */
export const mostNamed = 50
/** The label with the name of a logical cluster. */
const nameLabel = 'logical_cluster'
/** For how long one count answers, milliseconds: all gauges of a scrape share it. */
const countedForMs = 1000

/** What one logical cluster uses, by measure. */
export interface Measured<Measure extends string> {
  readonly name: string
  readonly amounts: Readonly<Record<Measure, number>>
}

/** Name and help of the metric of each measure; the name of the largest ends with `_top`. */
type Descriptions<Measure extends string> = Readonly<Record<Measure, { readonly name: string; readonly help: string }>>

/** Registers two metrics for each measure. `read` is called at most once a second, by scrapes only. */
export function rankedGauges<Measure extends string>(
  metrics: Pick<Metrics, 'gauge'>,
  descriptions: Descriptions<Measure>,
  read: () => Iterable<Measured<Measure>>,
): void {
  const measures = Object.keys(descriptions) as Measure[]
  let counts = new Map<Measure, Ranking>()
  let countedAt = -Infinity
  const countOf = (measure: Measure): Ranking => {
    if (performance.now() - countedAt >= countedForMs) {
      counts = new Map(measures.map((one) => [one, new Ranking()]))
      for (const { name, amounts } of read()) for (const [one, ranking] of counts) ranking.add(name, amounts[one])
      countedAt = performance.now()
    }
    return counts.get(measure) ?? new Ranking()
  }
  for (const measure of measures) {
    const { name, help } = descriptions[measure]
    metrics.gauge({ name, help: `${help}, all logical clusters together`, read: () => countOf(measure).sum })
    metrics.gauge({
      name: `${name}_top`,
      help: `${help}, of the ${mostNamed} logical clusters with most`,
      labels: [nameLabel],
      read: () => countOf(measure).samples(),
    })
  }
}

/** A sum, and the largest of its parts. */
class Ranking {
  sum = 0
  /** The largest first; of equal ones, the first by name, so that a scrape names the same as the one before. */
  readonly #largest: { readonly name: string; readonly value: number }[] = []

  add(name: string, value: number): void {
    if (value <= 0) return
    this.sum += value
    let at = this.#largest.length
    for (; at > 0; at--) {
      const before = this.#largest[at - 1]
      if (before === undefined || before.value > value || (before.value === value && before.name < name)) break
    }
    if (at >= mostNamed) return
    this.#largest.splice(at, 0, { name, value })
    this.#largest.length = Math.min(this.#largest.length, mostNamed)
  }

  samples(): { labels: Labels; value: number }[] {
    return this.#largest.map(({ name, value }) => ({ labels: { [nameLabel]: name }, value }))
  }
}
