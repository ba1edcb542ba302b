// Snapshots as objects of a bucket. A snapshot of up to one part is one request; a larger one is uploaded in parts and
// becomes visible when the upload is completed, so that nobody ever reads half of it.
import { createHash } from 'node:crypto'
import { elementsIn, S3Client, textIn, type S3Place } from './s3-requests.ts'
import {
  requireKey,
  Source,
  StorageError,
  type ListedObject,
  type SnapshotStorage,
  type StoredObject,
} from './storage.ts'

/** Bytes of a part: the least that S3 allows, because it is the memory of an upload. */
const partBytes = 5 * 1024 * 1024
/** S3's bound; with it, a snapshot has at most 48 GiB. */
const maxParts = 10_000

/** The storage in a bucket. Throws StorageError for a place that cannot be one. */
export function s3Storage(place: S3Place): SnapshotStorage {
  const { bucket, prefix } = place
  if (prefix !== '') requireKey(prefix)
  if (!/^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/.test(bucket))
    throw new StorageError('BucketMissing', `${JSON.stringify(bucket)} cannot be the name of a bucket`)
  const client = new S3Client(place)
  const whole = (key: string): string => {
    requireKey(key)
    return prefix === '' ? key : `${prefix}/${key}`
  }
  return {
    location: (key) => `s3://${bucket}/${whole(key)}`,
    async put(key, bytes, signal) {
      const source = new Source(bytes)
      return await put(client, whole(key), source, signal).catch((error: unknown) => {
        throw source.error ?? error
      })
    },
    get: async (key, signal) => await client.open({ method: 'GET', key: whole(key) }, signal),
    size: async (key, signal) => await sizeOf(client, whole(key), signal),
    list: (folder, signal) => list(client, prefix, folder, signal),
    async delete(key, signal) {
      await abortUploads(client, whole(key), signal)
      await client.ask({ method: 'DELETE', key: whole(key) }, signal, [404])
    },
    async check(signal) {
      const query = { 'list-type': '2', 'max-keys': '1', ...(prefix !== '' && { prefix: `${prefix}/` }) }
      await client.ask({ method: 'GET', query }, signal)
    },
    [Symbol.asyncDispose]: () => client[Symbol.asyncDispose](),
  }
}

async function put(
  client: S3Client,
  key: string,
  bytes: AsyncIterable<Uint8Array>,
  signal: AbortSignal,
): Promise<StoredObject> {
  await abortUploads(client, key, signal)
  const hash = createHash('sha256')
  let size = 0
  let upload: Upload | undefined
  try {
    let last: Buffer | undefined
    for await (const part of partsOf(bytes)) {
      signal.throwIfAborted()
      hash.update(part)
      size += part.length
      // A part is sent when the next one is there: the only part needs no upload.
      if (last !== undefined) {
        upload ??= await Upload.begin(client, key, signal)
        await upload.send(last, signal)
      }
      last = part
    }
    const rest = last ?? Buffer.alloc(0)
    if (upload === undefined) await client.ask({ method: 'PUT', key, body: rest, contentType: type }, signal)
    else {
      await upload.send(rest, signal)
      await upload.complete(signal)
    }
  } catch (error) {
    await upload?.abort()
    throw error
  }
  const there = await sizeOf(client, key, signal)
  if (there !== size)
    throw new StorageError(
      'WrongContent',
      `kcp sent ${size} bytes, and the object store has ${there ?? 'none'} of "${key}"`,
    )
  return { bytes: size, checksum: `sha256:${hash.digest('hex')}` }
}

const type = 'application/zstd'

/** An upload in parts. */
class Upload {
  readonly #client: S3Client
  readonly #key: string
  readonly #id: string
  readonly #tags: string[] = []

  private constructor(client: S3Client, key: string, id: string) {
    this.#client = client
    this.#key = key
    this.#id = id
  }

  static async begin(client: S3Client, key: string, signal: AbortSignal): Promise<Upload> {
    const { body } = await client.ask({ method: 'POST', key, query: { uploads: '' }, contentType: type }, signal)
    const id = textIn(body, 'UploadId')
    if (id === undefined)
      throw new StorageError('StorageFailed', 'the object store began no upload: it gave no UploadId')
    return new Upload(client, key, id)
  }

