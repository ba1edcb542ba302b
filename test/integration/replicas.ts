// Several `kcp apiserver` processes on one real host, with `kcp operator`: who owns what, and clients of each of them.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { ClusterId, KubeObject } from '#apimachinery/meta/index.ts'
import { createClient, httpTransport, kubeconfigText, loadKubeconfig } from '#client/index.ts'
import { installationKeysName } from '#crds/index.ts'
import { leases, replicaOf, replicaSelector, type Replica, type ReplicaLease } from '#store/ownership/index.ts'
import { bucketNumberOf } from '#store/host/index.ts'
import { createPki, pkiFromSecret } from '#virtualapi/index.ts'
import {
  freePort,
  kubectl,
  runKcp,
  startCluster,
  startKcp,
  waitFor,
  type Cluster,
  type CommandResult,
  type ManagedProcess,
} from '#test/support/index.ts'

export interface RunningReplica {
  readonly process: ManagedProcess
  /** `https://HOST:PORT` of its listener for clients. */
  readonly url: string
  readonly address: string
  readonly port: number
}

export interface ReplicaSet extends AsyncDisposable {
  readonly host: Cluster
  readonly replicas: RunningReplica[]
  readonly operator: ManagedProcess
  /** Starts one more, which the host's aggregator does not know. */
  add(): Promise<RunningReplica>
  /**
   * Creates a LogicalCluster; resolves when it is Ready. `owner` is a user of the host, `podSecurity` is
   * spec.podSecurity.enforce.
   */
  create(name: string, options?: { readonly owner?: string; readonly podSecurity?: string }): Promise<void>
  /** The id of a logical cluster. */
  idOf(name: string): Promise<ClusterId>
  /** A kubeconfig for a logical cluster through this replica. */
  kubeconfig(name: string, through: RunningReplica): Promise<string>
  /** A kubeconfig of the installation itself, as the operator has it, for `/clusters/NAME` or all of them (`*`). */
  installationKubeconfig(name: string, through: RunningReplica): Promise<string>
  /** What each replica claims, as the host has it. */
  leases(): Promise<readonly Replica[]>
  /** The replica that owns a logical cluster, itself or by one of its workers. */
  ownerOf(name: string): Promise<RunningReplica>
  /** The process that owns a logical cluster: a replica's, or that of one of its workers. */
  ownerPidOf(name: string): Promise<number>
}

/** The processes of the workers that a process with `--workers` has started; none of a process that is gone. */
export function workersOf({ process }: Pick<RunningReplica, 'process'>): number[] {
  try {
    const children = readFileSync(`/proc/${process.pid}/task/${process.pid}/children`, 'utf8')
    return children.split(' ').flatMap((pid) => (pid === '' ? [] : [Number(pid)]))
  } catch {
    return []
  }
}

/** Whether the process has ended; true for a zombie. */
export function isGone(pid: number): boolean {
  try {
    return /\) Z /.test(readFileSync(`/proc/${pid}/stat`, 'utf8'))
  } catch {
    return true
  }
}

const deadlineMs = 120_000

/**
 * Starts a host of this name with so many replicas; `args` are for them and the operator, `apiserverArgs` for them
 * alone. Everything ends when it is disposed of.
 */
