// Logical clusters that have moved to another installation: their users' requests are passed on to it. The new place
// gets the name, groups and extra of each user in the headers of impersonation, from an admin of that one logical
// cluster; its own rules decide what the user may do.
import { Agent, request as httpsRequest } from 'node:https'
import type { IncomingMessage } from 'node:http'
import { LRUCache } from 'lru-cache'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { gone, serviceUnavailable, unauthorized } from '#apimachinery/status/index.ts'
import { abortable, type Clock } from '#async/index.ts'
import { createClient, httpTransport, type KubeClient, type Transport, type TransportResponse } from '#client/index.ts'
import { systemNamespace } from '#crds/index.ts'
import { transferPath, transferSecretName, type TransferSecret, type TransferState } from '#snapshot/index.ts'
import { isStoreError } from '#store/index.ts'
import type { ClusterObjects } from '#store/watch-cache/index.ts'
import { identityHeaders } from '#virtualapi/outbound/aggregation/identity-headers.ts'
import type { ApiResponse, Exchange } from '#virtualapi/request/exchange.ts'
import type { LogicalCluster } from '#virtualapi/request/logical-cluster.ts'
import type { UserInfo } from '#virtualapi/request/user-info.ts'
import { frozenMark, markValue } from './transfer-marks.ts'
import { proxiedHeaders, shownHeaders } from './proxy-exchange.ts'

/** How long a client may read nothing before it is cut off, milliseconds. */
const maxStallMs = 60_000
/** How long a commit waits for the target to say that it is open; requests that are passed on ask it again. */
const openWithinMs = 10_000
/** How long the target's word about a ServiceAccount counts: a deletion there ends its old tokens after this time. */
const accountTtlMs = 10_000
const maxAccounts = 5000
const secrets = { group: '', version: 'v1', resource: 'secrets' } as const
const serviceAccounts = { group: '', version: 'v1', resource: 'serviceaccounts' } as const

export interface MovedClustersOptions {
  /** The API with the Secrets of the installation; undefined until the server follows one. */
  readonly client: () => KubeClient | undefined
  readonly objectsOf: (cluster: LogicalCluster, signal: AbortSignal) => Promise<ClusterObjects>
  readonly clock: Clock
}

/** The new place of a logical cluster. */
interface Place {
  readonly id: string
  readonly secret: TransferSecret
  /** Connections for requests of users. */
  readonly agent: Agent
  /** The logical cluster at the target, as its admin; undefined: requests are not passed on. */
  readonly transport: Transport | undefined
  isOpen: boolean
  /** The request to it that is under way. */
  opening?: Promise<void>
}

export class MovedClusters implements AsyncDisposable {
  readonly #options: MovedClustersOptions
  readonly #places = new Map<string, Promise<Place>>()
  /** Uids of ServiceAccounts at targets; empty: there is none. */
  readonly #accounts: LRUCache<string, string>

  constructor(options: MovedClustersOptions) {
    this.#options = options
    const { clock } = options
    this.#accounts = new LRUCache({ max: maxAccounts, ttl: accountTtlMs, perf: { now: () => clock.monotonic() } })
  }

  /** Ends the watches of a logical cluster that has moved: their readers list again, at the target. */
  async leave(objects: ClusterObjects, signal: AbortSignal): Promise<void> {
    if (objects.mark('moved') !== undefined) return
    await objects
      .setMark('moved', markValue('moved', { id: frozenMark(objects)?.id }), { signal })
      .catch((error: unknown) => {
        if (!isStoreError(error, 'KeyExists')) throw error
      })
    objects.expireWatches()
  }

  /** Opens the target; false if it does not answer now. The next request asks it again. */
  async tryOpen(cluster: LogicalCluster, signal: AbortSignal): Promise<boolean> {
    try {
      await this.#open(cluster, await this.#placeOf(cluster, signal), signal)
      return true
    } catch {
      signal.throwIfAborted()
      return false
    }
  }

  /** The answer of the target. Throws 503 while it does not answer, 410 if requests are not passed on. */
  async answer(exchange: Exchange): Promise<ApiResponse> {
    const { request, user, signal } = exchange
    const { cluster, place } = await this.#placeFor(exchange)
    const body = await request.body()
    const headers = { ...proxiedHeaders(request.rawHeaders, { upgrade: false }), ...actingHeaders(user, cluster) }
    const response = await exchange.whileWaiting(
      sent(place, { method: request.method, path: pathOf(exchange), headers, body, signal }),
    )
    const { status, body: chunks } = response
    if (status === 401) throw await this.#unaccepted(cluster, place, chunks)
    return { kind: 'stream', status, headers: shownHeaders(response.headers), chunks, maxStallMs }
  }

