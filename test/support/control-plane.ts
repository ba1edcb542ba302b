// A control plane: etcd, kube-apiserver and, if requested, controller-manager and scheduler.

import { mkdirSync, writeFileSync } from 'node:fs'
import { request } from 'node:https'
import { join } from 'node:path'
import { CertificateAuthority, newSigningKey, type CertificateRequest, type KeyPair } from './certificates.ts'
import { type ClusterAddresses } from './address-plan.ts'
import { apiserverArgs, etcdArgs } from './control-plane-args.ts'
import { freePort } from './free-port.ts'
import { writeKubeconfig } from './kubeconfig.ts'
import { startProcess, type ManagedProcess } from './process.ts'
import { ensurePrograms } from './programs.ts'
import { type Run } from './run.ts'

export type ComponentName = 'etcd' | 'kube-apiserver' | 'kube-controller-manager' | 'kube-scheduler'

/** The versions of the API server that can be booted. */
export type ServerVersion = '1.30' | '1.31' | '1.34'

export interface ControlPlaneSpec {
  name: string
  dir: string
  run: Run
  /** Address of this machine for nodes and pods. */
  hostAddress: string
  addresses: ClusterAddresses
  controllerManager: boolean
  scheduler: boolean
  /**
   * Whether etcd waits for the disk. Only tests that compare speed with etcd need it; the others run faster without.
   */
  durable: boolean
  flags: Partial<Record<ComponentName, readonly string[]>>
  /** The version of the API server. */
  version: ServerVersion
  signal?: AbortSignal | undefined
}

export interface ControlPlane {
  server: string
  /** PEM of the authority of serving and client certificates. */
  ca: CertificateAuthority
  /** Authority of the aggregator's own client certificate only. */
  frontProxyCa: CertificateAuthority
  /** kubeconfig of `admin` in system:masters. */
  kubeconfig: string
  processes: Map<string, ManagedProcess>
  /** Writes a kubeconfig for any user; `organizations` are the groups. */
  kubeconfigFor(file: string, who: CertificateRequest): Promise<string>
  /** GET as admin: parsed JSON, or the text of any other body. Rejects unless the status is 200. */
  get: (path: string, signal?: AbortSignal) => Promise<unknown>
}

/** Starts it and resolves when /readyz succeeds (start hooks done, RBAC's built-in roles included). */
export async function startControlPlane(spec: ControlPlaneSpec): Promise<ControlPlane> {
  const { name, dir, run, hostAddress, addresses, flags, signal } = spec
  const apiserver = spec.version === '1.34' ? 'kube-apiserver' : (`kube-apiserver-${spec.version}` as const)
  const programs = await ensurePrograms(['etcd', apiserver, 'kube-controller-manager', 'kube-scheduler'], { signal })
  const port = await freePort(hostAddress)
  const server = `https://${hostAddress}:${port}`
  const pki = await writePki(join(dir, 'pki'), name, [hostAddress, '127.0.0.1', addresses.apiService])
  const kubeconfigFor = async (file: string, who: CertificateRequest): Promise<string> => {
    writeKubeconfig(file, { name, server, ca: pki.ca.certificate, client: await pki.ca.issue(who) })
    return file
  }
  const admin = await pki.ca.issue({ commonName: 'admin', organizations: ['system:masters'] })
  const kubeconfig = join(dir, 'admin.kubeconfig')
  writeKubeconfig(kubeconfig, { name, server, ca: pki.ca.certificate, client: admin })
  const get = (path: string, getSignal = signal): Promise<unknown> =>
    getAs(admin, pki.ca.certificate, server + path, getSignal)

  const processes = new Map<string, ManagedProcess>()
  const start = async (component: ComponentName, args: string[], ready?: () => Promise<boolean>): Promise<void> => {
    const started = await startProcess(
      {
        name: component,
        command: programs[component === 'kube-apiserver' ? apiserver : component],
        args: [...args, ...(flags[component] ?? [])],
        cwd: dir,
        logFile: join(dir, 'log', `${component}.log`),
        ...(ready === undefined ? {} : { ready }),
      },
      { run, scope: name, signal },
    )
    processes.set(component, started)
  }

  const etcd = `http://${addresses.loopback}:${await freePort(addresses.loopback)}`
  const peer = `http://${addresses.loopback}:${await freePort(addresses.loopback)}`
  await start('etcd', etcdArgs({ client: etcd, peer, durable: spec.durable }))
  await start('kube-apiserver', clusterApiserverArgs({ spec, port, etcd }), async () => (await get('/readyz')) === 'ok')
  if (spec.controllerManager) {
    const identity = { commonName: 'system:kube-controller-manager' }
    const file = await kubeconfigFor(join(dir, 'controller-manager.kubeconfig'), identity)
    await start('kube-controller-manager', controllerManagerArgs(file))
  }
  if (spec.scheduler) {
    const file = await kubeconfigFor(join(dir, 'scheduler.kubeconfig'), { commonName: 'system:kube-scheduler' })
    await start('kube-scheduler', [
      '--kubeconfig',
      file,
      '--leader-elect=false',
      '--secure-port=0',
      '--profiling=false',
    ])
  }
  return { server, ca: pki.ca, frontProxyCa: pki.frontProxyCa, kubeconfig, processes, kubeconfigFor, get }
}