export async function startReplicas(
  count: number,
  {
    name = 'host',
    durable = false,
    args = [],
    apiserverArgs = [],
  }: {
    readonly name?: string
    /** Whether the host's etcd waits for the disk. */
    readonly durable?: boolean
    readonly args?: readonly string[]
    readonly apiserverArgs?: readonly string[]
  } = {},
): Promise<ReplicaSet> {
  await using stack = new AsyncDisposableStack()
  const dir = mkdtempSync(join(tmpdir(), 'kcp-replicas-'))
  stack.defer(() => rmSync(dir, { recursive: true, force: true }))
  const host = stack.use(await startCluster({ name, durable }))
  const transport = stack.use(httpTransport(await loadKubeconfig({ file: host.kubeconfig }, { trusted: true })))
  const client = createClient(transport)
  const env = { KUBECONFIG: host.kubeconfig }
  const address = host.hostAddress
  const replicas: RunningReplica[] = []
  const add = async (register: 'all' | 'none'): Promise<RunningReplica> => {
    const port = await freePort(address)
    const flags = ['--port', String(port), '--bind-address', address, '--advertise-address', address]
    const process = stack.use(
      await startKcp(['apiserver', ...flags, '--register', register, ...args, ...apiserverArgs], { env }),
    )
    await printed(process, 'kcp apiserver is ready')
    const replica = { process, port, address, url: `https://${address}:${port}` }
    replicas.push(replica)
    return replica
  }
  const owners = async (): Promise<readonly Replica[]> => {
    const { signal } = new AbortController()
    const options = { namespace: 'kcp-system', labelSelector: replicaSelector, signal }
    return (await client.list<ReplicaLease>(leases, options)).items.map(replicaOf)
  }
  for (let i = 0; i < count; i++) await add(i === 0 ? 'all' : 'none')
  const operator = stack.use(await startKcp(['operator', ...args], { env }))
  await printed(operator, 'kcp operator is ready')
  const ownerPidOf = async (name: string): Promise<number> => {
    const bucket = bucketNumberOf(await idOf(name))
    const claiming = (await owners()).filter(({ claims }) => claims.has(bucket))
    const pid = Number(/ pid=(\d+) /.exec(claiming[0]?.process ?? '')?.[1])
    if (claiming.length !== 1 || !(pid > 0)) throw new Error(`"${name}" has ${claiming.length} owners`)
    return pid
  }
  const ids = new Map<string, ClusterId>()
  const printedKubeconfigs: Record<string, Promise<CommandResult>> = {}
  const idOf = async (name: string): Promise<ClusterId> => {
    const args = ['get', `logicalclusters.kcp.dev/${name}`, '-o', 'jsonpath={.status.id}']
    const id = ids.get(name) ?? ((await kubectl(host.kubeconfig, args)).stdout as ClusterId)
    ids.set(name, id)
    return id
  }
  const owned = stack.move()
  return {
    host,
    replicas,
    operator,
    add: () => add('none'),
    idOf,
    leases: owners,
    async create(name, { owner, podSecurity } = {}) {
      const owners = owner === undefined ? [] : [{ kind: 'User', apiGroup: 'rbac.authorization.k8s.io', name: owner }]
      const spec = { owners, ...(podSecurity === undefined ? {} : { podSecurity: { enforce: podSecurity } }) }
      const object = { apiVersion: 'kcp.dev/v1alpha1', kind: 'LogicalCluster', metadata: { name }, spec }
      await kubectl(host.kubeconfig, ['create', '-f', '-'], { input: object })
      await kubectl(host.kubeconfig, ['wait', '--for=condition=Ready', `lc/${name}`, '--timeout=60s'])
    },
    async kubeconfig(name, { url, port }) {
      const file = join(dir, `${name}-${port}.kubeconfig`)
      const { stdout } = await (printedKubeconfigs[name] ??= runKcp([
        ...['kubeconfig', name, '--host-kubeconfig', host.kubeconfig],
      ]))
      writeFileSync(file, stdout.replace(/https:\/\/[^/]+(?=\/clusters)/, url), { mode: 0o600 })
      return file
    },
    async installationKubeconfig(name, { url, port }) {
      const { signal } = new AbortController()
      const keys = await client.get<KubeObject & { data: Record<string, string> }>(
        { group: '', version: 'v1', resource: 'secrets' },
        { namespace: 'kcp-system', name: installationKeysName },
        { signal },
      )
      const pki = createPki(pkiFromSecret(keys.data))
      const who = { commonName: 'kcp:operator', organizations: ['kcp:system'], realm: 'installation' as const, days: 1 }
      const { certificate, key } = await pki.issueClientCertificate(who)
      const file = join(dir, `installation-${port}.kubeconfig`)
      const server = `${url}/clusters/${name}`
      writeFileSync(file, kubeconfigText({ name: 'kcp', server, ca: pki.servingCa, cert: certificate, key }))
      return file
    },
    async ownerOf(name) {
      const pid = await ownerPidOf(name)
      const found = replicas.find((replica) => replica.process.pid === pid || workersOf(replica).includes(pid))
      if (found === undefined) throw new Error(`"${name}" belongs to process ${pid}, which is no replica of ours`)
      return found
    },
    ownerPidOf,
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  }
}

/** Resolves when the process has printed this text. */
async function printed(process: ManagedProcess, text: string): Promise<void> {
  await waitFor(() => process.log().includes(text), {
    what: `"${text}"; it printed: ${process.log().slice(-2000)}`,
    deadlineMs,
  })
}