  /** Passes an upgrade on. Returns the stream to the target, or its refusal. Throws as `answer`. */
  async upgrade(exchange: Exchange): ReturnType<Transport['upgrade']> {
    const { request, user, signal } = exchange
    const { cluster, place, transport } = await this.#placeFor(exchange)
    const headers = { ...proxiedHeaders(request.rawHeaders, { upgrade: true }), ...actingHeaders(user, cluster) }
    const rawHeaders = Object.entries(headers).flatMap(([name, values]) =>
      [values].flat().flatMap((value) => [name, value]),
    )
    const path = `${new URL(place.secret.server).pathname}${pathOf(exchange)}`
    const result = await transport.upgrade({ method: request.method, path, rawHeaders, signal })
    if ('upgraded' in result) return result
    const { refused } = result
    if (refused.status === 401) throw await this.#unaccepted(cluster, place, refused.body)
    return { refused: { ...refused, headers: shownHeaders(refused.headers) } }
  }

  /** The place for a request of this user. Throws 401, 410 and 503. */
  async #placeFor({
    cluster,
    user,
    signal,
  }: Exchange): Promise<{ cluster: LogicalCluster; place: Place; transport: Transport }> {
    if (cluster === undefined) throw new Error('a request without a logical cluster has no other place')
    const place = await this.#placeOf(cluster, signal)
    const { transport } = place
    if (transport === undefined)
      throw gone(`logical cluster "${cluster.name}" has moved to ${place.secret.server}: ask for a kubeconfig there`)
    await this.#open(cluster, place, signal)
    await this.#requireAccount(user, place, signal)
    return { cluster, place, transport }
  }

  async #unaccepted(cluster: LogicalCluster, place: Place, body: AsyncIterable<Uint8Array>): Promise<Error> {
    await body[Symbol.asyncIterator]().return?.()
    // They may have been renewed since.
    this.#places.delete(cluster.id)
    return serviceUnavailable(`${place.secret.server} does not take the credentials that were left here when it moved`)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const places = [...this.#places.values()]
    this.#places.clear()
    for (const place of await Promise.allSettled(places)) {
      if (place.status !== 'fulfilled') continue
      place.value.agent.destroy()
      await place.value.transport?.[Symbol.asyncDispose]()
    }
  }

  async #placeOf(cluster: LogicalCluster, signal: AbortSignal): Promise<Place> {
    const known = this.#places.get(cluster.id)
    if (known !== undefined) return await known
    const reading = this.#read(cluster, signal)
    this.#places.set(cluster.id, reading)
    reading.catch(() => this.#places.delete(cluster.id))
    return await reading
  }

  async #read(cluster: LogicalCluster, signal: AbortSignal): Promise<Place> {
    const objects = await this.#options.objectsOf(cluster, signal)
    const id = frozenMark(objects)?.id ?? ''
    const name = transferSecretName(cluster.name)
    const client = this.#options.client()
    const found = await client?.tryGet<KubeObject>(secrets, { namespace: systemNamespace, name }, { signal })
    const secret = secretOf(found)
    if (secret?.id !== id)
      throw serviceUnavailable(
        `logical cluster "${cluster.name}" has moved, and Secret ${systemNamespace}/${name} does not say where to: run its kcp transfer again`,
      )
    const { ca, cert, certKey: key } = secret
    const agent = new Agent({ keepAlive: true, ca, ...(cert !== undefined && { cert, key }) })
    const server = new URL(secret.server)
    const endpoint = { server: server.origin, ca, ...(cert !== undefined && key !== undefined && { cert, key }) }
    const transport = cert === undefined ? undefined : httpTransport({ endpoint: () => Promise.resolve(endpoint) })
    return { id, secret, agent, transport, isOpen: false }
  }

  /** Tells the target that the move is over, once. */
  async #open(cluster: LogicalCluster, place: Place, signal: AbortSignal): Promise<void> {
    const { transport } = place
    if (place.isOpen || transport === undefined) return
    place.opening ??= this.#tell(cluster, place, transport).finally(() => delete place.opening)
    await abortable(place.opening, signal)
  }

  async #tell(cluster: LogicalCluster, place: Place, transport: Transport): Promise<void> {
    const signal = AbortSignal.timeout(openWithinMs)
    const { above } = frozenMark(await this.#options.objectsOf(cluster, signal)) ?? {}
    const body = { do: 'open', id: place.id, key: place.secret.key, above: above ?? 0 }
    const client = createClient(transport, { basePath: new URL(place.secret.server).pathname })
    const { phase } = (await client.raw(transferPath, { method: 'POST', body, signal })) as TransferState
    if (phase !== 'Open') throw serviceUnavailable(`${place.secret.server} is not open yet`)
    place.isOpen = true
  }

  /** Throws 401 for a token of a ServiceAccount that the target does not have any more. */
  async #requireAccount({ name, uid }: UserInfo, place: Place, signal: AbortSignal): Promise<void> {
    const [, namespace, account] = /^system:serviceaccount:([^:]+):([^:]+)$/.exec(name) ?? []
    if (namespace === undefined || account === undefined || place.transport === undefined) return
    const key = `${place.id}/${namespace}/${account}`
    let found = this.#accounts.get(key)
    if (found === undefined) {
      const client = createClient(place.transport, { basePath: new URL(place.secret.server).pathname })
      const object = await client.tryGet<KubeObject>(serviceAccounts, { namespace, name: account }, { signal })
      found = object?.metadata.uid ?? ''
      this.#accounts.set(key, found)
    }
    if (found === '' || (uid !== undefined && uid !== found)) throw unauthorized()
  }
}

