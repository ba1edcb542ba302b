// The format of a snapshot of one logical cluster: a tar archive, compressed with zstd, that stock tools open
// (`tar --zstd -xf`, `jq`, `sha256sum -c checksums.sha256`). Its files, in this order: `manifest.json`;
// `objects/RESOURCE.ndjson`, one object per line as the API shows it; `checksums.sha256`.
import { createHash, type Hash } from 'node:crypto'
import { Readable } from 'node:stream'
import type { ReadableStream as NodeReadableStream } from 'node:stream/web'
import { createZstdCompress, createZstdDecompress, constants } from 'node:zlib'
import { pipeline } from 'node:stream'
import { createTarDecoder, createTarPacker } from 'modern-tar'
import { isJsonObject, type DeepReadonly } from '#apimachinery/meta/index.ts'
import { parseJsonText } from '#apimachinery/json/index.ts'
import type { SnapshotVolume } from '#crds/index.ts'

export const snapshotFormat = 'kcp.dev/snapshot'
export const snapshotVersion = 1
/** The type of a snapshot that is not compressed, for clients in the same process or beside it. */
export const tarType = 'application/x-tar'
const manifestFile = 'manifest.json'
const checksumsFile = 'checksums.sha256'

/** Bounds on what a reader keeps of a file that it does not trust. An object has 3 MiB at most. */
const maxManifestBytes = 64 * 1024 * 1024
export const maxLineBytes = 8 * 1024 * 1024
/** How many objects a restore holds in memory at most. */
export const maxObjectsRead = 2_000_000

/** The place of an object; `resource` is `configmaps`, `deployments.apps`. */
export interface ObjectPlace {
  readonly resource: string
  /** Empty for cluster-scoped objects. */
  readonly namespace: string
  readonly name: string
}

/** The key of a place in maps. */
export function keyOf({ resource, namespace, name }: ObjectPlace): string {
  return `${resource}/${namespace}/${name}`
}

/** A file with all objects of a resource. */
interface SnapshotPart {
  readonly file: string
  readonly resource: string
  readonly objects: number
  /** Size of the file in bytes. */
  readonly bytes: number
}

export interface SnapshotManifest {
  readonly format: typeof snapshotFormat
  readonly version: number
  /** RFC 3339. */
  readonly takenAt: string
  /** The version of kcp that made it. */
  readonly program: string
  readonly logicalCluster: { readonly name: string; readonly id: string; readonly uid: string }
  /** All objects are as they were at this resourceVersion. */
  readonly revision: string
  readonly objects: number
  /** Bytes of all objects. */
  readonly bytes: number
  readonly parts: readonly SnapshotPart[]
  /** The objects with which every logical cluster begins and that nobody has changed in this one. */
  readonly initial: readonly ObjectPlace[]
  /** The objects with which every logical cluster begins that were deleted in this one. */
  readonly deleted: readonly ObjectPlace[]
  /**
   * The volumes of claims as the installation has recorded them: for people, after the loss of that record. No restore
   * reads them, because whoever writes a file could name the data of others.
   */
  readonly volumes?: readonly SnapshotVolume[]
}

/** An error in a snapshot, with a message for people. */
export class SnapshotError extends Error {
  override readonly name = 'SnapshotError'
}

/** The objects of a resource while a snapshot is written. `objects` yields their JSON without a newline. */
export interface WrittenPart {
  readonly resource: string
  readonly count: number
  /** Bytes of all objects together, without newlines. */
  readonly bytes: number
  readonly objects: Iterable<Uint8Array>
}

const newline = Buffer.from('\n')
/** Objects are passed on together in chunks of about this many bytes. */
const chunkBytes = 64 * 1024

/** The name of the file of a resource. */
export function partFile(resource: string): string {
  return `objects/${resource}.ndjson`
}

/**
 * The bytes of a tar archive, without compression. `pause` is awaited between two chunks, so that other work runs
 * meanwhile.
 */
