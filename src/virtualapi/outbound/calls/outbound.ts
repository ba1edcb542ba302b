// Outbound calls of webhooks and conversions, to a URL or to a Service of the logical cluster. Requests and responses
// are plain data, so that the main thread can make calls for the offload thread.
import { EgressError, type Egress } from '#network/egress/index.ts'
import type { ClusterId } from '#apimachinery/meta/index.ts'
import { reduceReview } from './reduce-review.ts'
import type { ServiceReference, ServiceResolver } from './service-resolver.ts'

/** clientConfig of a webhook. */
export interface OutboundTarget {
  readonly url?: string | undefined
  readonly service?: ServiceReference | undefined
  /** PEM; absent or empty: the authorities that Node trusts. */
  readonly caBundle?: string | undefined
}

export interface OutboundRequest {
  /** The logical cluster whose bounds the call counts in. */
  readonly cluster: ClusterId
  /** The logical cluster whose Services the target names. Default: the same. */
  readonly services?: ClusterId
  readonly target: OutboundTarget
  /** The query of the URL, without the leading `?`. */
  readonly query: string
  readonly body: Uint8Array
  readonly timeoutMs: number
  /**
   * True: the response is an AdmissionReview, which may repeat its request. Only the response part is kept, within
   * bounds.
   */
  readonly isReview?: true
}

export interface OutboundResponse {
  readonly status: number
  readonly body: Uint8Array
}

/** Reads a response while its bytes are charged to the logical cluster. */
export type Reading = (response: OutboundResponse) => Promise<void>

/**
 * Makes POSTs of JSON. Rejects with EgressError if there was no response, with signal.reason if aborted, and with the
 * error of `reading`, which is called before the call ends.
 */
export interface Outbound {
  post(request: OutboundRequest, signal: AbortSignal, reading?: Reading): Promise<OutboundResponse>
}

/** The URL of a target, as it is also named in errors. */
export function urlOf({ url, service }: OutboundTarget, query: string): URL {
  if (service !== undefined) {
    const { name, namespace, port, path } = service
    return new URL(`https://${name}.${namespace}.svc:${port}${joined(path)}${query === '' ? '' : `?${query}`}`)
  }
  const parsed = new URL(url ?? '')
  parsed.pathname = joined(parsed.pathname)
  parsed.search = query
  return parsed
}

/**
 * The text of a URL as Go prints it, which keeps the port 443. A stored URL that cannot be parsed is returned as it is.
 */
export function urlText({ url, service }: OutboundTarget, query: string): string {
  if (service === undefined && !URL.canParse(url ?? '')) return url ?? ''
  const { pathname, search } = urlOf({ url, service }, query)
  const host =
    service === undefined
      ? (/^https:\/\/([^/?#]*)/i.exec(url ?? '')?.[1] ?? '')
      : `${service.name}.${service.namespace}.svc:${service.port}`
  return `https://${host}${pathname}${search}`
}

/** As Go's path.Join: no repeated and no final slash. */
function joined(path: string): string {
  return `/${path.split('/').filter(Boolean).join('/')}`
}

export function createOutbound({
  egress,
  resolveService,
  turnOf,
}: {
  egress: Egress
  resolveService: ServiceResolver
  /** Awaited while a response is read, so that other logical clusters are served. */
  turnOf: (cluster: ClusterId) => Promise<void> | undefined
}): Outbound {
  return {
    async post({ cluster, services = cluster, target, query, body, timeoutMs, isReview = false }, signal, reading) {
      const { service, caBundle } = target
      let url: URL
      try {
        url = urlOf(target, query)
      } catch (cause) {
        throw new EgressError('Unparsable URL', { cause })
      }
      const endpoint = service === undefined ? {} : await resolveService(services, service, signal)
      const trusted = caBundle?.trim() ? { caBundle } : {}
      const headers = { accept: 'application/json, */*', 'content-type': 'application/json', 'user-agent': 'kcp' }
      let reduced: Uint8Array | undefined
      const reduce: Reading = async (response) =>
        void (reduced = await reduceReview(response.body, { turn: () => turnOf(cluster), signal }))
      const read = isReview ? reduce : reading
      const response = await egress.call({
        cluster,
        url,
        method: 'POST',
        headers,
        body,
        timeoutMs,
        signal,
        ...(read === undefined ? {} : { reading: read }),
        ...trusted,
        ...endpoint,
      })
      return { status: response.status, body: reduced ?? response.body }
    },
  }
}
