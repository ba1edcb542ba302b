// A host, `kcp apiserver` and `kcp operator` in front of it, and a tenant that is ready.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort, kubectl, runKcp, startCluster, startKcp, waitFor, type Cluster } from '#test/support/index.ts'
import { withChildren } from './process-usage.ts'

/** Who works for a request. */
export const programs = ['etcd', 'kube-apiserver', 'kcp'] as const

export type Program = (typeof programs)[number]

export interface HostedTenant extends AsyncDisposable {
  readonly host: Cluster
  /** The name of its LogicalCluster. */
  readonly name: string
  /** Path of a kubeconfig that leads to kcp directly. */
  readonly kubeconfig: string
  /** Path of a kubeconfig for the host of the user of the host who owns the logical cluster, and may reach it there. */
  readonly ownerKubeconfig: string
  /** The processes of a program as they are now. */
  pids(program: Program): readonly number[]
}

const readyMs = 60_000
const rbac = 'rbac.authorization.k8s.io'

/** etcd waits for the disk. */
export async function startHostedTenant(signal: AbortSignal): Promise<HostedTenant> {
  const name = 'bench'
  await using stack = new AsyncDisposableStack()
  const host = stack.use(await startCluster({ name: 'benchhost', durable: true, signal }))
  const dir = mkdtempSync(join(tmpdir(), 'kcp-bench-'))
  stack.defer(() => rmSync(dir, { recursive: true, force: true }))
  const env = { KUBECONFIG: host.kubeconfig }
  const address = host.hostAddress
  const port = await freePort(address)
  const listening = ['--port', String(port), '--bind-address', address, '--advertise-address', address]
  const kcp = stack.use(await startKcp(['apiserver', ...listening], { env }))
  const operator = stack.use(await startKcp(['operator'], { env }))
  for (const program of [kcp, operator])
    await waitFor(() => program.log().includes('is ready'), { what: 'kcp to be ready', deadlineMs: readyMs })
  const owner = 'owner'
  const object = {
    apiVersion: 'kcp.dev/v1alpha1',
    kind: 'LogicalCluster',
    metadata: { name },
    spec: { owners: [{ kind: 'User', apiGroup: rbac, name: owner }] },
  }
  await kubectl(host.kubeconfig, ['create', '-f', '-'], { input: object })
  await kubectl(host.kubeconfig, ['wait', '--for=condition=Ready', `lc/${name}`, '--timeout=60s'])
  for (const input of rightsOf(owner, name)) await kubectl(host.kubeconfig, ['create', '-f', '-'], { input })
  const kubeconfig = join(dir, `${name}.kubeconfig`)
  writeFileSync(kubeconfig, (await runKcp(['kubeconfig', name, '--host-kubeconfig', host.kubeconfig])).stdout)
  const owned = stack.move()
  return {
    host,
    name,
    kubeconfig,
    ownerKubeconfig: await host.kubeconfigFor({ commonName: owner }),
    pids: (program) => (program === 'kcp' ? withChildren(kcp.pid) : [host.processes.get(program)?.pid ?? 0]),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  }
}

/** What a user of the host needs for a logical cluster through the host's aggregator. */
function rightsOf(user: string, cluster: string): readonly object[] {
  const resources = ['logicalclusters/proxy']
  const rules = [{ apiGroups: ['virtual.kcp.dev'], resources, resourceNames: [cluster], verbs: ['*'] }]
  const metadata = { name: `tenant-${cluster}` }
  const apiVersion = `${rbac}/v1`
  const roleRef = { apiGroup: rbac, kind: 'ClusterRole', name: metadata.name }
  const subjects = [{ apiGroup: rbac, kind: 'User', name: user }]
  return [
    { apiVersion, kind: 'ClusterRole', metadata, rules },
    { apiVersion, kind: 'ClusterRoleBinding', metadata, roleRef, subjects },
  ]
}
