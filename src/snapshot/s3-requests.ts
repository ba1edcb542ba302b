// Signed requests to an object store that speaks S3 (docs.aws.amazon.com/AmazonS3/latest/API). Redirects are not
// followed: the bytes of a snapshot go to the endpoint that the admin has named, and nowhere else.
import { createHash } from 'node:crypto'
import { request as httpRequest, Agent as HttpAgent, type IncomingMessage, type RequestOptions } from 'node:http'
import { request as httpsRequest, Agent as HttpsAgent } from 'node:https'
import { AwsV4Signer } from 'aws4fetch'
import { sleep } from '#async/index.ts'
import { StorageError } from './storage.ts'

export interface S3Credentials {
  readonly accessKeyId: string
  readonly secretAccessKey: string
  readonly sessionToken?: string
}

export interface S3Place {
  readonly bucket: string
  /** The beginning of all keys, without a slash at its end; empty: none. */
  readonly prefix: string
  /** The URL of the object store. Absent: the URL of AWS in the region. */
  readonly endpoint?: string
  /** Default us-east-1. */
  readonly region?: string
  /** True: the bucket is in the path of URLs; false: in the name of the host. Default: true with an endpoint. */
  readonly forcePathStyle?: boolean
  /** PEM; absent: the authorities of Node. */
  readonly certificateAuthority?: string
  readonly credentials: S3Credentials
  /** Milliseconds without a byte after which a request has failed. Default 30 s. */
  readonly idleMs?: number
}

const defaultIdleMs = 30_000
/** The pauses before `ask` tries a request again, after a failure that may be temporary. */
const pausesMs = [500, 2000, 5000]
/** The most bytes of an answer that is read whole: a page of a list has 1000 keys of up to 1 KiB. */
const maxAnswerBytes = 4 * 1024 * 1024

export interface S3Request {
  readonly method: 'GET' | 'PUT' | 'POST' | 'DELETE' | 'HEAD'
  /** The key, with the prefix of the place. Absent: the request is about the bucket. */
  readonly key?: string
  readonly query?: Readonly<Record<string, string>>
  readonly body?: Buffer
  readonly contentType?: string
}

export interface S3Answer {
  readonly status: number
  readonly headers: IncomingMessage['headers']
  readonly body: string
}

/** The connection to a bucket. */
export class S3Client implements AsyncDisposable {
  readonly place: S3Place
  readonly #base: URL
  readonly #isPathStyle: boolean
  readonly #agent: HttpAgent | HttpsAgent

  constructor(place: S3Place) {
    this.place = place
    const { endpoint, region = 'us-east-1', forcePathStyle = endpoint !== undefined, certificateAuthority: ca } = place
    this.#base = endpointOf(endpoint ?? `https://s3.${region}.amazonaws.com`)
    this.#isPathStyle = forcePathStyle
    const options = { keepAlive: true, maxSockets: 8 }
    this.#agent =
      this.#base.protocol === 'https:'
        ? new HttpsAgent({ ...options, ...(ca !== undefined && { ca }) })
        : new HttpAgent(options)
  }

  [Symbol.asyncDispose](): Promise<void> {
    this.#agent.destroy()
    return Promise.resolve()
  }

  /** The answer, read whole. Rejects with StorageError for a status of 300 and above, except those in `allowed`. */
  async ask(request: S3Request, signal: AbortSignal, allowed: readonly number[] = []): Promise<S3Answer> {
    for (let attempt = 0; ; attempt++) {
      const pause = pausesMs[attempt]
      try {
        const response = await this.#send(request, signal)
        const body = await textOf(response)
        const { statusCode: status = 0, headers } = response
        // The end of a multipart upload may fail after the status 200 was sent: then the body says so.
        const isError = status >= 300 || /^\s*(<\?xml[^>]*>)?\s*<Error>/.test(body)
        if (!isError || allowed.includes(status)) return { status, headers, body }
        const error = this.#errorOf(request, { status, headers, body })
        if (pause === undefined || (status < 500 && status !== 429 && status >= 300)) throw error
      } catch (error) {
        signal.throwIfAborted()
        if (error instanceof StorageError && error.reason !== 'StorageUnreachable') throw error
        if (pause === undefined) throw this.#unreachable(error)
      }
      await sleep(pause, signal)
    }
  }

