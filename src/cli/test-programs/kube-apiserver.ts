// `kube-apiserver` of bin/envtest: the API of one cluster, without controllers, as a kube-apiserver alone has it.
import { readFile } from 'node:fs/promises'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { ExitError } from '#cli/process/exit-error.ts'
import { aborted, processSignal } from '#cli/process/process-signal.ts'
import { startPlainServer } from '#cli/roles/plain-server.ts'
import { createLogger } from '#telemetry/index.ts'
import { kubernetesVersion } from '#virtualapi/index.ts'
import { readDataDirectory } from './data-directory.ts'
import { listOf, parseFlags, usageOf, valueOf, type Flags } from './flags.ts'

const usage = usageOf('kube-apiserver', 'Serves the API of one cluster on an embedded store.', {
  'bind-address': 'address to listen on',
  'secure-port': 'port to listen on',
  'cert-dir': 'directory with apiserver.crt and apiserver.key',
  'tls-cert-file': 'certificate of the server, PEM',
  'tls-private-key-file': 'its private key, PEM',
  'client-ca-file': 'authority of client certificates, PEM',
  'etcd-servers': 'the etcd of this folder, which has the directory of the data',
  'disable-admission-plugins': 'admission plugins that do not run',
})

/** Runs the program until it is stopped. Rejects with ExitError if it cannot start. */
export async function run(words: readonly string[]): Promise<void> {
  const flags = parseFlags(words)
  if (flags.has('help')) {
    console.log(usage)
    return
  }
  if (flags.has('version')) {
    console.log(`Kubernetes ${kubernetesVersion}`)
    return
  }
  const signal = processSignal()
  const [etcd] = listOf(flags, 'etcd-servers')
  if (etcd === undefined) throw new ExitError('--etcd-servers is missing: the address of the etcd in this folder')
  const clientCa = valueOf(flags, 'client-ca-file')
  if (clientCa === undefined) throw new ExitError('--client-ca-file is missing: without it no client can be known')
  const stopping = new AbortController()
  await using server = await startPlainServer({
    ...(await readDataDirectory(etcd, signal)),
    host: valueOf(flags, 'bind-address') ?? '127.0.0.1',
    port: Number(valueOf(flags, 'secure-port') ?? 6443),
    clientCa: await readFile(clientCa, 'utf8'),
    ...(await servingCertificate(flags)),
    withoutPlugins: listOf(flags, 'disable-admission-plugins'),
    log: createLogger({ level: 'warn' }),
    signal: stopping.signal,
  })
  try {
    await Promise.race([aborted(signal), server.failed])
  } finally {
    stopping.abort(signal.reason)
  }
}

/** The certificate that the flags name; empty if they name none. */
async function servingCertificate(flags: Flags): Promise<{ serving?: { certificate: string; key: string } }> {
  const dir = valueOf(flags, 'cert-dir')
  const inDirectory = (name: string): string | undefined => {
    const file = dir === undefined ? undefined : join(dir, name)
    return file !== undefined && existsSync(file) ? file : undefined
  }
  const certificate = valueOf(flags, 'tls-cert-file') ?? inDirectory('apiserver.crt')
  const key = valueOf(flags, 'tls-private-key-file') ?? inDirectory('apiserver.key')
  if (certificate === undefined || key === undefined) return {}
  return { serving: { certificate: await readFile(certificate, 'utf8'), key: await readFile(key, 'utf8') } }
}
