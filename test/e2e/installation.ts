// Installs our program in the lab: `kcp apiserver` and `kcp operator` on the host, or `kcp start` without one.
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort, kubectl, runKcp, startKcp, waitFor, type Cluster, type ManagedProcess } from '#test/support/index.ts'
import { importKcp, kcpImage } from './kcp-image.ts'
import type { Lab } from './lab.ts'

export interface Installation extends AsyncDisposable {
  readonly title: string
  /** Where LogicalClusters and MemberClusters live. */
  readonly admin: string
  /** Flags with which commands find this installation. */
  readonly flags: readonly string[]
  readonly processes: readonly ManagedProcess[]
  /** A kubeconfig for `user` in a logical cluster, over the endpoint that such a user has. */
  tenant(logicalCluster: string, user: string): Promise<string>
  /**
   * `network`: its service network; default Flat. `more`: further flags of the command. In pull mode if KCP_TEST_PULL is
   * set.
   */
  join(member: Cluster, network?: ServiceNetwork, more?: readonly string[]): Promise<void>
  /** Joins the member in pull mode: its agent, which runs in it, dials out. */
  joinByAgent(
    member: Cluster,
    options?: { readonly network?: ServiceNetwork; readonly httpProxy?: string; readonly more?: readonly string[] },
  ): Promise<void>
}

const group = 'virtual.kcp.dev'

/** Runs `kcp apiserver` with these extra flags, and `kcp operator`, on the real host. */
export async function installOnHost(
  { host }: Pick<Lab, 'host'>,
  flagsOfApiserver: readonly string[] = [],
): Promise<Installation> {
  const port = await freePort(host.hostAddress)
  const env = { KUBECONFIG: host.kubeconfig }
  const address = host.hostAddress
  const apiserver = await startKcp(
    [
      'apiserver',
      '--port',
      String(port),
      '--bind-address',
      address,
      '--advertise-address',
      address,
      ...flagsOfApiserver,
    ],
    { env },
  )
  const operator = await startKcp(['operator'], { env })
  await printed(apiserver, 'kcp apiserver is ready')
  await printed(operator, 'kcp operator is ready')
  const flags = ['--host-kubeconfig', host.kubeconfig]
  const dir = await mkdtemp(join(tmpdir(), 'kcp-e2e-'))
  return {
    title: 'with a host',
    admin: host.kubeconfig,
    flags,
    processes: [apiserver, operator],
    async tenant(logicalCluster, user) {
      await admit(host, logicalCluster, user)
      const base = await host.kubeconfigFor({ commonName: user, organizations: ['tenants'] })
      const text = await readFile(base, 'utf8')
      const url = `${host.server}/apis/${group}/v1alpha1/logicalclusters/${logicalCluster}/proxy`
      const file = join(dir, `${user}-${logicalCluster}.kubeconfig`)
      await writeFile(file, text.replaceAll(host.server, url), { mode: 0o600 })
      return file
    },
    ...joiningOf({ admin: host.kubeconfig, flags }),
    async [Symbol.asyncDispose]() {
      await operator.stop()
      await apiserver.stop()
      await rm(dir, { recursive: true, force: true })
    },
  }
}

/** Resolves when the process has printed this text. */
async function printed(process: ManagedProcess, text: string): Promise<void> {
  await waitFor(() => process.log().includes(text), {
    what: `"${text}"; it printed: ${process.log().slice(-2000)}`,
    deadlineMs: 120_000,
  })
}

/** Host RBAC for one logical cluster: the only thing the host must know about a tenant. */
async function admit(host: Cluster, logicalCluster: string, user: string): Promise<void> {
  const name = `tenant-${logicalCluster}`
  const rules = [
    { apiGroups: [group], resources: ['logicalclusters/proxy'], resourceNames: [logicalCluster], verbs: ['*'] },
  ]
  const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name }
  const subjects = [{ kind: 'User', apiGroup: 'rbac.authorization.k8s.io', name: user }]
  const items = [
    { apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'ClusterRole', metadata: { name }, rules },
    { apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'ClusterRoleBinding', metadata: { name }, roleRef, subjects },
  ]
  await host.kubectl(['apply', '-f', '-'], { input: { apiVersion: 'v1', kind: 'List', items } })
}

