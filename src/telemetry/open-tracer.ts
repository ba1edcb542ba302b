// The tracer on OpenTelemetry: spans are sampled as kube-apiserver does it, queued within bounds, and sent in batches
// to a collector (OTLP over HTTP, as JSON). Its packages are loaded here, when a tracer is opened.
import { AsyncLocalStorage } from 'node:async_hooks'
import type * as Api from '@opentelemetry/api'
import type { SpanExporter, SpanProcessor } from '@opentelemetry/sdk-trace'
import type { Logger } from './log.ts'
import type { Metrics } from './metrics.ts'
import { programVersion } from './program-version.ts'
import type { SpanReference } from './traceparent.ts'
import { useTracer, type Span, type SpanAttributes, type SpanOptions, type Tracer } from './tracer.ts'

/** As the TracingConfiguration of kube-apiserver. */
export interface TracingOptions {
  /** URL of a collector: `http://HOST:4318`, or with a path of its own instead of `/v1/traces`. */
  readonly endpoint: string
  /** Of a million traces that begin here, how many are recorded. */
  readonly samplingRatePerMillion: number
  /** The process, as traces show it: `kcp-apiserver`. */
  readonly serviceName: string
  /** This process among those of the same name. */
  readonly instanceId: string
  readonly metrics: Pick<Metrics, 'counter'>
  readonly log: Logger
  /** How long a span waits for others, milliseconds. Default 5 s. */
  readonly batchDelayMs?: number
}

/** Spans that wait while the collector is slow or down; more are dropped and counted. */
const maxQueued = 2048
const maxBatch = 512
/** At the end of the process all that is queued is sent at once; before, one batch at a time. */
const concurrencyLimit = 8
/** An attempt to send a batch, its repetitions included, milliseconds. */
const sendTimeoutMs = 10_000
/** How long the end of the process waits for the collector, milliseconds. */
const lastSendMs = 3000
/** Bounds of what clients can add to a span: spans of kcp have fewer than 20 attributes. */
const maxAttributes = 32
const maxAttributeLength = 256
const maxNameLength = 256
/** Minimum time between two log messages about lost spans, milliseconds. */
const reportIntervalMs = 60_000

/** The path of OTLP over HTTP. */
const defaultPath = '/v1/traces'

/** Makes a tracer that of this process. Disposing of it sends what is queued, for some seconds at most. */
export async function openTracer(options: TracingOptions): Promise<AsyncDisposable> {
  const { endpoint, samplingRatePerMillion, serviceName, instanceId, batchDelayMs = 5000 } = options
  const [api, sdk, { OTLPTraceExporter }, { resourceFromAttributes }] = await Promise.all([
    import('@opentelemetry/api'),
    import('@opentelemetry/sdk-trace'),
    import('@opentelemetry/exporter-trace-otlp-http'),
    import('@opentelemetry/resources'),
  ])
  const exporter = new OTLPTraceExporter({ url: urlOf(endpoint), timeoutMillis: sendTimeoutMs, concurrencyLimit })
  const counted = counting(exporter, options)
  const batches = new sdk.BatchSpanProcessor({
    exporter: counted.exporter,
    maxQueueSize: maxQueued,
    maxExportBatchSize: maxBatch,
    scheduledDelayMillis: batchDelayMs,
    exportTimeoutMillis: sendTimeoutMs + 1000,
  })
  const root = new sdk.TraceIdRatioBasedSampler(samplingRatePerMillion / 1_000_000)
  const provider = new sdk.TracerProvider({
    sampler: new sdk.ParentBasedSampler({ root }),
    spanProcessors: [counted.processor, batches],
    spanLimits: {
      attributeCountLimit: maxAttributes,
      attributeValueLengthLimit: maxAttributeLength,
      linkCountLimit: 2,
    },
    resource: resourceFromAttributes({
      'service.name': serviceName,
      'service.instance.id': instanceId,
      'service.version': programVersion,
    }),
  })
  const tracer = new OtelTracer(provider.getTracer('kcp'), api)
  const used = useTracer(tracer)
  return {
    async [Symbol.asyncDispose]() {
      used[Symbol.dispose]()
      const late = Promise.withResolvers<undefined>()
      const timer = setTimeout(() => late.resolve(undefined), lastSendMs)
      await Promise.race([provider.shutdown().catch(() => undefined), late.promise])
      clearTimeout(timer)
    },
  }
}

