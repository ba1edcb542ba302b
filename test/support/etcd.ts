// A real etcd, with TLS and client certificates if asked for.
import { randomBytes } from 'node:crypto'
import { mkdir, rm, writeFile } from 'node:fs/promises'
import { request as plainRequest } from 'node:http'
import { request as tlsRequest } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { CertificateAuthority } from './certificates.ts'
import { freePort } from './free-port.ts'
import { startProcess, type ManagedProcess } from './process.ts'
import { ensurePrograms } from './programs.ts'

export interface EtcdOptions {
  /** Serves TLS, and asks for client certificates of this authority. Default: neither. */
  readonly authority?: CertificateAuthority
  /** Members of the cluster. Default 1. */
  readonly members?: number
  /** Whether it waits for the disk. Default false. */
  readonly durable?: boolean
  /** Further flags of every member. */
  readonly flags?: readonly string[]
}

export interface Etcd extends AsyncDisposable {
  readonly urls: readonly string[]
  readonly members: readonly ManagedProcess[]
}

/** Starts etcd; resolves once every member is healthy. */
export async function startEtcd({
  authority,
  members: count = 1,
  durable = false,
  flags = [],
}: EtcdOptions = {}): Promise<Etcd> {
  const { etcd } = await ensurePrograms(['etcd'], {})
  const dir = join(tmpdir(), `kcp-etcd-${randomBytes(6).toString('hex')}`)
  await mkdir(dir, { recursive: true })
  const scheme = authority === undefined ? 'http' : 'https'
  const places = await Promise.all(
    Array.from({ length: count }, async (_, index) => ({
      name: `m${index}`,
      client: `${scheme}://127.0.0.1:${await freePort()}`,
      peer: `http://127.0.0.1:${await freePort()}`,
    })),
  )
  const tls: string[] = []
  let identity: { ca: string; cert: string; key: string } | undefined
  if (authority !== undefined) {
    const server = await authority.issue({ commonName: 'etcd', hosts: ['127.0.0.1'], client: true })
    const user = await authority.issue({ commonName: 'health' })
    identity = { ca: authority.certificate, cert: user.certificate, key: user.key }
    for (const [name, text] of Object.entries({
      ca: authority.certificate,
      cert: server.certificate,
      key: server.key,
    }))
      await writeFile(join(dir, `${name}.pem`), text)
    tls.push('--client-cert-auth', `--trusted-ca-file=${join(dir, 'ca.pem')}`)
    tls.push(`--cert-file=${join(dir, 'cert.pem')}`, `--key-file=${join(dir, 'key.pem')}`)
  }
  const cluster = places.map(({ name, peer }) => `${name}=${peer}`).join()
  const started = await Promise.all(
    places.map(({ name, client, peer }) =>
      startProcess({
        name: `etcd-${name}-${randomBytes(3).toString('hex')}`,
        command: etcd,
        args: [
          ...[`--name=${name}`, `--data-dir=${join(dir, name)}`, `--initial-cluster=${cluster}`, '--log-level=warn'],
          ...[`--listen-client-urls=${client}`, `--advertise-client-urls=${client}`],
          ...[`--listen-peer-urls=${peer}`, `--initial-advertise-peer-urls=${peer}`],
          ...[...(durable ? [] : ['--unsafe-no-fsync']), ...tls, ...flags],
        ],
        ready: () => isHealthy(client, identity),
      }),
    ),
  )
  return {
    urls: places.map(({ client }) => client),
    members: started,
    async [Symbol.asyncDispose]() {
      await Promise.all(started.map((member) => member[Symbol.asyncDispose]()))
      await rm(dir, { recursive: true, force: true })
    },
  }
}

async function isHealthy(url: string, identity: object | undefined): Promise<boolean> {
  const ask = identity === undefined ? plainRequest : tlsRequest
  return await new Promise((resolve) => {
    const request = ask(`${url}/health`, { ...identity, timeout: 1000 }, (response) => {
      response.resume()
      resolve(response.statusCode === 200)
    })
    request.on('error', () => resolve(false)).on('timeout', () => request.destroy())
    request.end()
  })
}