export function tarOf(
  about: Omit<SnapshotManifest, 'format' | 'version' | 'parts' | 'objects' | 'bytes'>,
  parts: readonly WrittenPart[],
  pause: () => Promise<void> | undefined,
): Readable {
  const manifest: SnapshotManifest = {
    format: snapshotFormat,
    version: snapshotVersion,
    ...about,
    objects: parts.reduce((sum, { count }) => sum + count, 0),
    bytes: parts.reduce((sum, { bytes }) => sum + bytes, 0),
    parts: parts.map(({ resource, count, bytes }) => ({
      file: partFile(resource),
      resource,
      objects: count,
      bytes: bytes + count,
    })),
  }
  const { readable, controller } = createTarPacker()
  const mtime = new Date(about.takenAt)
  const sums: string[] = []
  const put = async (name: string, size: number, chunks: Iterable<Uint8Array>): Promise<void> => {
    const hash = createHash('sha256')
    const writer = controller.add({ name, size, mtime, mode: 0o600 }).getWriter()
    for (const chunk of chunks) {
      hash.update(chunk)
      await writer.write(chunk)
      await pause()
    }
    await writer.close()
    sums.push(`${hash.digest('hex')}  ${name}\n`)
  }
  const write = async (): Promise<void> => {
    const head = Buffer.from(`${JSON.stringify(manifest, null, 2)}\n`)
    await put(manifestFile, head.length, [head])
    for (const part of parts) await put(partFile(part.resource), part.bytes + part.count, chunksOf(part.objects))
    const text = Buffer.from(sums.join(''))
    await put(checksumsFile, text.length, [text])
    controller.finalize()
  }
  write().catch((error: unknown) => controller.error(error))
  return Readable.from(joined(readable as NodeReadableStream<Uint8Array>), { objectMode: false })
}

/** Chunks of about `chunkBytes`: a compressor and a socket pay for each chunk, and most of a small tar are headers. */
async function* joined(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  let held: Uint8Array[] = []
  let size = 0
  for await (const chunk of chunks) {
    held.push(chunk)
    size += chunk.length
    if (size < chunkBytes) continue
    yield held.length === 1 ? chunk : Buffer.concat(held, size)
    ;[held, size] = [[], 0]
  }
  if (size > 0) yield Buffer.concat(held, size)
}

function* chunksOf(objects: Iterable<Uint8Array>): Generator<Uint8Array> {
  let held: Uint8Array[] = []
  let size = 0
  for (const object of objects) {
    held.push(object, newline)
    size += object.length + 1
    if (size < chunkBytes) continue
    yield Buffer.concat(held, size)
    ;[held, size] = [[], 0]
  }
  if (size > 0) yield Buffer.concat(held, size)
}

/** The archive, which is not compressed, with a manifest that names these volumes. Fails with its error if it is not whole. */
export function withVolumes(
  tar: AsyncIterable<Uint8Array>,
  volumes: readonly DeepReadonly<SnapshotVolume>[],
): Readable {
  const { readable, controller } = createTarPacker()
  const write = async (): Promise<void> => {
    const entries = Readable.toWeb(Readable.from(tar, { objectMode: false })).pipeThrough(
      createTarDecoder({ strict: true }),
    ) as unknown as AsyncIterable<TarEntry>
    let sums = ''
    for await (const { header, body } of entries) {
      const { name, size, mtime } = header
      if (name === manifestFile || name === checksumsFile) {
        const text = (await whole(body, { hash: createHash('sha256'), maxBytes: maxManifestBytes, name })).toString()
        const bytes = Buffer.from(name === manifestFile ? manifestWith(text, volumes) : text.replace(manifestSum, sums))
        if (name === manifestFile) sums = `${createHash('sha256').update(bytes).digest('hex')}  ${manifestFile}`
        const writer = controller.add({ name, size: bytes.length, mtime, mode: 0o600 }).getWriter()
        await writer.write(bytes)
        await writer.close()
        continue
      }
      const writer = controller.add({ name, size, mtime, mode: 0o600 }).getWriter()
      for await (const chunk of body) await writer.write(chunk)
      await writer.close()
    }
    controller.finalize()
  }
  write().catch((error: unknown) => controller.error(error))
  return Readable.from(joined(readable as NodeReadableStream<Uint8Array>), { objectMode: false })
}