function urlOf(endpoint: string): string {
  const url = new URL(endpoint)
  if (url.pathname === '/') url.pathname = defaultPath
  return url.href
}

/** Counts spans that have ended and those that a collector has taken; the others are lost or wait. */
function counting(exporter: SpanExporter, { metrics, log, endpoint }: TracingOptions) {
  const ended = metrics.counter({
    name: 'kcp_trace_spans_total',
    help: 'Spans of sampled traces, the lost ones included',
  })
  const exported = metrics.counter({
    name: 'kcp_trace_spans_exported_total',
    help: 'Spans that the collector of traces has taken',
  })
  let reportedAt = -reportIntervalMs
  const lost = (spans: number, error: unknown): void => {
    if (performance.now() - reportedAt < reportIntervalMs) return
    reportedAt = performance.now()
    log.warn('spans of traces are lost: their collector does not take them', {
      host: new URL(endpoint).host,
      spans,
      error,
    })
  }
  const processor: SpanProcessor = {
    onStart: () => undefined,
    onEnd: (span) => {
      if ((span.spanContext().traceFlags & 1) === 1) ended.inc()
    },
    forceFlush: () => Promise.resolve(),
    shutdown: () => Promise.resolve(),
  }
  const counted: SpanExporter = {
    export(spans, done) {
      exporter.export(spans, (result) => {
        if (result.error === undefined) exported.inc({}, spans.length)
        else lost(spans.length, result.error)
        done(result)
      })
    },
    forceFlush: () => exporter.forceFlush?.() ?? Promise.resolve(),
    shutdown: () => exporter.shutdown(),
  }
  return { processor, exporter: counted }
}

class OtelTracer implements Tracer {
  readonly #tracer: Api.Tracer
  readonly #api: typeof Api
  readonly #spans = new AsyncLocalStorage<Span>()

  constructor(tracer: Api.Tracer, api: typeof Api) {
    this.#tracer = tracer
    this.#api = api
  }

  start(name: string, { kind, parent, link, attributes = {}, startedAt = performance.now() }: SpanOptions = {}): Span {
    const { SpanKind, SpanStatusCode, ROOT_CONTEXT } = this.#api
    const kinds = { server: SpanKind.SERVER, client: SpanKind.CLIENT } as const
    const links: Api.Link[] = link === undefined ? [] : [{ context: this.#contextOf(link) }]
    const span = this.#tracer.startSpan(
      name.slice(0, maxNameLength),
      {
        kind: kind === undefined ? SpanKind.INTERNAL : kinds[kind],
        attributes,
        startTime: startedAt,
        links,
      },
      parent === undefined ? ROOT_CONTEXT : this.#inside(ROOT_CONTEXT, parent),
    )
    return new RunningSpan(span, SpanStatusCode.ERROR)
  }

  current(): Span | undefined {
    const span = this.#spans.getStore()
    // What began during a span and outlives it, such as a connection or a watch, is no step of it.
    return span?.hasEnded === true ? undefined : span
  }

  within<T>(span: Span, run: () => T): T {
    return this.#spans.run(span, run)
  }

  #inside(context: Api.Context, parent: SpanReference): Api.Context {
    return this.#api.trace.setSpanContext(context, this.#contextOf(parent))
  }

  #contextOf(reference: SpanReference) {
    const { traceId, spanId, isSampled } = reference
    return { traceId, spanId, traceFlags: isSampled ? 1 : 0, isRemote: !(reference instanceof RunningSpan) }
  }
}

class RunningSpan implements Span {
  readonly #span: Api.Span
  readonly #failed: Api.SpanStatusCode
  readonly traceId: string
  readonly spanId: string
  readonly isSampled: boolean
  hasEnded = false

  constructor(span: Api.Span, failed: Api.SpanStatusCode) {
    this.#span = span
    this.#failed = failed
    const { traceId, spanId, traceFlags } = span.spanContext()
    this.traceId = traceId
    this.spanId = spanId
    this.isSampled = (traceFlags & 1) === 1
  }

  set(attributes: SpanAttributes): void {
    if (!this.hasEnded) this.#span.setAttributes(attributes)
  }

  fail(type: string): void {
    if (this.hasEnded) return
    this.#span.setAttribute('error.type', type)
    this.#span.setStatus({ code: this.#failed })
  }

  end(): void {
    if (this.hasEnded) return
    this.hasEnded = true
    this.#span.end(performance.now())
  }
}
