// The header `traceparent` of W3C Trace Context, which continues a trace in another process. `tracestate` and `baggage`
// are neither read nor sent, because they contain whatever clients wrote.

/** A span of this or another process, as the header names it. */
export interface SpanReference {
  readonly traceId: string
  readonly spanId: string
  readonly isSampled: boolean
}

// Version ff is invalid; versions above 00 may append fields.
const pattern = /^(?!ff)([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/
const longest = 256

/** The span that the header names; undefined if the header is absent or invalid. */
export function tryTraceparent(header: string | undefined): SpanReference | undefined {
  if (header === undefined || header.length > longest) return undefined
  const [, version, traceId = '', spanId = '', flags = '', rest] = pattern.exec(header) ?? []
  if (version === undefined || (version === '00' && rest !== undefined)) return undefined
  if (/^0+$/.test(traceId) || /^0+$/.test(spanId)) return undefined
  return { traceId, spanId, isSampled: (Number.parseInt(flags, 16) & 1) === 1 }
}

export function traceparentOf({ traceId, spanId, isSampled }: SpanReference): string {
  return `00-${traceId}-${spanId}-0${isSampled ? 1 : 0}`
}