const manifestSum = new RegExp(`^[0-9a-f]{64} {2}${manifestFile}$`, 'm')

function manifestWith(text: string, volumes: readonly DeepReadonly<SnapshotVolume>[]): string {
  const manifest = parseJsonText(text) as object
  return `${JSON.stringify({ ...manifest, volumes }, null, 2)}\n`
}

/** The archive compressed with zstd. An error of the archive is an error of the result. */
export function compressed(tar: Readable): Readable {
  const zstd = createZstdCompress({ params: { [constants.ZSTD_c_compressionLevel]: 3 } })
  return pipeline(tar, zstd, () => undefined)
}

/** An object as it was read, and where it belongs. */
export interface ReadLine {
  readonly resource: string
  readonly bytes: Buffer
}

/**
 * Reads an archive, compressed or not: first `manifest`, then each object. Throws SnapshotError for bytes that are not
 * a whole snapshot; a file that was cut off or changed is noticed at its end at the latest, so a caller that must not
 * use half of it reads it to the end first.
 */
export async function* readSnapshot(
  source: AsyncIterable<Uint8Array>,
): AsyncGenerator<{ manifest: SnapshotManifest } | ReadLine> {
  try {
    yield* readTar(await decompressed(source))
  } catch (error) {
    if (error instanceof SnapshotError) throw error
    const { code, message } = error as NodeJS.ErrnoException
    // An error of the operating system, such as EIO, says nothing about the snapshot.
    if (code !== undefined && /^E[A-Z]+$/.test(code)) throw error
    throw new SnapshotError(`it is not a whole snapshot: ${message}`, { cause: error })
  }
}

const zstdMagic = Buffer.from([0x28, 0xb5, 0x2f, 0xfd])

async function decompressed(source: AsyncIterable<Uint8Array>): Promise<Readable> {
  const { head, bytes } = await withHead(source, zstdMagic.length)
  return head.equals(zstdMagic)
    ? pipeline(bytes, createZstdDecompress({ chunkSize: chunkBytes }), () => undefined)
    : bytes
}

/** The first `length` bytes, or all if there are fewer, and all bytes. */
export async function withHead(
  source: AsyncIterable<Uint8Array>,
  length: number,
): Promise<{ readonly head: Buffer; readonly bytes: Readable }> {
  const iterator = source[Symbol.asyncIterator]()
  let begun = Buffer.alloc(0)
  while (begun.length < length) {
    const next = await iterator.next()
    if (next.done === true) break
    begun = Buffer.concat([begun, next.value])
  }
  async function* whole(): AsyncGenerator<Uint8Array> {
    try {
      yield begun
      for (let next = await iterator.next(); next.done !== true; next = await iterator.next()) yield next.value
    } finally {
      await iterator.return?.()
    }
  }
  return { head: begun.subarray(0, length), bytes: Readable.from(whole(), { objectMode: false }) }
}

interface TarEntry {
  readonly header: { readonly name: string; readonly size: number; readonly mtime: Date }
  readonly body: AsyncIterable<Uint8Array>
}

