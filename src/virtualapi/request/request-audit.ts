// The audit log of one request: an Event of audit.k8s.io/v1 at level Metadata, as kube-apiserver writes it. Only the
// headers User-Agent, X-Forwarded-For, X-Real-Ip and Audit-Id are read, and no bodies, so no line can hold a token or a
// Secret.
import { parseJsonText } from '#apimachinery/json/index.ts'
import { randomUUID } from 'node:crypto'
import { isIP } from 'node:net'
import type { Status } from '#apimachinery/status/index.ts'
import type { Clock } from '#async/index.ts'
import type { UserInfo } from './user-info.ts'
import type { Decision } from './authorizer.ts'
import type { RequestInfo } from './request-info.ts'

/** Receives the lines of the audit log. Must not block, and must bound its buffer. */
export interface AuditSink {
  write(line: string): void
}

/** A request as it arrives. */
export interface ReceivedRequest {
  readonly auditId: string
  readonly method: string
  readonly url: string
  readonly header: (name: string) => string | undefined
  /** Address of the connection's peer; undefined for requests from within the process. */
  readonly peerAddress: string | undefined
}

/** Identity of the object in the body; used where the URL has no name. */
export interface Named {
  readonly name?: string | undefined
  readonly namespace?: string | undefined
  readonly uid?: string | undefined
  readonly resourceVersion?: string | undefined
}

const maxUserAgentLength = 1024
const maxUriLength = 64 * 1024
const maxSourceIPs = 100
/** The audit id that a client may choose: printable ASCII, which is safe in a header. */
const auditIdPattern = /^[\x21-\x7e]{1,128}$/

/** The audit id from the request's header if that is valid, else a new one. */
export function auditIdOf(header: string | undefined): string {
  return header !== undefined && auditIdPattern.test(header) ? header : randomUUID()
}

/**
 * Collects the findings of the stages about a request, and writes a line when the response has begun and when it is
 * complete.
 */
export class RequestAudit {
  readonly #arrival: ReceivedRequest
  readonly #sink: AuditSink
  readonly #clock: Pick<Clock, 'now'>
  readonly #received: number
  #info: RequestInfo | undefined
  #cluster: { readonly name: string; readonly id?: string } | undefined
  #user: UserInfo | undefined
  #impersonated: UserInfo | undefined
  #decision: Decision | undefined
  #named: Named = {}
  #status: Partial<Status> | undefined
  readonly #added: Record<string, string> = {}
  #failure: Status | undefined
  #longRunning = false
  #complete = false

  constructor(arrival: ReceivedRequest, { sink, clock }: { sink: AuditSink; clock: Pick<Clock, 'now'> }) {
    this.#arrival = arrival
    this.#sink = sink
    this.#clock = clock
    this.#received = clock.now()
  }

  understood(info: RequestInfo, { longRunning }: { longRunning: boolean }): void {
    this.#info = info
    this.#longRunning = longRunning
    if (info.cluster.kind === 'one') this.#cluster = { name: info.cluster.name }
    else if (info.cluster.kind === 'all') this.#cluster = { name: '*' }
  }

  /** Sets the logical cluster of the request, once it is found. */
  inCluster(cluster: { readonly name: string; readonly id: string } | undefined): void {
    if (cluster !== undefined) this.#cluster = cluster
  }

  authenticated(user: UserInfo): void {
    this.#user = user
  }

  impersonating(user: UserInfo): void {
    this.#impersonated = user
  }

  decided(decision: Decision): void {
    this.#decision = decision
  }

  /** Sets the identity of the object in the body. */
  names({ name, namespace, uid, resourceVersion }: Named): void {
    this.#named = { name, namespace, uid, resourceVersion }
  }

  /** Adds an annotation; the annotations of the request itself replace it. */
  annotate(key: string, value: string): void {
    this.#added[key] = value
  }

  /** Called when the request has failed with this status, in whatever form the client gets it. */
  failed(status: Status): void {
    this.#failure = status
  }

