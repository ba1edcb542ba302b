// Metrics of the server. No label names a logical cluster, to bound the number of series.
import { monitorEventLoopDelay } from 'node:perf_hooks'
import type { Counter, Histogram, Metrics } from '#telemetry/index.ts'
import { storageUsed } from '#store/index.ts'
import type { WatchCache } from '#store/watch-cache/index.ts'
import type { WatchClock } from '#virtualapi/endpoints/call/watch-clock.ts'

export interface ServerMetrics {
  readonly requestSeconds: Histogram
  /** Requests that another process answers. */
  readonly forwarded: Counter
  scrape(): ReturnType<Metrics['scrape']>
}

export interface ServerMetricsOptions {
  readonly watchCache: Pick<WatchCache, 'loads' | 'usage'>
  readonly watchClock: Pick<WatchClock, 'watches'>
  /** How much one logical cluster may keep, in bytes; Infinity: no limit. */
  readonly storageBytes: number
}

/** The share of its storage limit above which a logical cluster counts as nearly full. */
const nearlyFullShare = 0.9
/** The interval at which the delay of the event loop is sampled, milliseconds. */
const delayResolutionMs = 20

/** Registers the server's metrics. */
export function serverMetrics(
  metrics: Metrics,
  { watchCache, watchClock, storageBytes }: ServerMetricsOptions,
): ServerMetrics {
  const gauge = (name: string, help: string, read: () => number) => metrics.gauge({ name, help, read })
  gauge('kcp_loaded_logical_clusters', 'Logical clusters in memory', () => watchCache.usage().clusters)
  gauge('kcp_objects', 'Objects in memory', () => watchCache.usage().objects)
  gauge('kcp_object_bytes', 'Bytes of objects in memory', () => watchCache.usage().bytes)
  gauge('kcp_watches', 'Open watches that want bookmarks', () => watchClock.watches)
  gauge(
    'kcp_nearly_full_logical_clusters',
    `Logical clusters in memory that use more than ${nearlyFullShare * 100} % of what they may keep`,
    () => countNearlyFull(watchCache, storageBytes * nearlyFullShare),
  )
  const delay = monitorEventLoopDelay({ resolution: delayResolutionMs })
  delay.enable()
  metrics.gauge({
    name: 'kcp_event_loop_delay_p99_seconds',
    help: 'How late timers fire, 99th percentile since the last scrape',
    across: 'max',
    read: () => {
      const seconds = Math.max(0, delay.percentile(99) / 1e9 - delayResolutionMs / 1000)
      delay.reset()
      return seconds
    },
  })
  gauge('process_resident_memory_bytes', 'Resident memory of the process', () => process.memoryUsage().rss)
  return {
    requestSeconds: metrics.histogram({
      name: 'kcp_request_duration_seconds',
      help: 'Time from a request read to its answer ready; watches and streams apart',
      labels: ['verb', 'code'],
    }),
    forwarded: metrics.counter({
      name: 'kcp_forwarded_requests_total',
      help: 'Requests that another process answers: a worker of the same server, or a replica',
      labels: ['to'],
    }),
    scrape: () => metrics.scrape(),
  }
}

function countNearlyFull(watchCache: Pick<WatchCache, 'loads'>, bytes: number): number {
  let count = 0
  for (const { bytes: values, objects } of watchCache.loads())
    if (storageUsed({ bytes: values, size: objects }) > bytes) count++
  return count
}
