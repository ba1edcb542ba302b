// Metrics: counters, gauges and histograms of this process, on prom-client. No label may carry the name of a logical
// cluster or of an object, because thousands of series block a scrape; ranked-gauges.ts names a bounded number.
import { createRequire } from 'node:module'
import type Prom from 'prom-client'

// Imported by file: the index would also load the default process metrics, and with them 50 modules of OpenTelemetry,
// at every start.
const promModule = createRequire(import.meta.url)
const Registry = promModule('prom-client/lib/registry') as typeof Prom.Registry
const PromCounter = promModule('prom-client/lib/counter') as typeof Prom.Counter
const PromGauge = promModule('prom-client/lib/gauge') as typeof Prom.Gauge
const PromHistogram = promModule('prom-client/lib/histogram') as typeof Prom.Histogram

export type Labels = Readonly<Record<string, string>>

export interface Counter {
  inc(labels?: Labels, by?: number): void
}
export interface Gauge {
  set(value: number, labels?: Labels): void
}
export interface Histogram {
  /** Seconds for durations, bytes for sizes: base units, as Prometheus asks. */
  observe(value: number, labels?: Labels): void
}

interface Described {
  readonly name: string
  readonly help: string
  readonly labels?: readonly string[]
}

/** One series of a gauge with labels. */
export interface Sample {
  readonly labels: Labels
  readonly value: number
}

export interface Metrics {
  counter(options: Described): Counter
  /**
   * `read` is called at each scrape and gives the value, or all series of a gauge with labels. Without it, the gauge
   * shows the value last set.
   */
  gauge(
    options: Described & {
      readonly read?: () => number | Iterable<Sample>
      /** How the values of several workers become one. Default: their sum. */
      readonly across?: 'sum' | 'min' | 'max'
    },
  ): Gauge
  histogram(options: Described & { readonly buckets?: readonly number[] }): Histogram
  /** The text of a scrape and its media type. */
  scrape(): Promise<Scrape>
  /** All values, for a process that shows the metrics of several. */
  snapshot(): Promise<MetricsSnapshot>
}

export interface Scrape {
  readonly contentType: string
  readonly body: string
}

/** The metrics of one process, as JSON. */
export type MetricsSnapshot = readonly object[]

/** Upper bounds in seconds, from a request served from memory to one that waits. */
export const durationBuckets: readonly number[] = [
  0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30,
]

/** Creates a registry of its own. Registering a name twice throws. */
export function createMetrics(): Metrics {
  const registry = new Registry()
  const common = ({ name, help, labels = [] }: Described) => ({
    name,
    help,
    labelNames: [...labels],
    registers: [registry],
  })
  return {
    counter(options) {
      const counter = new PromCounter(common(options))
      return { inc: (labels = {}, by = 1) => counter.inc(labels, by) }
    },
    gauge({ read, across = 'sum', ...options }) {
      const gauge = new PromGauge({
        ...common(options),
        aggregator: across,
        ...(read && {
          collect() {
            const now = read()
            if (typeof now === 'number') {
              this.set(now)
              return
            }
            this.reset()
            for (const { labels, value } of now) this.set(labels, value)
          },
        }),
      })
      return { set: (value, labels = {}) => gauge.set(labels, value) }
    },
    histogram({ buckets = durationBuckets, ...options }) {
      const histogram = new PromHistogram({ ...common(options), buckets: [...buckets] })
      return { observe: (value, labels = {}) => histogram.observe(labels, value) }
    },
    async scrape() {
      return { contentType: registry.contentType, body: await registry.metrics() }
    },
    async snapshot() {
      return await registry.getMetricsAsJSON()
    },
  }
}

/** A metric of a snapshot, as prom-client writes it. */
interface Recorded {
  readonly name: string
  readonly type: string
  readonly values: readonly RecordedValue[]
}

interface RecordedValue {
  readonly value: number
  readonly labels: Labels
  /** For the parts of a histogram: `NAME_bucket`, `NAME_sum` or `NAME_count`. */
  readonly metricName?: string
}

/** The counters and histograms of a snapshot: what may never decrease, also when its process does not answer. */
export function countersOf(snapshot: MetricsSnapshot): MetricsSnapshot {
  return (snapshot as readonly Recorded[]).filter(({ type }) => type === 'counter' || type === 'histogram')
}

/** The sums of the counters and histograms of two snapshots. */
export function addCounters(a: MetricsSnapshot, b: MetricsSnapshot): MetricsSnapshot {
  const sums = new Map<string, Recorded>()
  for (const metric of [...countersOf(a), ...countersOf(b)] as readonly Recorded[]) {
    const before = sums.get(metric.name)
    sums.set(
      metric.name,
      before === undefined ? metric : { ...metric, values: addValues(before.values, metric.values) },
    )
  }
  return [...sums.values()]
}

function addValues(a: readonly RecordedValue[], b: readonly RecordedValue[]): RecordedValue[] {
  const sums = new Map<string, RecordedValue>()
  for (const one of [...a, ...b]) {
    const labels = Object.entries(one.labels).sort(([x], [y]) => (x < y ? -1 : 1))
    const key = JSON.stringify([one.metricName, labels])
    sums.set(key, { ...one, value: (sums.get(key)?.value ?? 0) + one.value })
  }
  return [...sums.values()]
}

/** One scrape of the metrics of several processes that run the same program. */
export async function scrapeOfAll(snapshots: readonly MetricsSnapshot[]): Promise<Scrape> {
  // Loaded late: only workers need it.
  const Aggregator = promModule('prom-client/lib/cluster') as typeof Prom.AggregatorRegistry
  const registry = Aggregator.aggregate(snapshots as object[])
  return { contentType: registry.contentType, body: await registry.metrics() }
}
