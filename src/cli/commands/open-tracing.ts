// The tracer that the flags of a command ask for.
import { randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import { openTracer, type Logger, type Metrics } from '#telemetry/index.ts'
import type { TracingFlags } from './tracing-flags.ts'

/** Opens the tracer of this process; undefined without `--tracing-endpoint`. Call it before anything else is created. */
export async function openTracing(
  { tracingEndpoint: endpoint, tracingSamplingRatePerMillion: samplingRatePerMillion }: TracingFlags,
  { serviceName, metrics, log }: { readonly serviceName: string; readonly metrics: Metrics; readonly log: Logger },
): Promise<AsyncDisposable | undefined> {
  if (endpoint === undefined) return undefined
  const instanceId = `${hostname()}_${randomUUID()}`
  // The variable that OpenTelemetry specifies for this.
  const delay = Number(process.env['OTEL_BSP_SCHEDULE_DELAY'])
  const batchDelayMs = delay > 0 ? { batchDelayMs: delay } : {}
  return await openTracer({ endpoint, samplingRatePerMillion, serviceName, instanceId, metrics, log, ...batchDelayMs })
}
