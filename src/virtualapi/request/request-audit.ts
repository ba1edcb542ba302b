// The audit events of one request (audit.k8s.io/v1), as kube-apiserver writes them. A log decides by the attributes of the
// request how much it gets. Bodies are recorded only if a log asks for them; of the headers only User-Agent,
// X-Forwarded-For, X-Real-Ip and Audit-Id are read.
import { Buffer } from 'node:buffer'
import { randomUUID } from 'node:crypto'
import { isIP } from 'node:net'
import { parseJsonText } from '#apimachinery/json/index.ts'
import { encodeJson, isJsonObject, type ClusterId } from '#apimachinery/meta/index.ts'
import type { Status } from '#apimachinery/status/index.ts'
import type { Clock } from '#async/index.ts'
import type { Attributes, Decision } from './authorizer.ts'
import type { RequestInfo } from './request-info.ts'
import type { UserInfo } from './user-info.ts'

export type AuditLevel = 'Metadata' | 'Request' | 'RequestResponse'
export type AuditStage = 'RequestReceived' | 'ResponseStarted' | 'ResponseComplete' | 'Panic'

/** How much a log gets of a request. */
export interface AuditScope {
  readonly level: AuditLevel
  readonly omitStages: ReadonlySet<AuditStage>
  readonly omitManagedFields: boolean
  /**
   * True if a policy decided: refused credentials have the stage ResponseStarted alone, and an unexpected error has the
   * stage Panic, as in kube-apiserver. False: both have ResponseComplete.
   */
  readonly byPolicy: boolean
}

/** An event at level Metadata for each request, however it ends: the log of an installation without a policy. */
export const lineScope: AuditScope = {
  level: 'Metadata',
  omitStages: new Set(['RequestReceived']),
  omitManagedFields: false,
  byPolicy: false,
}

/** A log of the installation, or of a logical cluster. */
export interface AuditLog {
  /** How much the log gets of a request; undefined: nothing. `user`: undefined if the credentials were refused. */
  scopeOf(attributes: Attributes, user: UserInfo | undefined): AuditScope | undefined
  /** Takes an event. Must not block, and must bound what it keeps. */
  write(event: AuditEvent): void
  /** The logical cluster whose users read the log; absent: only the installation does. */
  readonly readers?: ClusterId
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

/** Bodies with more bytes of JSON are left out of events. */
export const maxAuditedBytes = 4 * 1024 * 1024
/** Tells that bodies were left out of an event, as kube-apiserver's truncating backend does. */
export const truncatedAnnotation = 'audit.k8s.io/truncated'

const maxUserAgentLength = 1024
const maxUriLength = 64 * 1024
const maxSourceIPs = 100
/** The audit id that a client may choose: printable ASCII, which is safe in a header. */
const auditIdPattern = /^[\x21-\x7e]{1,128}$/

/** The audit id from the request's header if that is valid, else a new one. */
export function auditIdOf(header: string | undefined): string {
  return header !== undefined && auditIdPattern.test(header) ? header : randomUUID()
}

interface EventFields {
  readonly annotations: Readonly<Record<string, string>>
}

/** One event of a request, for one log. */
export class AuditEvent {
  /** True if the client has proved no identity. */
  readonly isAnonymous: boolean
  readonly #fields: EventFields
  readonly #bodies: Readonly<Record<string, string>>

  /** `bodies`: requestObject and responseObject as JSON. */
  constructor(fields: EventFields, bodies: Readonly<Record<string, string>>, isAnonymous: boolean) {
    this.#fields = fields
    this.#bodies = bodies
    this.isAnonymous = isAnonymous
  }

