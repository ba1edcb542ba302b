// Metrics of the server. No label names a logical cluster, to bound the number of series.
import type { Histogram, Metrics } from '../../telemetry/index.ts'
import type { Hub } from '../../store/hub/index.ts'
import type { WatchClock } from '../endpoints/watch-clock.ts'

export interface ServerMetrics {
  readonly requestSeconds: Histogram
  scrape(): ReturnType<Metrics['scrape']>
}

/** Registers the server's metrics. */
export function serverMetrics(
  metrics: Metrics,
  { hub, watchClock }: { hub: Hub; watchClock: WatchClock },
): ServerMetrics {
  const gauge = (name: string, help: string, read: () => number) => metrics.gauge({ name, help, read })
  gauge('kcp_loaded_logical_clusters', 'Logical clusters in memory', () => hub.usage().clusters)
  gauge('kcp_objects', 'Objects in memory', () => hub.usage().objects)
  gauge('kcp_object_bytes', 'Bytes of objects in memory', () => hub.usage().bytes)
  gauge('kcp_watches', 'Open watches that want bookmarks', () => watchClock.watches)
  gauge('process_resident_memory_bytes', 'Resident memory of the process', () => process.memoryUsage().rss)
  return {
    requestSeconds: metrics.histogram({
      name: 'kcp_request_duration_seconds',
      help: 'Time from a request read to its answer ready; watches and streams apart',
      labels: ['verb', 'code'],
    }),
    scrape: () => metrics.scrape(),
  }
}
