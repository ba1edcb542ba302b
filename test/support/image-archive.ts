// Builds container images without a container engine: a docker-archive tar of existing files.

import { createHash, randomBytes } from 'node:crypto'
import { createWriteStream, mkdirSync, mkdtempSync, renameSync, rmSync } from 'node:fs'
import { arch } from 'node:os'
import { dirname, join } from 'node:path'
import { PassThrough } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { writeTar, type TarEntry } from './tar.ts'

export interface ImageSpec {
  /** `registry/name:tag`; each is one name of the image. */
  tags: readonly string[]
  /** Contents, lowest layer first. Images of one archive share a layer by sharing its array. */
  layers: readonly (readonly TarEntry[])[]
  entrypoint: readonly string[]
  cmd?: readonly string[]
  env?: Record<string, string>
  /** `uid` or `uid:gid`. */
  user?: string
  workingDir?: string
}

/** Writes the images to `file`, completely or not at all, in the format of `ctr images import` and `docker load`. */
export async function writeImageArchive(file: string, images: readonly ImageSpec[]): Promise<void> {
  mkdirSync(dirname(file), { recursive: true })
  const work = mkdtempSync(join(dirname(file), '.image-'))
  try {
    const layers = new Map<readonly TarEntry[], { digest: string; file: string }>()
    for (const layer of new Set(images.flatMap((image) => image.layers))) {
      layers.set(layer, await writeLayer(layer, join(work, randomBytes(8).toString('hex'))))
    }
    const entries: TarEntry[] = [...layers.values()].map(({ digest, file: layer }) => ({
      path: `${digest}/layer.tar`,
      file: layer,
    }))
    const manifest = images.map((image) => {
      const digests = image.layers.map((layer) => layers.get(layer)?.digest ?? '')
      const config = JSON.stringify(imageConfig(image, digests))
      const path = `${createHash('sha256').update(config).digest('hex')}.json`
      entries.push({ path, content: config })
      return { Config: path, RepoTags: image.tags, Layers: digests.map((digest) => `${digest}/layer.tar`) }
    })
    entries.push({ path: 'manifest.json', content: JSON.stringify(manifest) })
    const archive = join(work, 'archive')
    await writeTarFile(entries, archive)
    renameSync(archive, file)
  } finally {
    rmSync(work, { recursive: true, force: true })
  }
}

/** The layer's tar and the digest of its bytes, by which the image's config refers to it. */
async function writeLayer(entries: readonly TarEntry[], file: string): Promise<{ digest: string; file: string }> {
  const hash = createHash('sha256')
  await writeTarFile(entries, file, (chunk) => void hash.update(chunk))
  return { digest: hash.digest('hex'), file }
}

async function writeTarFile(entries: readonly TarEntry[], file: string, see?: (chunk: Buffer) => void): Promise<void> {
  const through = new PassThrough()
  if (see !== undefined) through.on('data', see)
  const writing = pipeline(through, createWriteStream(file))
  const made = writeTar(entries, through).then(() => void through.end())
  await Promise.all([writing, made.catch((error: unknown) => void through.destroy(error as Error))])
}

function imageConfig({ entrypoint, cmd, env = {}, user, workingDir }: ImageSpec, digests: readonly string[]): object {
  const variables = Object.entries({ PATH: '/usr/local/bin:/usr/bin:/bin:/', ...env })
  return {
    architecture: arch() === 'x64' ? 'amd64' : arch(),
    os: 'linux',
    config: {
      Entrypoint: entrypoint,
      Env: variables.map(([name, value]) => `${name}=${value}`),
      ...(cmd === undefined ? {} : { Cmd: cmd }),
      ...(user === undefined ? {} : { User: user }),
      ...(workingDir === undefined ? {} : { WorkingDir: workingDir }),
    },
    rootfs: { type: 'layers', diff_ids: digests.map((digest) => `sha256:${digest}`) },
    history: digests.map(() => ({ created_by: 'kcp test harness' })),
  }
}
