// Egress whose calls are spans of the current trace and send a `traceparent` header, as kube-apiserver's calls of
// webhooks do.
import { inSpan, traceparentOf, type Tracer } from '#telemetry/index.ts'
import type { Egress } from './egress.ts'

/** The same egress. The query of a URL is no attribute: tenants may keep tokens there. */
export function tracedEgress(egress: Egress, tracer: Tracer): Egress {
  return {
    call: (call) => {
      const { method, url } = call
      const attributes = {
        'http.request.method': method,
        'server.address': url.host,
        'url.path': url.pathname,
        'kcp.logical_cluster': call.cluster,
      }
      return inSpan(
        tracer,
        `HTTP ${method}`,
        async (span) => {
          const current = span ?? tracer.current()
          const told = current === undefined ? {} : { traceparent: traceparentOf(current) }
          const answer = await egress.call({ ...call, headers: { ...call.headers, ...told } })
          span?.set({ 'http.response.status_code': answer.status })
          return answer
        },
        { kind: 'client', attributes },
      )
    },
    connect: (connection) => {
      const attributes = { 'server.address': connection.url.host, 'kcp.logical_cluster': connection.cluster }
      return inSpan(tracer, 'Connect', () => egress.connect(connection), { kind: 'client', attributes })
    },
    shed: () => egress.shed(),
    [Symbol.asyncDispose]: () => egress[Symbol.asyncDispose](),
  }
}