/**
 * Runs `kcp start` with these extra flags, without a host, listening where pods of the members can reach it.
 * `command`: another program than `bin/kcp` of this checkout.
 */
export async function installWithoutHost(
  { east }: Pick<Lab, 'east'>,
  flagsOfStart: readonly string[] = [],
  { command }: { readonly command?: string } = {},
): Promise<Installation> {
  const dir = await mkdtemp(join(tmpdir(), 'kcp-e2e-'))
  const rootDir = join(dir, 'root')
  const port = await freePort(east.hostAddress)
  const admin = join(rootDir, 'admin.kubeconfig')
  const args = [
    'start',
    '--root-dir',
    rootDir,
    '--port',
    String(port),
    '--bind-address',
    '0.0.0.0',
    '--advertise-address',
    east.hostAddress,
    ...flagsOfStart,
  ]
  const kcp = await startKcp(args, { ...(command !== undefined && { command }) })
  await printed(kcp, 'kcp is ready')
  const flags = ['--root-dir', rootDir]
  return {
    title: 'without a host',
    admin,
    flags,
    processes: [kcp],
    async tenant(logicalCluster, user) {
      const { stdout } = await runKcp(['kubeconfig', logicalCluster, ...flags])
      const file = join(dir, `${user}-${logicalCluster}.kubeconfig`)
      await writeFile(file, stdout, { mode: 0o600 })
      return file
    },
    ...joiningOf({ admin, flags, flagsOfPull: ['--server', `https://${east.hostAddress}:${port}`] }),
    async [Symbol.asyncDispose]() {
      await kcp.stop()
      await rm(dir, { recursive: true, force: true })
    },
  }
}

type ServiceNetwork = 'Flat' | 'Gateway'

interface Joining extends Pick<Installation, 'admin' | 'flags'> {
  readonly flagsOfPull?: readonly string[]
}

function joiningOf({ admin, flags, flagsOfPull = [] }: Joining): Pick<Installation, 'join' | 'joinByAgent'> {
  const joinWith = async (member: Cluster, network: ServiceNetwork, more: readonly string[]): Promise<void> => {
    const named = ['member', 'join', member.name, '--kubeconfig', member.kubeconfig, '--service-network', network]
    await runKcp([...named, ...more, ...flags])
  }
  const joinByAgent: Installation['joinByAgent'] = async (member, { network = 'Flat', httpProxy, more = [] } = {}) => {
    await importKcp(member)
    await joinWith(member, network, [
      ...['--pull', '--approve', '--apply', '--image', kcpImage],
      ...flagsOfPull,
      ...(httpProxy === undefined ? [] : ['--http-proxy', httpProxy]),
      ...more,
    ])
    await kubectl(admin, ['wait', '--for=condition=Ready', `mc/${member.name}`, '--timeout=90s'])
  }
  const join: Installation['join'] = (member, network = 'Flat', more = []) => joinWith(member, network, more)
  const isPull = process.env['KCP_TEST_PULL'] === '1'
  return {
    join: isPull ? (member, network, more = []) => joinByAgent(member, { ...(network && { network }), more }) : join,
    joinByAgent,
  }
}

/** Creates a LogicalCluster with an owner and waits until it is Ready. */
export async function createLogicalCluster({ admin }: Installation, name: string, owner: string): Promise<void> {
  const spec = { owners: [{ kind: 'User', apiGroup: 'rbac.authorization.k8s.io', name: owner }] }
  await kubectl(admin, ['create', '-f', '-'], {
    input: { apiVersion: 'kcp.dev/v1alpha1', kind: 'LogicalCluster', metadata: { name }, spec },
  })
  await kubectl(admin, ['wait', '--for=condition=Ready', `logicalclusters.kcp.dev/${name}`, '--timeout=20s'])
}

/** The id of a logical cluster, the prefix of its namespaces in members. */
export async function idOf({ admin }: Installation, name: string): Promise<string> {
  const args = ['get', `logicalclusters.kcp.dev/${name}`, '-o', 'jsonpath={.status.id}']
  return (await kubectl(admin, args)).stdout
}