  async send(body: Buffer, signal: AbortSignal): Promise<void> {
    const number = this.#tags.length + 1
    if (number > maxParts)
      throw new StorageError('StorageFull', `the snapshot has more than ${maxParts} parts of ${partBytes} bytes`)
    const query = { partNumber: String(number), uploadId: this.#id }
    const { headers } = await this.#client.ask({ method: 'PUT', key: this.#key, query, body }, signal)
    if (headers.etag === undefined) throw new StorageError('StorageFailed', 'the object store gave a part no ETag')
    this.#tags.push(headers.etag)
  }

  async complete(signal: AbortSignal): Promise<void> {
    const parts = this.#tags.map(
      (tag, i) => `<Part><PartNumber>${i + 1}</PartNumber><ETag>${escaped(tag)}</ETag></Part>`,
    )
    const body = Buffer.from(`<CompleteMultipartUpload>${parts.join('')}</CompleteMultipartUpload>`)
    const query = { uploadId: this.#id }
    await this.#client.ask({ method: 'POST', key: this.#key, query, body, contentType: 'application/xml' }, signal)
  }

  /** Gives up. What cannot be removed now is removed by the next attempt. */
  async abort(): Promise<void> {
    const query = { uploadId: this.#id }
    await this.#client
      .ask({ method: 'DELETE', key: this.#key, query }, AbortSignal.timeout(10_000), [404])
      .catch(() => undefined)
  }
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;')
}

/** The bytes in buffers of partBytes, the last one excepted. */
async function* partsOf(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<Buffer> {
  let part = Buffer.allocUnsafe(partBytes)
  let size = 0
  for await (const chunk of bytes) {
    for (let at = 0; at < chunk.length;) {
      const taken = Math.min(chunk.length - at, partBytes - size)
      part.set(chunk.subarray(at, at + taken), size)
      at += taken
      size += taken
      if (size < partBytes) continue
      yield part
      ;[part, size] = [Buffer.allocUnsafe(partBytes), 0]
    }
  }
  if (size > 0) yield part.subarray(0, size)
}

/** Aborts the uploads of broken attempts at this key, whose parts nobody sees and everybody pays. */
async function abortUploads(client: S3Client, key: string, signal: AbortSignal): Promise<void> {
  const { body } = await client.ask({ method: 'GET', query: { uploads: '', prefix: key } }, signal)
  for (const one of elementsIn(body, 'Upload')) {
    const [name, uploadId] = [textIn(one, 'Key'), textIn(one, 'UploadId')]
    if (name === key && uploadId !== undefined)
      await client.ask({ method: 'DELETE', key, query: { uploadId } }, signal, [404])
  }
}

async function sizeOf(client: S3Client, key: string, signal: AbortSignal): Promise<number | undefined> {
  const { status, headers } = await client.ask({ method: 'HEAD', key }, signal, [404])
  return status === 404 ? undefined : Number(headers['content-length'])
}

async function* list(
  client: S3Client,
  prefix: string,
  folder: string,
  signal: AbortSignal,
): AsyncGenerator<ListedObject> {
  if (folder !== '') requireKey(folder)
  const base = prefix === '' ? '' : `${prefix}/`
  const wanted = `${base}${folder === '' ? '' : `${folder}/`}`
  let token: string | undefined
  do {
    const query = {
      'list-type': '2',
      ...(wanted !== '' && { prefix: wanted }),
      ...(token !== undefined && { 'continuation-token': token }),
    }
    const { body } = await client.ask({ method: 'GET', query }, signal)
    for (const one of elementsIn(body, 'Contents')) {
      const [key = '', size] = [textIn(one, 'Key'), textIn(one, 'Size')]
      if (key.startsWith(wanted)) yield { key: key.slice(base.length), bytes: Number(size) }
    }
    const next = textIn(body, 'IsTruncated') === 'true' ? textIn(body, 'NextContinuationToken') : undefined
    if (next !== undefined && next === token)
      throw new StorageError('StorageFailed', 'the object store lists the same page again')
    token = next
  } while (token !== undefined)
}
