// A collector of OpenTelemetry traces: takes OTLP over HTTP as JSON and keeps the spans.
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { buffer } from 'node:stream/consumers'
import { gunzipSync } from 'node:zlib'
import { closeWithConnections } from './close-with-connections.ts'

export interface CollectedSpan {
  /** `service.name` of the process. */
  readonly service: string
  readonly name: string
  readonly kind: number
  readonly traceId: string
  readonly spanId: string
  /** Empty: the span begins its trace. */
  readonly parentSpanId: string
  readonly links: readonly { readonly traceId: string; readonly spanId: string }[]
  readonly attributes: Readonly<Record<string, string | number | boolean>>
  /** 2: failed. */
  readonly statusCode: number
  readonly durationMs: number
}

export interface TraceCollector extends AsyncDisposable {
  /** For `--tracing-endpoint`. */
  readonly endpoint: string
  readonly spans: readonly CollectedSpan[]
  /** Requests that did not have the path or the media type of OTLP. */
  readonly misplaced: readonly string[]
}

interface Value {
  readonly stringValue?: string
  readonly intValue?: number | string
  readonly doubleValue?: number
  readonly boolValue?: boolean
}
interface Attribute {
  readonly key: string
  readonly value: Value
}
interface OtlpSpan {
  readonly name: string
  readonly kind: number
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId?: string
  readonly links?: readonly { readonly traceId: string; readonly spanId: string }[]
  readonly attributes?: readonly Attribute[]
  readonly status?: { readonly code?: number }
  readonly startTimeUnixNano: string
  readonly endTimeUnixNano: string
}
interface Otlp {
  readonly resourceSpans: readonly {
    readonly resource: { readonly attributes: readonly Attribute[] }
    readonly scopeSpans: readonly { readonly spans: readonly OtlpSpan[] }[]
  }[]
}

/** Starts it on a free port of this address. */
export async function startTraceCollector({ address = '127.0.0.1' } = {}): Promise<TraceCollector> {
  const spans: CollectedSpan[] = []
  const misplaced: string[] = []
  const server = createServer((request, response) => {
    void buffer(request).then((body) => {
      const { url = '', method = '', headers } = request
      if (url === '/v1/traces' && method === 'POST' && headers['content-type'] === 'application/json')
        spans.push(...spansOf(headers['content-encoding'] === 'gzip' ? gunzipSync(body) : body))
      else misplaced.push(`${method} ${url} ${headers['content-type'] ?? ''}`)
      response.setHeader('content-type', 'application/json').end('{}')
    })
  })
  const close = closeWithConnections(server)
  // Batches come every 5 s: a shorter time would cut off some of them.
  server.keepAliveTimeout = 60_000
  await new Promise<void>((resolve) => server.listen(0, address, resolve))
  const { port } = server.address() as AddressInfo
  return {
    endpoint: `http://${address}:${port}`,
    spans,
    misplaced,
    [Symbol.asyncDispose]: close,
  }
}

function spansOf(body: Buffer): CollectedSpan[] {
  const { resourceSpans } = JSON.parse(body.toString()) as Otlp
  return resourceSpans.flatMap(({ resource, scopeSpans }) => {
    const service = String(attributesOf(resource.attributes)['service.name'])
    return scopeSpans.flatMap((scope) => scope.spans.map((span) => collected(span, service)))
  })
}

function collected(span: OtlpSpan, service: string): CollectedSpan {
  const { name, kind, traceId, spanId, parentSpanId = '', links = [], attributes = [], status } = span
  return {
    ...{ service, name, kind, traceId, spanId, parentSpanId },
    links: links.map((link) => ({ traceId: link.traceId, spanId: link.spanId })),
    attributes: attributesOf(attributes),
    statusCode: status?.code ?? 0,
    durationMs: Number(BigInt(span.endTimeUnixNano) - BigInt(span.startTimeUnixNano)) / 1e6,
  }
}

function attributesOf(attributes: readonly Attribute[]): Record<string, string | number | boolean> {
  return Object.fromEntries(
    attributes.map(({ key, value: { stringValue, intValue, doubleValue, boolValue } }) => [
      key,
      stringValue ?? (intValue === undefined ? undefined : Number(intValue)) ?? doubleValue ?? boolValue ?? '',
    ]),
  )
}