async function writePki(
  dir: string,
  name: string,
  serverIps: string[],
): Promise<{ ca: CertificateAuthority; frontProxyCa: CertificateAuthority }> {
  mkdirSync(dir, { recursive: true, mode: 0o700 })
  const put = (file: string, text: string): void => writeFileSync(join(dir, file), text, { mode: 0o600 })
  const putPair = (file: string, { certificate, key }: KeyPair): void => {
    put(`${file}.crt`, certificate)
    put(`${file}.key`, key)
  }
  const ca = await CertificateAuthority.create(`${name}-ca`)
  const frontProxyCa = await CertificateAuthority.create(`${name}-front-proxy-ca`)
  const serviceNames = [
    'kubernetes',
    'kubernetes.default',
    'kubernetes.default.svc',
    'kubernetes.default.svc.cluster.local',
  ]
  putPair('ca', ca)
  put('front-proxy-ca.crt', frontProxyCa.certificate)
  putPair(
    'server',
    await ca.issue({ commonName: 'kube-apiserver', hosts: [...serverIps, 'localhost', ...serviceNames] }),
  )
  putPair('front-proxy-client', await frontProxyCa.issue({ commonName: 'front-proxy-client' }))
  const kubeletClient = { commonName: 'kube-apiserver-kubelet-client', organizations: ['system:masters'] }
  putPair('kubelet-client', await ca.issue(kubeletClient))
  const { privateKey, publicKey } = await newSigningKey()
  put('service-accounts.key', privateKey)
  put('service-accounts.pub', publicKey)
  return { ca, frontProxyCa }
}

function clusterApiserverArgs({ spec, port, etcd }: { spec: ControlPlaneSpec; port: number; etcd: string }): string[] {
  return [
    ...apiserverArgs({ etcd, address: spec.hostAddress, port, serviceCidr: spec.addresses.serviceCidr }),
    `--advertise-address=${spec.hostAddress}`,
    '--authorization-mode=Node,RBAC',
    '--enable-admission-plugins=NodeRestriction',
    '--allow-privileged=true',
    '--requestheader-client-ca-file=pki/front-proxy-ca.crt',
    '--requestheader-allowed-names=front-proxy-client',
    '--requestheader-username-headers=X-Remote-User',
    '--requestheader-group-headers=X-Remote-Group',
    '--requestheader-extra-headers-prefix=X-Remote-Extra-',
    '--proxy-client-cert-file=pki/front-proxy-client.crt',
    '--proxy-client-key-file=pki/front-proxy-client.key',
    '--enable-aggregator-routing=true',
    '--kubelet-preferred-address-types=InternalIP',
    '--kubelet-certificate-authority=pki/ca.crt',
    '--kubelet-client-certificate=pki/kubelet-client.crt',
    '--kubelet-client-key=pki/kubelet-client.key',
  ]
}

function controllerManagerArgs(kubeconfig: string): string[] {
  return [
    `--kubeconfig=${kubeconfig}`,
    '--service-account-private-key-file=pki/service-accounts.key',
    '--root-ca-file=pki/ca.crt',
    '--use-service-account-credentials=true',
    '--cluster-signing-cert-file=pki/ca.crt',
    '--cluster-signing-key-file=pki/ca.key',
    '--leader-elect=false',
    '--secure-port=0',
    '--profiling=false',
    '--kube-api-qps=100',
    '--kube-api-burst=200',
    // A quota counted from a cache that lags stays wrong until the next count: 5 minutes unless told otherwise.
    '--resource-quota-sync-period=10s',
  ]
}

function getAs(client: KeyPair, ca: string, url: string, signal: AbortSignal | undefined): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const options = { ca, cert: client.certificate, key: client.key, agent: false as const, timeout: 5000 }
    const req = request(url, signal === undefined ? options : { ...options, signal }, (response) => {
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk))
      response.on('error', reject)
      response.on('end', () => {
        const text = Buffer.concat(chunks).toString()
        if (response.statusCode !== 200)
          reject(new Error(`GET ${url}: ${String(response.statusCode)} ${text.slice(0, 500)}`))
        else
          resolve(response.headers['content-type']?.startsWith('application/json') === true ? JSON.parse(text) : text)
      })
    })
    req.on('timeout', () => req.destroy(new Error(`GET ${url}: no answer within 5 s`)))
    req.on('error', reject)
    req.end()
  })
}