  /** The event as one line of JSON without its line end, with these annotations in addition. */
  text(annotations: Readonly<Record<string, string>> = {}): string {
    let text = JSON.stringify({ ...this.#fields, annotations: { ...this.#fields.annotations, ...annotations } })
    // The bodies are JSON already.
    for (const [name, json] of Object.entries(this.#bodies)) text = `${text.slice(0, -1)},"${name}":${json}}`
    return text
  }

  /**
   * The line if it has at most `maxBytes`, else the line without its bodies; undefined if that is too long, too.
   */
  textWithin(maxBytes: number, annotations: Readonly<Record<string, string>> = {}): string | undefined {
    const text = this.text(annotations)
    if (Buffer.byteLength(text) <= maxBytes) return text
    if (Object.keys(this.#bodies).length === 0) return undefined
    const short = new AuditEvent(this.#fields, {}, this.isAnonymous).text({
      ...annotations,
      [truncatedAnnotation]: 'true',
    })
    return Buffer.byteLength(short) <= maxBytes ? short : undefined
  }
}

interface Recipient {
  readonly log: AuditLog
  readonly scope: AuditScope
}

/** Collects the findings of the stages about a request, and gives each log the events that it asks for. */
export class RequestAudit {
  readonly #arrival: ReceivedRequest
  readonly #clock: Pick<Clock, 'now'>
  readonly #received: number
  /** The logs of the request; their scopes are decided when the client is known. */
  #logs: AuditLog[] = []
  #recipients: readonly Recipient[] | undefined
  #attributes: Attributes | undefined
  #info: RequestInfo | undefined
  #cluster: { readonly name: string; readonly id?: string } | undefined
  #user: UserInfo | undefined
  #impersonated: UserInfo | undefined
  #decision: Decision | undefined
  #named: Named = {}
  #status: Partial<Status> | undefined
  readonly #added: Record<string, string> = {}
  #failure: Status | undefined
  #requestObject: string | undefined
  #responseObject: string | undefined
  #isTruncated = false
  #longRunning = false
  #hasPanicked = false
  #complete = false
  /** True if a log asks for the object in the request. */
  recordsRequest = false
  /** True if a log asks for the object in the response. */
  recordsResponse = false

  constructor(arrival: ReceivedRequest, clock: Pick<Clock, 'now'>) {
    this.#arrival = arrival
    this.#clock = clock
    this.#received = clock.now()
  }

  /** Adds a log. Call it before `begin`. */
  to(log: AuditLog): void {
    if (!this.#logs.includes(log)) this.#logs.push(log)
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

  /** Asks the logs how much they get, and gives them RequestReceived. Call it when the client is known. */
  begin(attributes: Attributes): void {
    this.#decideScopes(attributes)
    this.#write('RequestReceived')
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

  /** Sets the object in the request, as JSON on one line. */
  requested(json: string): void {
    if (json.length > maxAuditedBytes) this.#isTruncated = true
    else this.#requestObject = json
  }

  /** Sets the object in the response, as JSON on one line. Undefined: it has too many bytes. */
  answered(json: Uint8Array | undefined): void {
    if (json === undefined || json.length > maxAuditedBytes) this.#isTruncated = true
    else this.#responseObject = Buffer.from(json).toString().trimEnd()
  }

  /** Called when the request has failed with this status, in whatever form the client gets it. */
  failed(status: Status): void {
    this.#failure = status
    if (this.recordsResponse) this.#responseObject = JSON.stringify(status)
  }

  /** Called when the request has met an error that is a bug. */
  panicked(): void {
    this.#hasPanicked = true
  }

  /** Called when the response has begun. Gives ResponseStarted of long-running requests. */
  started({ status: code, body }: { readonly status: number; readonly body?: Uint8Array }): void {
    const fields = this.#failure?.code === code ? fieldsOf(this.#failure) : statusIn(body)
    this.#status = { ...fields, code }
    if (this.#recipients === undefined) this.#decideScopes({ verb: this.#verb(), path: pathOf(this.#arrival.url) })
    const isRefused = this.#user === undefined
    this.#write('ResponseStarted', ({ byPolicy }) => this.#longRunning || (isRefused && byPolicy))
  }

  /** Called when another process answers: that process writes the events. */
  discard(): void {
    this.#complete = true
  }

  /** Called when the response was sent or the client has gone. Gives ResponseComplete or Panic, once. */
  complete(): void {
    if (this.#complete) return
    this.#complete = true
    // The client went away before the response.
    if (this.#status === undefined) {
      this.started({ status: 200 })
      this.#status = { status: 'Success', message: 'Connection closed early', code: 200 }
    }
    const isRefused = this.#user === undefined
    this.#write('ResponseComplete', ({ byPolicy }) => !byPolicy || (!isRefused && !this.#hasPanicked))
    if (this.#hasPanicked) this.#write('Panic', ({ byPolicy }) => byPolicy)
  }

  #decideScopes(attributes: Attributes): void {
    this.#attributes = attributes
    this.#recipients = this.#logs.flatMap((log) => {
      const scope = log.scopeOf(attributes, this.#user)
      return scope === undefined ? [] : [{ log, scope }]
    })
    this.#logs = []
    this.recordsRequest = this.#recipients.some(({ scope }) => scope.level !== 'Metadata')
    this.recordsResponse =
      hasObjects(this.#info) && this.#recipients.some(({ scope }) => scope.level === 'RequestResponse')
  }

  #write(stage: AuditStage, isOf: (scope: AuditScope) => boolean = () => true): void {
    for (const { log, scope } of this.#recipients ?? [])
      if (!scope.omitStages.has(stage) && isOf(scope)) log.write(this.#event({ log, scope }, stage))
  }

  #verb(): string {
    return this.#info?.verb ?? this.#arrival.method.toLowerCase()
  }

  #event({ log, scope }: Recipient, stage: AuditStage): AuditEvent {
    const { auditId, url, header } = this.#arrival
    const isShown = this.#isShownTo(log)
    const userAgent = header('user-agent') ?? ''
    const isFirst = stage === 'RequestReceived'
    const fields = {
      kind: 'Event',
      apiVersion: 'audit.k8s.io/v1',
      level: scope.level,
      auditID: auditId,
      stage,
      requestURI: url.slice(0, maxUriLength),
      verb: this.#verb(),
      user: this.#user === undefined ? {} : isShown ? userOf(this.#user) : hiddenUser(this.#user),
      ...(this.#impersonated === undefined ? {} : { impersonatedUser: userOf(this.#impersonated) }),
      ...(isShown ? { sourceIPs: this.#sourceIPs() } : {}),
      ...(userAgent === '' || !isShown ? {} : { userAgent: truncated(userAgent) }),
      ...this.#objectRef(),
      ...(this.#status === undefined ? {} : { responseStatus: { metadata: {}, ...this.#statusFor(isShown) } }),
      requestReceivedTimestamp: microTime(this.#received),
      stageTimestamp: microTime(isFirst ? this.#received : this.#clock.now()),
      annotations: this.#annotations(scope, isShown),
    }
    return new AuditEvent(
      fields,
      this.#bodies(scope, isShown),
      this.#user?.name === 'system:anonymous' || this.#user === undefined,
    )
  }

  /** False for a user of whom the readers of the log may know no more than the name. */
  #isShownTo({ readers }: AuditLog): boolean {
    if (readers === undefined || this.#user === undefined) return true
    const { realm, home, name } = this.#user
    return home !== undefined || name === 'system:anonymous' || (realm.kind === 'cluster' && realm.id === readers)
  }

  /** A refusal names the user whom it refuses. */
  #statusFor(isShown: boolean): Partial<Status> {
    if (isShown || this.#failure === undefined) return this.#status ?? {}
    const { status, reason, code } = this.#failure
    return { status, ...(reason !== undefined && { reason }), code }
  }

  #bodies({ level, omitManagedFields }: AuditScope, isShown: boolean): Record<string, string> {
    if (level === 'Metadata') return {}
    const isRecorded = level === 'RequestResponse' && (isShown || this.#failure === undefined)
    const responseObject = isRecorded ? this.#responseObject : undefined
    const found = { requestObject: this.#requestObject, responseObject }
    const bodies = Object.entries(found).filter((body): body is [string, string] => body[1] !== undefined)
    return Object.fromEntries(
      omitManagedFields ? bodies.map(([name, json]) => [name, withoutManagedFields(json)]) : bodies,
    )
  }

  #objectRef(): object {
    const target = this.#info?.target
    if (target?.kind !== 'resource') return {}
    const { group, version, resource, subresource } = target
    const { uid, resourceVersion } = this.#named
    // A list by metadata.name names its object, too.
    const asked = this.#attributes?.resource?.name ?? ''
    const name = target.name !== '' ? target.name : asked !== '' ? asked : this.#named.name
    // As in kube-apiserver and in authorization, the namespace of a Namespace object is its own name.
    const own = group === '' && resource === 'namespaces' ? target.name : target.namespace
    const namespace = own === '' ? this.#named.namespace : own
    const ref = { resource, namespace, name, uid, apiGroup: group, apiVersion: version, resourceVersion, subresource }
    return {
      objectRef: Object.fromEntries(Object.entries(ref).filter(([, text]) => text !== undefined && text !== '')),
    }
  }

  #annotations({ level }: AuditScope, isShown: boolean): Record<string, string> {
    const annotations: Record<string, string> = { ...this.#added }
    if (this.#decision !== undefined) {
      annotations['authorization.k8s.io/decision'] = this.#decision.allowed ? 'allow' : 'forbid'
      // The reason may name groups of the user.
      annotations['authorization.k8s.io/reason'] = isShown ? this.#decision.reason : ''
    }
    if (this.#cluster !== undefined) annotations['kcp.dev/logical-cluster'] = this.#cluster.name
    if (this.#cluster?.id !== undefined) annotations['kcp.dev/logical-cluster-id'] = this.#cluster.id
    // Tells a user of the host from a user of the logical cluster with the same name.
    if (this.#user !== undefined) annotations['kcp.dev/user-realm'] = this.#user.realm.kind
    if (this.#isTruncated && level !== 'Metadata') annotations[truncatedAnnotation] = 'true'
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

/**
 * A user from outside as the readers of a logical cluster's log see it. They know the names of the host's users from
 * their own bindings; admins of the installation and users of other logical clusters have no name for them.
 */
function hiddenUser({ name, realm }: UserInfo): object {
  return { username: realm.kind === 'host' ? name : 'system:kcp' }
}

/** The JSON of an object, a list or a Table without the managedFields of each object. */
function withoutManagedFields(json: string): string {
  const document: unknown = parseJsonText(json)
  if (!isJsonObject(document)) return json
  const { items, rows } = document
  const parts = [document, ...(Array.isArray(items) ? items : [])]
  for (const row of Array.isArray(rows) ? rows : []) if (isJsonObject(row) && row['object']) parts.push(row['object'])
  for (const part of parts)
    if (isJsonObject(part) && isJsonObject(part['metadata'])) delete part['metadata']['managedFields']
  return encodeJson(document)
}

/** False for answers that are no objects of an API, such as health, version and OpenAPI documents. */
function hasObjects({ target }: Partial<RequestInfo> = {}): boolean {
  return target?.kind === 'resource' || /^\/apis?(\/|$)/.test(target?.path ?? '')
}

function pathOf(url: string): string {
  return url.split('?', 1)[0] ?? ''
}

function truncated(userAgent: string): string {
  return userAgent.length > maxUserAgentLength ? `${userAgent.slice(0, maxUserAgentLength)}...TRUNCATED` : userAgent
}

function microTime(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, -1)}000Z`
}