  /** Called when the response has begun. Writes the line ResponseStarted for long-running requests. */
  started({ status: code, body }: { readonly status: number; readonly body?: Uint8Array }): void {
    const fields = this.#failure?.code === code ? fieldsOf(this.#failure) : statusIn(body)
    this.#status = { ...fields, code }
    if (this.#longRunning) this.#write('ResponseStarted')
  }

  /** Called when another process answers: that process writes the lines. */
  discard(): void {
    this.#complete = true
  }

  /** Called when the response was sent or the client has gone. Writes the line ResponseComplete, once. */
  complete(): void {
    if (this.#complete) return
    this.#complete = true
    this.#write('ResponseComplete')
  }

  #write(stage: string): void {
    const { auditId, method, url, header } = this.#arrival
    const userAgent = header('user-agent') ?? ''
    const event = {
      kind: 'Event',
      apiVersion: 'audit.k8s.io/v1',
      level: 'Metadata',
      auditID: auditId,
      stage,
      requestURI: url.slice(0, maxUriLength),
      verb: this.#info?.verb ?? method.toLowerCase(),
      user: this.#user === undefined ? {} : userOf(this.#user),
      ...(this.#impersonated === undefined ? {} : { impersonatedUser: userOf(this.#impersonated) }),
      sourceIPs: this.#sourceIPs(),
      ...(userAgent === '' ? {} : { userAgent: truncated(userAgent) }),
      ...this.#objectRef(),
      ...(this.#status === undefined ? {} : { responseStatus: { metadata: {}, ...this.#status } }),
      requestReceivedTimestamp: microTime(this.#received),
      stageTimestamp: microTime(this.#clock.now()),
      annotations: this.#annotations(),
    }
    this.#sink.write(JSON.stringify(event))
  }

  #objectRef(): object {
    const target = this.#info?.target
    if (target?.kind !== 'resource') return {}
    const { group, version, resource, subresource } = target
    const { uid, resourceVersion } = this.#named
    const name = target.name === '' ? this.#named.name : target.name
    // As in kube-apiserver and in authorization, the namespace of a Namespace object is its own name.
    const own = group === '' && resource === 'namespaces' ? target.name : target.namespace
    const namespace = own === '' ? this.#named.namespace : own
    const ref = { resource, namespace, name, uid, apiGroup: group, apiVersion: version, resourceVersion, subresource }
    return {
      objectRef: Object.fromEntries(Object.entries(ref).filter(([, text]) => text !== undefined && text !== '')),
    }
  }

  #annotations(): Record<string, string> {
    const annotations: Record<string, string> = { ...this.#added }
    if (this.#decision !== undefined) {
      annotations['authorization.k8s.io/decision'] = this.#decision.allowed ? 'allow' : 'forbid'
      annotations['authorization.k8s.io/reason'] = this.#decision.reason
    }
    if (this.#cluster !== undefined) annotations['kcp.dev/logical-cluster'] = this.#cluster.name
    if (this.#cluster?.id !== undefined) annotations['kcp.dev/logical-cluster-id'] = this.#cluster.id
    // Tells a user of the host from a user of the logical cluster with the same name.
    if (this.#user !== undefined) annotations['kcp.dev/user-realm'] = this.#user.realm.kind
    return annotations
  }

  /** The addresses in the forwarding headers, then the peer. A client can forge all but the last. */
  #sourceIPs(): string[] {
    const { header, peerAddress } = this.#arrival
    const addresses = (header('x-forwarded-for') ?? '')
      .split(',', maxSourceIPs)
      .map((part) => part.trim())
      .filter((part) => isIP(part) !== 0)
    const real = header('x-real-ip')?.trim() ?? ''
    if (isIP(real) !== 0 && !addresses.includes(real)) addresses.push(real)
    const peer = peerAddress?.replace(/^::ffff:/, '') ?? '127.0.0.1'
    if (addresses.at(-1) !== peer) addresses.push(peer)
    return addresses
  }
}

const statusPrefix = Buffer.from('{"kind":"Status"')

/** The fields of a Status in the answer, without metadata; empty for any other answer. */
function statusIn(body: Uint8Array | undefined): Partial<Status> {
  if (body === undefined || !statusPrefix.equals(body.subarray(0, statusPrefix.length))) return {}
  return fieldsOf(parseJsonText(Buffer.from(body).toString()) as unknown as Status)
}

function fieldsOf({ status, message, reason, details }: Status): Partial<Status> {
  const fields = { status, message, reason, details }
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined))
}

function userOf({ name, uid, groups, extra }: UserInfo): object {
  return {
    username: name,
    ...(uid === undefined || uid === '' ? {} : { uid }),
    ...(groups.length === 0 ? {} : { groups }),
    ...(Object.keys(extra).length === 0 ? {} : { extra }),
  }
}

function truncated(userAgent: string): string {
  return userAgent.length > maxUserAgentLength ? `${userAgent.slice(0, maxUserAgentLength)}...TRUNCATED` : userAgent
}

function microTime(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, -1)}000Z`
}
