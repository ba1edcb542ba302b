// An OCI image archive of one or more platforms, readable by `ctr images import`, `docker load`, `podman load` and
// `skopeo`. OCI image specification v1.1: image-layout, image-index, manifest, config. The same input gives the same
// bytes.
import { createHash } from 'node:crypto'
import { createReadStream, createWriteStream, mkdirSync, mkdtempSync, renameSync, rmSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { PassThrough, type Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createGzip } from 'node:zlib'
import { writeTar, type TarEntry } from '#test/support/tar.ts'

export interface OciImage {
  readonly architecture: string
  /** Contents, lowest layer first. Images that share an array share the blob. */
  readonly layers: readonly TarEntry[][]
  /** The `config` object of the image configuration: Entrypoint, User, Env ... */
  readonly config: Readonly<Record<string, unknown>>
}

interface Blob {
  readonly digest: string
  readonly size: number
  readonly entry: TarEntry
}
interface Descriptor {
  readonly mediaType: string
  readonly digest: string
  readonly size: number
  readonly platform?: object
  readonly annotations?: Readonly<Record<string, string>>
}
interface Layer extends Blob {
  /** Of the uncompressed tar. */
  readonly diffId: string
}

const types = {
  index: 'application/vnd.oci.image.index.v1+json',
  manifest: 'application/vnd.oci.image.manifest.v1+json',
  config: 'application/vnd.oci.image.config.v1+json',
  layer: 'application/vnd.oci.image.layer.v1.tar+gzip',
} as const

/**
 * Writes the archive to `file`, whole or not at all. `name` is `registry/repository:tag`, `level` that of gzip: with 0
 * nothing is compressed.
 */
export async function writeOciArchive(
  file: string,
  name: string,
  images: readonly OciImage[],
  level = 6,
): Promise<void> {
  mkdirSync(dirname(file), { recursive: true })
  const work = mkdtempSync(join(dirname(file), '.image-'))
  try {
    const layers = new Map<TarEntry[], Layer>()
    for (const layer of new Set(images.flatMap((image) => image.layers)))
      layers.set(layer, await writeLayer(layer, join(work, `layer-${layers.size}`), level))
    const blobs: Blob[] = [...layers.values()]
    const manifests = images.map((image) => addManifest(image, layers, blobs))
    const index = indexOf(manifests, name, blobs)
    const entries: TarEntry[] = [
      { path: 'oci-layout', content: '{"imageLayoutVersion":"1.0.0"}' },
      { path: 'index.json', content: JSON.stringify(index) },
      ...new Map(blobs.map(({ digest, entry }) => [digest, entry])).values(),
    ]
    await writeTarFile(entries, join(work, 'archive'))
    renameSync(join(work, 'archive'), file)
  } finally {
    rmSync(work, { recursive: true, force: true })
  }
}

/** One platform is named by its manifest; several by an index of theirs, from which a client takes its own. */
function indexOf(manifests: readonly Descriptor[], name: string, blobs: Blob[]): object {
  const annotations = {
    'io.containerd.image.name': name,
    'org.opencontainers.image.ref.name': name.slice(name.lastIndexOf(':') + 1),
  }
  const index = (of: readonly Descriptor[]): object => ({ schemaVersion: 2, mediaType: types.index, manifests: of })
  const [only, ...others] = manifests
  if (only !== undefined && others.length === 0) return index([{ ...only, annotations }])
  const platforms = jsonBlob(index(manifests))
  blobs.push(platforms)
  return index([{ ...descriptor(types.index, platforms), annotations }])
}

function addManifest(image: OciImage, layers: ReadonlyMap<TarEntry[], Layer>, blobs: Blob[]): Descriptor {
  const own = image.layers.map((layer) => layers.get(layer) as Layer)
  const platform = { architecture: image.architecture, os: 'linux' }
  const config = jsonBlob({
    ...platform,
    config: image.config,
    rootfs: { type: 'layers', diff_ids: own.map(({ diffId }) => diffId) },
    history: own.map(() => ({ created_by: 'make image' })),
  })
  const manifest = jsonBlob({
    schemaVersion: 2,
    mediaType: types.manifest,
    config: descriptor(types.config, config),
    layers: own.map((layer) => descriptor(types.layer, layer)),
  })
  blobs.push(config, manifest)
  return { ...descriptor(types.manifest, manifest), platform }
}

function descriptor(mediaType: string, { digest, size }: Blob): Descriptor {
  return { mediaType, digest, size }
}

function jsonBlob(value: object): Blob {
  const content = Buffer.from(JSON.stringify(value))
  const digest = createHash('sha256').update(content).digest('hex')
  return { digest: `sha256:${digest}`, size: content.length, entry: { path: `blobs/sha256/${digest}`, content } }
}

async function writeLayer(entries: readonly TarEntry[], file: string, level: number): Promise<Layer> {
  await writeTarFile(entries, `${file}.tar`)
  const diffId = await digestOf(createReadStream(`${file}.tar`))
  await pipeline(createReadStream(`${file}.tar`), createGzip({ level }), createWriteStream(file))
  rmSync(`${file}.tar`)
  const digest = await digestOf(createReadStream(file))
  const entry = { path: `blobs/sha256/${digest.slice('sha256:'.length)}`, file }
  return { digest, diffId, size: statSync(file).size, entry }
}

async function digestOf(stream: Readable): Promise<string> {
  const hash = createHash('sha256')
  await pipeline(stream, hash)
  return `sha256:${hash.digest('hex')}`
}

async function writeTarFile(entries: readonly TarEntry[], file: string): Promise<void> {
  const through = new PassThrough()
  const writing = pipeline(through, createWriteStream(file))
  await writeTar(entries, through)
  through.end()
  await writing
}
