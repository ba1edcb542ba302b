// A real object store that speaks S3 over TLS (versitygw, Apache-2.0), for tests of snapshots. Its objects are files.
import { mkdtempSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:tls'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { CertificateAuthority } from './certificates.ts'
import { freePort } from './free-port.ts'
import { startProcess } from './process.ts'
import { ensurePrograms } from './programs.ts'

export interface ObjectStore extends AsyncDisposable {
  /** `https://127.0.0.1:PORT`. */
  readonly endpoint: string
  readonly port: number
  /** PEM certificate of the authority of its certificate. */
  readonly authority: string
  /** The file with it. */
  readonly authorityFile: string
  readonly accessKeyId: string
  readonly secretAccessKey: string
  /** The variables with which `s3://` works. */
  readonly env: Readonly<Record<string, string>>
  /** The folder of a bucket: each object is a file under its key. */
  readonly folderOf: (bucket: string) => string
}

/** Starts an object store with these buckets. */
export async function startObjectStore(buckets: readonly string[]): Promise<ObjectStore> {
  await using stack = new AsyncDisposableStack()
  const { versitygw } = await ensurePrograms(['versitygw'])
  const dir = mkdtempSync(join(tmpdir(), 'kcp-object-store-'))
  stack.defer(() => rmSync(dir, { recursive: true, force: true }))
  const ca = await CertificateAuthority.create('object-store-ca')
  const { certificate, key } = await ca.issue({ commonName: 'object-store', hosts: ['127.0.0.1'] })
  const file = (name: string, text: string): string => {
    writeFileSync(join(dir, name), text, { mode: 0o600 })
    return join(dir, name)
  }
  const [data, meta] = ['data', 'meta'].map((name) => join(dir, name))
  for (const folder of [data ?? '', meta ?? '', ...buckets.map((bucket) => join(data ?? '', bucket))]) mkdirSync(folder)
  const port = await freePort()
  const [accessKeyId, secretAccessKey] = ['kcp-test', 'kcp-test-secret']
  const authorityFile = file('ca.pem', ca.certificate)
  stack.use(
    await startProcess({
      name: `object-store-${port}`,
      command: versitygw,
      args: [
        ...['--port', `127.0.0.1:${port}`, '--cert', file('cert.pem', certificate), '--key', file('key.pem', key)],
        ...['posix', '--sidecar', meta ?? '', data ?? ''],
      ],
      env: { ROOT_ACCESS_KEY: accessKeyId, ROOT_SECRET_KEY: secretAccessKey },
      ready: (signal) => answers(port, ca.certificate, signal),
    }),
  )
  const endpoint = `https://127.0.0.1:${port}`
  const owned = stack.move()
  return {
    ...{ endpoint, port, authority: ca.certificate, authorityFile, accessKeyId, secretAccessKey },
    env: {
      AWS_ACCESS_KEY_ID: accessKeyId,
      AWS_SECRET_ACCESS_KEY: secretAccessKey,
      AWS_ENDPOINT_URL: endpoint,
      AWS_CA_BUNDLE: authorityFile,
    },
    folderOf: (bucket) => join(data ?? '', bucket),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  }
}

function answers(port: number, ca: string, signal: AbortSignal): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host: '127.0.0.1', port, ca })
    const end = (isThere: boolean): void => {
      socket.destroy()
      resolve(isThere)
    }
    socket.once('secureConnect', () => end(true))
    socket.once('error', () => end(false))
    signal.addEventListener('abort', () => end(false), { once: true })
  })
}
