// Kubernetes' own example of an aggregated API server (wardle.example.com), with an etcd of its own.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { networkInterfaces, tmpdir } from 'node:os'
import { join } from 'node:path'
import { CertificateAuthority, type KeyPair } from './certificates.ts'
import { etcdArgs } from './control-plane-args.ts'
import { freePort } from './free-port.ts'
import { writeKubeconfig } from './kubeconfig.ts'
import { startProcess } from './process.ts'
import { ensurePrograms } from './programs.ts'

export interface SampleApiServer extends AsyncDisposable {
  readonly port: number
  /** PEM of the authority of its serving certificate. */
  readonly ca: string
}

/** An IPv4 address of this machine that is no loopback address: EndpointSlices must not have those. */
export function ownAddress(): string {
  const found = Object.values(networkInterfaces())
    .flatMap((addresses) => addresses ?? [])
    .find(({ family, internal }) => family === 'IPv4' && !internal)
  if (found === undefined) throw new Error('this machine has no IPv4 address besides loopback')
  return found.address
}

/** Starts it behind the API server at `server`. Its certificate is valid for the Service `wardle/api`. */
export async function startSampleApiServer(core: {
  readonly server: string
  readonly ca: string
  readonly client: KeyPair
}): Promise<SampleApiServer> {
  await using stack = new AsyncDisposableStack()
  const programs = await ensurePrograms(['etcd', 'sample-apiserver'])
  const dir = mkdtempSync(join(tmpdir(), 'kcp-sample-'))
  stack.defer(() => rmSync(dir, { recursive: true, force: true }))
  const [etcdPort, peerPort, port] = [await freePort(), await freePort(), await freePort()]
  const etcd = `http://127.0.0.1:${etcdPort}`
  const peer = `http://127.0.0.1:${peerPort}`
  const started = (name: 'etcd' | 'sample-apiserver', args: readonly string[]) =>
    startProcess({ name, command: programs[name], args, cwd: dir, logFile: join(dir, `${name}.log`) })
  stack.use(await started('etcd', etcdArgs({ client: etcd, peer, durable: false })))
  const authority = await CertificateAuthority.create('wardle-ca')
  const serving = await authority.issue({ commonName: 'wardle', hosts: ['api.wardle.svc', '127.0.0.1'] })
  mkdirSync(join(dir, 'pki'))
  writeFileSync(join(dir, 'pki/tls.crt'), serving.certificate)
  writeFileSync(join(dir, 'pki/tls.key'), serving.key, { mode: 0o600 })
  const kubeconfig = join(dir, 'kubeconfig')
  writeKubeconfig(kubeconfig, { name: 'core', ...core })
  stack.use(
    await started('sample-apiserver', [
      ...['kubeconfig', 'authentication-kubeconfig', 'authorization-kubeconfig'].map(
        (flag) => `--${flag}=${kubeconfig}`,
      ),
      ...[`--etcd-servers=${etcd}`, `--secure-port=${port}`],
      ...['--tls-cert-file=pki/tls.crt', '--tls-private-key-file=pki/tls.key'],
    ]),
  )
  const owned = stack.move()
  return { port, ca: authority.certificate, [Symbol.asyncDispose]: () => owned.disposeAsync() }
}
