// Calls of etcd's API v3 over gRPC: one connection for each endpoint, the next endpoint after a failure.
import {
  Client,
  credentials,
  Metadata,
  status,
  type ChannelCredentials,
  type ClientDuplexStream,
  type ServiceError,
} from '@grpc/grpc-js'
import {
  methodOf,
  type Header,
  type RangeRequest,
  type RangeResponse,
  type TxnRequest,
  type TxnResponse,
  type WatchRequest,
  type WatchResponse,
} from './messages.ts'

export interface EtcdEndpoints {
  /** URLs such as `https://10.0.0.1:2379`. All are members of one cluster. */
  readonly urls: readonly string[]
  /** PEM. Absent: the system's authorities. */
  readonly ca?: Buffer
  /** PEM, for etcd's authentication with client certificates. */
  readonly cert?: Buffer
  readonly key?: Buffer
  /** For etcd's own authentication. */
  readonly user?: { readonly name: string; readonly password: string }
}

/** Time that one call may take, milliseconds. */
const callMs = 10_000
/** Pings on idle connections find an endpoint that has gone without a word; etcd allows one in 5 s. */
const pingMs = 10_000
const unlimited = -1

export type EtcdWatch = ClientDuplexStream<WatchRequest, WatchResponse>

export class EtcdClient implements Disposable {
  readonly #clients: readonly { readonly url: string; readonly client: Client }[]
  readonly #user: EtcdEndpoints['user']
  #at = 0
  #token: Promise<string> | undefined

  constructor({ urls, ca, cert, key, user }: EtcdEndpoints) {
    this.#user = user
    this.#clients = urls.map((url) => {
      const { protocol, host } = new URL(url)
      const secured = (): ChannelCredentials => credentials.createSsl(ca ?? null, key ?? null, cert ?? null)
      const options = {
        'grpc.max_receive_message_length': unlimited,
        'grpc.max_send_message_length': unlimited,
        'grpc.keepalive_time_ms': pingMs,
        'grpc.keepalive_timeout_ms': pingMs / 2,
        'grpc.enable_retries': 0,
        'grpc.max_reconnect_backoff_ms': 2000,
      }
      return {
        url,
        client: new Client(host, protocol === 'https:' ? secured() : credentials.createInsecure(), options),
      }
    })
  }

  range(request: RangeRequest): Promise<RangeResponse> {
    return this.#ask('KV', 'Range', request)
  }

  /** `ms`: it is given up after so long, though etcd may still do it. */
  txn(request: TxnRequest, ms = callMs): Promise<TxnResponse> {
    return this.#ask('KV', 'Txn', request, Math.min(ms, callMs))
  }

  async compact(revision: number): Promise<void> {
    await this.#ask('KV', 'Compact', { revision })
  }

  status(): Promise<{ readonly header: Header; readonly version: string }> {
    return this.#ask('Maintenance', 'Status', {})
  }

  /** A stream of watches, which ends when its member has no leader. Close it with `cancel`. */
  async watch(): Promise<EtcdWatch> {
    const metadata = await this.#metadata()
    metadata.set('hasleader', 'true')
    const { path, requestSerialize, responseDeserialize } = methodOf('Watch', 'Watch')
    const { client } = this.#current
    const stream = client.makeBidiStreamRequest<object, object>(path, requestSerialize, responseDeserialize, metadata)
    return stream as EtcdWatch
  }

  /** The next call goes to the next endpoint. */
  leaveEndpoint(): void {
    this.#at = (this.#at + 1) % this.#clients.length
  }

  [Symbol.dispose](): void {
    for (const { client } of this.#clients) client.close()
  }

  get #current(): { readonly url: string; readonly client: Client } {
    return this.#clients[this.#at] ?? (this.#clients[0] as { url: string; client: Client })
  }

  async #metadata(): Promise<Metadata> {
    const metadata = new Metadata()
    if (this.#user === undefined) return metadata
    this.#token ??= this.#call<{ token: string }>('Auth', 'Authenticate', this.#user).then(({ token }) => token)
    try {
      metadata.set('token', await this.#token)
    } catch (error) {
      this.#token = undefined
      throw error
    }
    return metadata
  }

  async #ask<T>(service: Parameters<typeof methodOf>[0], method: string, request: object, ms = callMs): Promise<T> {
    for (let attempt = 0; ; attempt++) {
      try {
        return await this.#call<T>(service, method, request, { metadata: await this.#metadata(), ms })
      } catch (error) {
        // The call was refused before it had an effect: the token is too old, or from before a restart.
        if (attempt > 0 || this.#user === undefined || !isOldToken(error)) throw error
        this.#token = undefined
      }
    }
  }

  async #call<T>(
    service: Parameters<typeof methodOf>[0],
    name: string,
    request: object,
    { metadata = new Metadata(), ms = callMs }: { readonly metadata?: Metadata; readonly ms?: number } = {},
  ): Promise<T> {
    const { path, requestSerialize, responseDeserialize } = methodOf(service, name)
    const place = this.#at
    const { client } = this.#current
    const { promise, resolve, reject } = Promise.withResolvers<T>()
    const options = { deadline: Date.now() + ms }
    client.makeUnaryRequest<object, object>(
      path,
      requestSerialize,
      responseDeserialize,
      request,
      metadata,
      options,
      (error, answer) => {
        if (error === null) {
          resolve(answer as T)
          return
        }
        if (isOutage(error) && place === this.#at) this.leaveEndpoint()
        reject(error)
      },
    )
    return await promise
  }
}

export function isServiceError(error: unknown): error is ServiceError {
  return error instanceof Error && typeof (error as Partial<ServiceError>).code === 'number'
}

/** Whether the endpoint could not be reached or had no leader: a write may have been done all the same. */
export function isOutage(error: unknown): boolean {
  return (
    isServiceError(error) &&
    [status.UNAVAILABLE, status.DEADLINE_EXCEEDED, status.CANCELLED, status.UNKNOWN, status.INTERNAL].includes(
      error.code,
    )
  )
}

function isOldToken(error: unknown): boolean {
  if (!isServiceError(error)) return false
  return error.code === status.UNAUTHENTICATED || /invalid auth token|auth: token/.test(error.details)
}