function secretOf(object: KubeObject | undefined): TransferSecret | undefined {
  const data = (object?.['data'] ?? {}) as Readonly<Record<string, string>>
  const text = (name: string): string | undefined =>
    data[name] === undefined ? undefined : Buffer.from(data[name], 'base64').toString()
  const [id, key, server, ca, cert, certKey] = ['id', 'key', 'server', 'ca', 'cert', 'certKey'].map(text)
  if (id === undefined || key === undefined || server === undefined || ca === undefined) return undefined
  return { id, key, server, ca, ...(cert !== undefined && { cert }), ...(certKey !== undefined && { certKey }) }
}

/**
 * The headers with which the target takes the request for one of this user. Owners are users of this host, whom the
 * target does not know: they have the rights of an admin there, as they had here.
 */
function actingHeaders(user: UserInfo, { owners }: LogicalCluster): Record<string, string | string[]> {
  const isOwner =
    user.realm.kind === 'host' &&
    owners.some(({ kind, name, namespace }) =>
      kind === 'Group'
        ? user.groups.includes(name)
        : user.name === (kind === 'ServiceAccount' ? `system:serviceaccount:${namespace ?? ''}:${name}` : name),
    )
  const groups = isOwner ? [...user.groups, 'system:masters'] : user.groups
  const headers = identityHeaders({ ...user, groups })
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name.replace(/^x-remote-/, 'impersonate-'), value]),
  )
}

/** Path and query inside the logical cluster, as they were sent. */
function pathOf({ request, info }: Exchange): string {
  const url = request.url.startsWith('/') ? request.url : request.url.replace(/^https?:\/\/[^/?]*/i, '')
  return url.slice(info.basePath.length)
}

interface Sent {
  readonly method: string
  readonly path: string
  readonly headers: Readonly<Record<string, string | readonly string[]>>
  readonly body: Uint8Array
  readonly signal: AbortSignal
}

/** Sends a request to the new place. Rejects with 503 if it does not answer. */
async function sent(
  { secret: { server }, agent }: Place,
  { method, path, headers, body, signal }: Sent,
): Promise<TransportResponse> {
  const { host: _host, ...others } = headers
  return await new Promise((resolve, reject) => {
    const length = body.length > 0 || method !== 'GET' ? { 'content-length': String(body.length) } : {}
    const request = httpsRequest(`${server}${path}`, {
      method,
      agent,
      headers: { ...others, ...length },
      signal,
    })
    request.on('response', (response) => resolve(answerOf(response)))
    request.on('error', (error) =>
      reject(signal.aborted ? (signal.reason as Error) : serviceUnavailable(`${server} does not answer`, error)),
    )
    request.end(body)
  })
}

function answerOf(response: IncomingMessage): TransportResponse {
  const headers: Record<string, string> = {}
  for (const [name, value] of Object.entries(response.headers))
    if (value !== undefined) headers[name] = [value].flat().join(', ')
  return { status: response.statusCode ?? 502, headers, body: response }
}