  /**
   * The answer as it comes. Rejects with StorageError for any status but 200, and does not try again. A body that ends
   * early is an error for the reader of the bytes.
   */
  async open(request: S3Request, signal: AbortSignal): Promise<AsyncIterable<Uint8Array>> {
    const response = await this.#send(request, signal).catch((error: unknown) => {
      signal.throwIfAborted()
      throw this.#unreachable(error)
    })
    const { statusCode: status = 0, headers } = response
    if (status !== 200) throw this.#errorOf(request, { status, headers, body: await textOf(response) })
    return this.#bytesOf(response, signal)
  }

  async *#bytesOf(response: IncomingMessage, signal: AbortSignal): AsyncGenerator<Uint8Array> {
    const length = response.headers['content-length']
    let seen = 0
    try {
      for await (const chunk of response) {
        const bytes = chunk as Buffer
        seen += bytes.length
        yield bytes
      }
    } catch (error) {
      signal.throwIfAborted()
      throw this.#unreachable(error)
    } finally {
      response.destroy()
    }
    if (length !== undefined && seen !== Number(length))
      throw new StorageError('WrongContent', `the object store sent ${seen} of ${length} bytes`)
  }

  async #send({ method, key, query, body, contentType }: S3Request, signal: AbortSignal): Promise<IncomingMessage> {
    signal.throwIfAborted()
    const { bucket, credentials, region = 'us-east-1', idleMs = defaultIdleMs } = this.place
    const url = new URL(this.#base)
    if (!this.#isPathStyle) url.hostname = `${bucket}.${url.hostname}`
    const path = [...(this.#isPathStyle ? [bucket] : []), ...(key === undefined ? [] : key.split('/'))]
    url.pathname = `${url.pathname.replace(/\/$/, '')}/${path.map(encodeURIComponent).join('/')}`
    for (const [name, value] of Object.entries(query ?? {})) url.searchParams.set(name, value)
    const headers = {
      'x-amz-content-sha256': createHash('sha256')
        .update(body ?? '')
        .digest('hex'),
      ...(contentType !== undefined && { 'content-type': contentType }),
    }
    const signer = new AwsV4Signer({ method, url: url.href, headers, service: 's3', region, ...credentials })
    const signed = await signer.sign()
    const options: RequestOptions = {
      method,
      agent: this.#agent,
      headers: {
        ...Object.fromEntries(signed.headers),
        ...((body !== undefined || method === 'PUT' || method === 'POST') && { 'content-length': body?.length ?? 0 }),
      },
      signal,
    }
    return await new Promise<IncomingMessage>((resolve, reject) => {
      const send = this.#base.protocol === 'https:' ? httpsRequest : httpRequest
      const request = send(signed.url, options, resolve)
      request.setTimeout(idleMs, () =>
        request.destroy(new Error(`it has not sent or taken a byte for ${idleMs / 1000} s`)),
      )
      request.on('error', reject)
      request.end(body)
    })
  }

  #unreachable(error: unknown): StorageError {
    if (error instanceof StorageError) return error
    const { message, code = '' } = error as NodeJS.ErrnoException
    const isCertificate = /CERT|SELF_SIGNED|UNABLE_TO_VERIFY|ALTNAME/.test(code)
    const advice = isCertificate
      ? '; certificateAuthority of the store must have the certificate of the authority that signed for the object store'
      : ''
    return new StorageError(
      'StorageUnreachable',
      `${this.#base.origin} does not answer: ${message === '' ? code : message}${advice}`,
      {
        cause: error,
      },
    )
  }

  #errorOf({ method, key }: S3Request, { status, headers, body }: S3Answer): StorageError {
    const [code = '', said = ''] = ['Code', 'Message'].map((name) => textIn(body, name))
    const { bucket } = this.place
    const text = [`${method} ${key ?? `bucket "${bucket}"`}: ${status}`, code, said.slice(0, 300)]
      .filter((one) => one !== '')
      .join(' ')
    if (status >= 300 && status < 400) {
      const to =
        textIn(body, 'Endpoint') ?? textIn(body, 'Region') ?? headers['x-amz-bucket-region'] ?? headers.location
      return new StorageError(
        'StorageFailed',
        `the bucket is elsewhere${to === undefined ? '' : ` (${String(to)})`}: region and endpoint of the store have to be those of the bucket (${text})`,
      )
    }
    if (code === 'NoSuchBucket' || (status === 404 && key === undefined))
      return new StorageError('BucketMissing', `there is no bucket "${bucket}"; make it, or name another (${text})`)
    if (status === 404) return new StorageError('ObjectMissing', `there is no object "${key ?? ''}" (${text})`)
    const refused = [
      'InvalidAccessKeyId',
      'SignatureDoesNotMatch',
      'InvalidToken',
      'ExpiredToken',
      'TokenRefreshRequired',
    ]
    if (refused.includes(code) || status === 401)
      return new StorageError('CredentialsRefused', `the object store does not take these credentials (${text})`)
    if (code === 'RequestTimeTooSkewed')
      return new StorageError(
        'CredentialsRefused',
        `the clocks of kcp and of the object store differ too much (${text})`,
      )
    if (status === 403)
      return new StorageError(
        'AccessDenied',
        `these credentials lack a right; kcp needs s3:GetObject, s3:PutObject, s3:DeleteObject, s3:ListBucket, s3:AbortMultipartUpload and s3:ListBucketMultipartUploads (${text})`,
      )
    if (['XAmzContentSHA256Mismatch', 'BadDigest', 'InvalidDigest', 'IncompleteBody'].includes(code))
      return new StorageError('WrongContent', `the object store got other bytes than kcp sent (${text})`)
    if (code === 'QuotaExceeded' || code === 'EntityTooLarge' || status === 507)
      return new StorageError('StorageFull', `the object store is full, or takes no object of this size (${text})`)
    return new StorageError('StorageFailed', `the object store failed: ${text}`)
  }
}