async function* readTar(tar: Readable): AsyncGenerator<{ manifest: SnapshotManifest } | ReadLine> {
  const decoder = createTarDecoder({ strict: true })
  const entries = Readable.toWeb(tar).pipeThrough(decoder) as unknown as AsyncIterable<TarEntry>
  let manifest: SnapshotManifest | undefined
  const seen = new Map<string, string>()
  let sums: string | undefined
  const left = new Map<string, SnapshotPart>()
  for await (const { header, body } of entries) {
    const { name } = header
    if (sums !== undefined) throw new SnapshotError(`${name} comes after ${checksumsFile}`)
    const hash = createHash('sha256')
    if (name === manifestFile && manifest === undefined) {
      manifest = manifestOf(await whole(body, { hash, maxBytes: maxManifestBytes, name }))
      for (const part of manifest.parts) left.set(part.file, part)
      yield { manifest }
    } else if (manifest === undefined) {
      throw new SnapshotError(`its first file is ${name}, not ${manifestFile}`)
    } else if (name === checksumsFile) {
      sums = (await whole(body, { hash, maxBytes: maxManifestBytes, name })).toString()
      continue
    } else {
      const part = left.get(name)
      if (part === undefined) throw new SnapshotError(`it has a file ${name} that its manifest does not name`)
      left.delete(name)
      let objects = 0
      for await (const bytes of lines(body, { hash, name })) {
        objects++
        yield { resource: part.resource, bytes }
      }
      if (objects !== part.objects)
        throw new SnapshotError(`${name} has ${objects} objects, and its manifest says ${part.objects}`)
    }
    seen.set(name, hash.digest('hex'))
  }
  if (manifest === undefined || sums === undefined)
    throw new SnapshotError('it is not a whole snapshot: it ends before its checksums')
  const [missing] = left.keys()
  if (missing !== undefined) throw new SnapshotError(`${missing} is missing`)
  requireSums(sums, seen)
}

function requireSums(text: string, seen: ReadonlyMap<string, string>): void {
  const named = new Map<string, string>()
  for (const line of text.split('\n')) {
    const [, sum, file] = /^([0-9a-f]{64}) {2}(.+)$/.exec(line) ?? []
    if (sum !== undefined && file !== undefined) named.set(file, sum)
  }
  for (const [file, sum] of seen)
    if (named.get(file) !== sum) throw new SnapshotError(`${file} was changed: its checksum differs`)
}

async function whole(
  body: AsyncIterable<Uint8Array>,
  { hash, maxBytes, name }: { hash: Hash; maxBytes: number; name: string },
): Promise<Buffer> {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of body) {
    hash.update(chunk)
    size += chunk.length
    if (size > maxBytes) throw new SnapshotError(`${name} is larger than ${maxBytes} bytes`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks, size)
}

async function* lines(
  body: AsyncIterable<Uint8Array>,
  { hash, name }: { hash: Hash; name: string },
): AsyncGenerator<Buffer> {
  let held: Uint8Array[] = []
  let size = 0
  for await (const chunk of body) {
    hash.update(chunk)
    let from = 0
    for (let at = chunk.indexOf(0x0a); at >= 0; at = chunk.indexOf(0x0a, from)) {
      yield Buffer.concat([...held, chunk.subarray(from, at)])
      ;[held, size, from] = [[], 0, at + 1]
    }
    held.push(chunk.subarray(from))
    size += chunk.length - from
    if (size > maxLineBytes) throw new SnapshotError(`${name} has a line of more than ${maxLineBytes} bytes`)
  }
  if (size > 0) throw new SnapshotError(`the last line of ${name} does not end`)
}

function manifestOf(bytes: Buffer): SnapshotManifest {
  const value: unknown = parseJsonText(bytes.toString())
  if (!isJsonObject(value) || value['format'] !== snapshotFormat)
    throw new SnapshotError(`${manifestFile} is not that of a snapshot (format ${snapshotFormat})`)
  if (value['version'] !== snapshotVersion)
    throw new SnapshotError(
      `its format has version ${JSON.stringify(value['version'])}; this kcp reads version ${snapshotVersion}: use the kcp that made it, ${typeof value['program'] === 'string' ? value['program'] : 'a later one'}`,
    )
  const manifest = value as unknown as SnapshotManifest
  const isWhole =
    Array.isArray(manifest.parts) &&
    manifest.parts.every(
      (part: Partial<SnapshotPart> | null) =>
        typeof part?.resource === 'string' &&
        typeof part.objects === 'number' &&
        part.file === partFile(part.resource) &&
        /^[a-z0-9.-]+$/.test(part.resource),
    ) &&
    [manifest.initial, manifest.deleted].every(
      (list: unknown) => Array.isArray(list) && list.every((item) => isJsonObject(item)),
    ) &&
    typeof manifest.logicalCluster === 'object' &&
    typeof manifest.logicalCluster.id === 'string'
  if (!isWhole) throw new SnapshotError(`${manifestFile} lacks fields of a snapshot`)
  return manifest
}
