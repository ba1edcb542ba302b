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
 * Whose traces may go on here, as in kube-apiserver. Names of groups in the host have a prefix; those of tenants do not
 * count.
 */
const privileged: Readonly<Record<UserInfo['realm']['kind'], readonly string[]>> = {
  installation: ['system:masters', 'system:monitoring', 'kcp:system'],
  host: ['host:system:masters', 'host:system:monitoring'],
  cluster: [],
}

/**
 * A request as a span. It begins after authentication, with the time of the arrival: whether it is a step of the
 * client's trace depends on who the client is. It ends with the stages: no span is open for as long as a watch.
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

  /** The same stages, each in the context of the span. */
  traced(plain: readonly Stage[]): readonly Stage[] {
    return plain.map((stage): Stage => {
      if (stage === authenticate)
        return (exchange, dependencies) => this.#authenticate(() => stage(exchange, dependencies))
      const name = stageSpans.get(stage)
      // A superuser waits for nothing here; the step is shown all the same.
      if (stage === authorize)
        return (exchange, dependencies) => this.#run(name, async () => stage(exchange, dependencies))
      return (exchange, dependencies) => this.#run(name, () => stage(exchange, dependencies))
    })
  }

  /** For a request that another process answers: what it is told, and what is to be called when it has answered. */
  forward(): NonNullable<ForwardResponse['trace']> {
    return { traceparent: traceparentOf(this.#begun()), answered: (status) => this.answered(status) }
  }

  /**
   * Ends the span; later calls do nothing. Without a status: it is that of another process, which nobody reads here.
   */
  answered(status?: number): void {
    const span = this.#begun()
    span.set(this.#known())
    if (status !== undefined) span.set({ 'http.response.status_code': status })
    if (status !== undefined && status >= 500) span.fail(String(status))
    span.end()
  }

  /** Runs a part of the request that is no stage. */
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

  /** Of what process or client the request comes. What only a tenant vouches for is a link, which decides nothing. */
  #origin(): { readonly parent?: SpanReference | undefined; readonly link?: SpanReference | undefined } {
    const { request, isAuthenticated } = this.#exchange
    const ofClient = tryTraceparent(this.#exchange.header('traceparent'))
    const ofHop = request.isForwarded === true ? tryTraceparent(this.#exchange.header(hopTraceHeader)) : undefined
    if (ofClient !== undefined && isAuthenticated && isPrivileged(this.#exchange.user))
      return { parent: ofClient, link: ofHop }
    return ofHop === undefined ? { link: ofClient } : { parent: ofHop, link: ofClient }
  }

  /** Attributes that stages after the beginning may have found out. */
  #known(): SpanAttributes {
    const { cluster } = this.#exchange
    return cluster === undefined ? {} : { 'kcp.logical_cluster': cluster.id }
  }
}

/** Whether the user is one whose traces go on here. */
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

/** Without the query: that of exec has the command, and others have selectors. */
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