function endpointOf(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined
  const isPlain =
    url !== undefined && url.username === '' && url.password === '' && url.search === '' && url.hash === ''
  if (!isPlain || !['http:', 'https:'].includes(url.protocol))
    throw new StorageError(
      'StorageFailed',
      `the endpoint ${JSON.stringify(text)} is not a URL such as https://s3.example.com`,
    )
  return url
}

async function textOf(response: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of response) {
    const bytes = chunk as Buffer
    size += bytes.length
    if (size > maxAnswerBytes) {
      response.destroy()
      throw new StorageError('StorageFailed', `an answer of the object store has more than ${maxAnswerBytes} bytes`)
    }
    chunks.push(bytes)
  }
  return Buffer.concat(chunks, size).toString()
}

const entities: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" }

/** The text of the first element of this name; undefined if there is none. S3's answers are flat and without CDATA. */
export function textIn(xml: string, name: string): string | undefined {
  const found = new RegExp(`<${name}>([^<]*)</${name}>`).exec(xml)?.[1]
  return found?.replace(/&(?:#(\d{1,7})|#x([0-9a-f]{1,6})|(\w+));/gi, (all, decimal, hex, entity) => {
    const code = decimal !== undefined ? Number(decimal) : hex !== undefined ? parseInt(String(hex), 16) : undefined
    if (code !== undefined) return code <= 0x10ffff ? String.fromCodePoint(code) : all
    return entities[String(entity)] ?? all
  })
}

/** The content of each element of this name, which contains no other of the same name. */
export function elementsIn(xml: string, name: string): string[] {
  return [...xml.matchAll(new RegExp(`<${name}>([^]*?)</${name}>`, 'g'))].map(([, content = '']) => content)
}
