// The span of a request, as kube-apiserver has it, and the spans of the stages that it waits for.
import {
  errorType,
  inSpan,
  traceparentOf,
  tryTraceparent,
  type Span,
  type SpanAttributes,
  type SpanReference,
  type Tracer,
} from '#telemetry/index.ts'
import type { UserInfo } from '#virtualapi/request/user-info.ts'
import { headerOf, type Exchange, type ForwardResponse, type IncomingRequest } from '#virtualapi/request/exchange.ts'
import type { RequestInfo, ResourceTarget } from '#virtualapi/request/request-info.ts'
import { hopTraceHeader } from './wire/hop-headers.ts'
import { authenticate, authorize, stageSpans, type Stage } from './stages.ts'

/**
 * The groups, by realm, whose users may continue their own trace here, as in kube-apiserver. Groups of the host have a
 * prefix; groups of tenants do not count.
 */
const privileged: Readonly<Record<UserInfo['realm']['kind'], readonly string[]>> = {
  installation: ['system:masters', 'system:monitoring', 'kcp:system'],
  host: ['host:system:masters', 'host:system:monitoring'],
  cluster: [],
}

/**
 * The span of a request. It is created after authentication with the arrival as its start, because it depends on the
 * client whether the span continues the client's trace. It ends with the stages, so no span is open for as long as a
 * watch.
 */
export class RequestTrace {
  readonly #exchange: Exchange
  readonly #tracer: Tracer
  readonly #startedAt = performance.now()
  #span: Span | undefined

  constructor(exchange: Exchange, tracer: Tracer) {
    this.#exchange = exchange
    this.#tracer = tracer
  }

  /** The given stages, each in the context of the span. */
  traced(plain: readonly Stage[]): readonly Stage[] {
    return plain.map((stage): Stage => {
      if (stage === authenticate)
        return (exchange, dependencies) => this.#authenticate(() => stage(exchange, dependencies))
      const name = stageSpans.get(stage)
      // The stage runs in an async function, so that the trace shows it even if it waits for nothing, as for a
      // superuser.
      if (stage === authorize)
        return (exchange, dependencies) => this.#run(name, async () => stage(exchange, dependencies))
      return (exchange, dependencies) => this.#run(name, () => stage(exchange, dependencies))
    })
  }

  /**
   * For a request that another process answers: the traceparent for that process, and the function to call with the
   * status of its answer.
   */
  forward(): NonNullable<ForwardResponse['trace']> {
    return { traceparent: traceparentOf(this.#begun()), answered: (status) => this.answered(status) }
  }

  /**
   * Ends the span; later calls do nothing. The status is absent if another process sends it and it is not read here.
   */
  answered(status?: number): void {
    const span = this.#begun()
    span.set(this.#known())
    if (status !== undefined) span.set({ 'http.response.status_code': status })
    if (status !== undefined && status >= 500) span.fail(String(status))
    span.end()
  }

  /** Runs a part of the request that is not a stage, in the context of the span. */
  within<T>(run: () => T): T {
    return this.#tracer.within(this.#begun(), run)
  }

  async #authenticate(stage: () => void | Promise<void>): Promise<void> {
    const startedAt = performance.now()
    let failure: unknown
    try {
      await stage()
    } catch (error) {
      failure = error
      throw error
    } finally {
      const parent = this.#begun()
      if (parent.isSampled) {
        const span = this.#tracer.start('Authentication', { parent, startedAt })
        if (failure !== undefined) span.fail(errorType(failure))
        span.end()
      }
    }
  }

  #run(name: string | undefined, run: () => void | Promise<void>): void | Promise<void> {
    const parent = this.#span
    if (parent === undefined || name === undefined) return run()
    return inSpan(this.#tracer, name, () => run() ?? undefined, { parent })
  }

  #begun(): Span {
    if (this.#span !== undefined) return this.#span
    const { request, isUnderstood } = this.#exchange
    const info = isUnderstood ? this.#exchange.info : undefined
    const options = { kind: 'server', startedAt: this.#startedAt, ...this.#origin() } as const
    const span = this.#tracer.start(spanName(request.method, info), options)
    if (span.isSampled) span.set(attributesOf({ request, auditId: this.#exchange.auditId, info }))
    return (this.#span = span)
  }

  /**
   * The parent and the link of the span: the span of the client, and of the process that passed the request on. A span
   * that only a tenant vouches for becomes a link, which has no effect.
   */
  #origin(): { readonly parent?: SpanReference | undefined; readonly link?: SpanReference | undefined } {
    const { request, isAuthenticated } = this.#exchange
    const ofClient = tryTraceparent(this.#exchange.header('traceparent'))
    const ofHop = request.isForwarded === true ? tryTraceparent(this.#exchange.header(hopTraceHeader)) : undefined
    if (ofClient !== undefined && isAuthenticated && isPrivileged(this.#exchange.user))
      return { parent: ofClient, link: ofHop }
    return ofHop === undefined ? { link: ofClient } : { parent: ofHop, link: ofClient }
  }

  /** Attributes that become known only after the span has begun. */
  #known(): SpanAttributes {
    const { cluster } = this.#exchange
    return cluster === undefined ? {} : { 'kcp.logical_cluster': cluster.id }
  }
}

/** Whether the user may continue its own trace here. */
export function isPrivileged({ realm, groups }: UserInfo): boolean {
  return privileged[realm.kind].some((group) => groups.includes(group))
}

/**
 * The method and the shape of the route, as in kube-apiserver: never the name of an object, a namespace or a logical
 * cluster.
 */
export function spanName(method: string, info: RequestInfo | undefined): string {
  if (info?.target.kind !== 'resource') return method
  const { group, version, namespace, resource, name, subresource } = info.target
  const segments = [
    ...(group === '' ? ['api'] : ['apis', group]),
    version,
    ...(namespace === '' ? [] : ['namespaces', '{:namespace}']),
    resource,
    ...(name === '' ? [] : ['{:name}']),
    ...(subresource === '' ? [] : [subresource]),
  ]
  return `${method} /${segments.join('/')}`
}

/** The attributes of the span. The query is left out: for exec it has the command, and for others it has selectors. */
function attributesOf({
  request,
  auditId,
  info,
}: {
  request: IncomingRequest
  auditId: string
  info: RequestInfo | undefined
}) {
  const { method, url, rawHeaders } = request
  const userAgent = headerOf(rawHeaders, 'user-agent')
  return {
    'http.request.method': method,
    'url.path': url.split('?', 1)[0] ?? '',
    'audit-id': auditId,
    ...(userAgent !== undefined && { 'user_agent.original': userAgent }),
    ...(info !== undefined && { verb: info.verb }),
    ...(info?.target.kind === 'resource' && { resource: resourceName(info.target) }),
  }
}

function resourceName({ group, resource, subresource }: ResourceTarget): string {
  return (group === '' ? resource : `${resource}.${group}`) + (subresource === '' ? '' : `/${subresource}`)
}
