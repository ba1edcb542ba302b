// A Transport whose requests are spans of the current trace, and send a `traceparent` header to the server.
import { inSpan, traceparentOf, type Span, type Tracer } from '#telemetry/index.ts'
import type { Transport, TransportRequest } from './transport.ts'

const header = 'traceparent'

/**
 * The same transport with spans. A span lasts until the response begins. `server` returns the host and port, undefined
 * before they are known.
 */
export function tracedTransport(
  transport: Transport,
  { tracer, server }: { readonly tracer: Tracer; readonly server: () => string | undefined },
): Transport {
  /** A request outside of all spans is not traced: the watch of an informer belongs to no other request. */
  const send = <T extends { readonly status: number } | { readonly upgraded: unknown } | { readonly refused: unknown }>(
    { method, path }: Pick<TransportRequest, 'method' | 'path'>,
    run: (traceparent: string) => Promise<T>,
  ): Promise<T> => {
    const sent = async (span: Span | undefined): Promise<T> => {
      const current = span ?? tracer.current()
      const answer = await run(current === undefined ? '' : traceparentOf(current))
      span?.set(told('status' in answer ? answer.status : 'upgraded' in answer ? 101 : undefined, server()))
      return answer
    }
    const attributes = { 'http.request.method': method, 'url.path': path.split('?', 1)[0] ?? '' }
    return inSpan(tracer, `HTTP ${method}`, sent, { kind: 'client', attributes })
  }
  return {
    request: (request) =>
      send(request, (traceparent) =>
        transport.request(traceparent === '' ? request : { ...request, headers: withTrace(request, traceparent) }),
      ),
    upgrade: (request) =>
      send(request, (traceparent) =>
        transport.upgrade(
          traceparent === ''
            ? request
            : { ...request, rawHeaders: [...withoutTrace(request.rawHeaders), header, traceparent] },
        ),
      ),
    [Symbol.asyncDispose]: () => transport[Symbol.asyncDispose](),
  }
}

function withTrace({ headers }: TransportRequest, traceparent: string): Record<string, string> {
  return { ...headers, [header]: traceparent }
}

function withoutTrace(rawHeaders: readonly string[]): string[] {
  return rawHeaders.filter((_, i) => rawHeaders[i - (i % 2)]?.toLowerCase() !== header)
}

function told(status: number | undefined, server: string | undefined): Record<string, string | number> {
  return {
    ...(status !== undefined && { 'http.response.status_code': status }),
    ...(server !== undefined && { 'server.address': server }),
  }
}
