// A cluster with a node from kind, for the length of a test: where a container engine runs, it takes the place of the
// nodes that this harness makes itself. Its parts are not processes of ours, so tests that kill one of them need the
// harness' own clusters.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { ClusterAddresses } from '#test/support/address-plan.ts'
import { repositoryRoot } from '#test/support/cache-dir.ts'
import { CertificateAuthority, type CertificateRequest } from '#test/support/certificates.ts'
import { runCommand } from '#test/support/command.ts'
import { writeKubeconfig } from '#test/support/kubeconfig.ts'
import { kubectl } from '#test/support/kubectl.ts'
import type { ClusterNode } from '#test/support/node.ts'
import { ensurePrograms } from '#test/support/programs.ts'
import type { Run } from '#test/support/run.ts'
import {
  createCommand,
  inNode,
  internalKubeconfigCommand,
  kindName,
  loadCommand,
  networkCommand,
  nodeOf,
  readNetwork,
  routeCommands,
  type Command,
  type KindCluster,
} from './commands.ts'
import type { ContainerEngine } from './engine.ts'

export interface KindClusterSpec {
  /** Its name in the run. */
  readonly cluster: string
  readonly dir: string
  readonly run: Run
  readonly engine: ContainerEngine
  readonly addresses: Pick<ClusterAddresses, 'podCidr' | 'serviceCidr'>
  readonly signal?: AbortSignal | undefined
}

export interface StartedKindCluster {
  readonly kubeconfig: string
  readonly server: string
  readonly hostAddress: string
  readonly ca: CertificateAuthority
  readonly frontProxyCa: CertificateAuthority
  readonly node: ClusterNode
  kubeconfigFor(file: string, who: CertificateRequest): Promise<string>
  get: (path: string, signal?: AbortSignal) => Promise<unknown>
}

interface Peer {
  readonly cluster: KindCluster
  readonly address: string
  readonly podCidr: string
}

/** The clusters of each run, whose pods reach each other. */
const peers = new WeakMap<Run, Peer[]>()

/** Creates it and resolves when its node is Ready. The run's record deletes it, whatever happens. */
export async function startKindCluster(spec: KindClusterSpec): Promise<StartedKindCluster> {
  const { cluster: scope, dir, run, engine, addresses, signal } = spec
  const { kind } = await ensurePrograms(['kind'], { signal })
  const execute = (command: Command, timeoutMs = 300_000) =>
    runCommand(command.program === 'kind' ? kind : command.program, command.args, {
      ...(command.input !== undefined && { input: command.input }),
      ...(command.env !== undefined && { env: { ...command.env } }),
      timeoutMs,
      signal,
    })
  const cluster = { engine, name: kindName(run.id, scope) }
  const node = nodeOf(cluster)
  mkdirSync(dir, { recursive: true })
  const outside = join(dir, 'outside.kubeconfig')
  run.add({ type: 'kind', engine, name: cluster.name, program: kind, kubeconfig: outside, scope })
  const base = readFileSync(join(repositoryRoot, 'test/e2e/kind.yaml'), 'utf8')
  await execute(createCommand(cluster, { base, kubeconfig: outside, ...addresses }))
  const { gateway, address } = readNetwork((await execute(networkCommand(engine))).stdout, node)
  const server = `https://${address}:6443`
  const kubeconfig = join(dir, 'admin.kubeconfig')
  // The server by the node's address: pods of other clusters and this machine reach it alike.
  const { stdout } = await execute(internalKubeconfigCommand(cluster))
  writeFileSync(kubeconfig, stdout.replace(/^(\s*server: ).*$/m, `$1${server}`), { mode: 0o600 })
  const read = async (file: string): Promise<string> =>
    (await execute(inNode(cluster, 'cat', [`/etc/kubernetes/pki/${file}`]))).stdout
  const authority = async (name: string): Promise<CertificateAuthority> =>
    CertificateAuthority.of({ certificate: await read(`${name}.crt`), key: await read(`${name}.key`) })
  const [ca, frontProxyCa] = [await authority('ca'), await authority('front-proxy-ca')]
  const self = { cluster, address, podCidr: addresses.podCidr }
  const others = peers.get(run) ?? []
  peers.set(run, [...others, self])
  for (const other of others) for (const command of routeCommands(self, other)) await execute(command)
  return {
    kubeconfig,
    server,
    hostAddress: gateway,
    ca,
    frontProxyCa,
    node: {
      name: node,
      address,
      podCidr: addresses.podCidr,
      async importImages(archive) {
        await execute(loadCommand(cluster, archive))
      },
      enter: [engine, 'exec', node],
      run: (program, args) => execute(inNode(cluster, program, args)),
    },
    async kubeconfigFor(file, who) {
      writeKubeconfig(file, { name: scope, server, ca: ca.certificate, client: await ca.issue(who) })
      return file
    },
    async get(path) {
      const { stdout: text } = await kubectl(kubeconfig, ['get', '--raw', path])
      return /^\s*[[{]/.test(text) ? (JSON.parse(text) as unknown) : text
    },
  }
}
