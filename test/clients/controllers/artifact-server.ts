// Serves archives on this machine as Flux's source-controller does, so that kustomize-controller needs no Git server.
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { PassThrough } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { gzipSync } from 'node:zlib'
import { writeTar } from '#test/support/tar.ts'
import { closeWithConnections } from '#test/support/close-with-connections.ts'

/** `status.artifact` of a source. */
export interface Artifact {
  readonly url: string
  readonly path: string
  readonly digest: string
  readonly revision: string
  readonly size: number
  readonly lastUpdateTime: string
}

export interface ArtifactServer extends AsyncDisposable {
  /** Packs `files` (texts by path) and serves the archive until the server is disposed of. */
  publish(revision: string, files: Readonly<Record<string, string>>): Promise<Artifact>
}

/** Starts it on a free port of an address of this machine. */
export async function startArtifactServer({ host = '127.0.0.1' } = {}): Promise<ArtifactServer> {
  const archives = new Map<string, Buffer>()
  const server = createServer((request, response) => {
    const archive = archives.get(request.url ?? '')
    if (archive === undefined) return void response.writeHead(404).end()
    response.writeHead(200, { 'content-type': 'application/gzip' }).end(archive)
  })
  const close = closeWithConnections(server)
  server.listen(0, host)
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    async publish(commit, files) {
      const archive = await pack(files)
      const sha256 = createHash('sha256').update(archive).digest('hex')
      const path = `/${sha256}.tar.gz`
      archives.set(path, archive)
      return {
        url: `http://${host}:${port}${path}`,
        path: path.slice(1),
        digest: `sha256:${sha256}`,
        revision: `main@sha1:${createHash('sha1').update(commit).digest('hex')}`,
        size: archive.length,
        lastUpdateTime: new Date().toISOString().replace(/\.\d+Z/, 'Z'),
      }
    },
    [Symbol.asyncDispose]: close,
  }
}

async function pack(files: Readonly<Record<string, string>>): Promise<Buffer> {
  const out = new PassThrough()
  const packed = buffer(out)
  await writeTar(
    Object.entries(files).map(([path, content]) => ({ path, content })),
    out,
  )
  out.end()
  return gzipSync(await packed)
}
