// Real nodes for logical clusters without members: kubelet, kube-proxy and DNS of a node use its logical cluster as
// their API, so that its pods run.
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { acquireRun, CertificateAuthority, ensureSystemPackages, kubectl } from '#test/support/index.ts'
import type { ManagedProcess, Run } from '#test/support/index.ts'
import { clusterAddresses } from '#test/support/address-plan.ts'
import { ensureBridge } from '#test/support/network.ts'
import { startNode, type ClusterNode } from '#test/support/node.ts'

/** A network on this machine for nodes. Ends with everything in it when disposed of. */
export interface NodeNetwork extends AsyncDisposable {
  /** Flags for `kcp start`: nodes reach it, and it calls webhooks in their pods. */
  readonly kcpFlags: readonly string[]
  /** Starts node number `index` of a logical cluster, from 0, and resolves when it is Ready. */
  startNode(index: number, kubeconfig: string): Promise<ClusterNode & AsyncDisposable>
}

/** Address of cluster DNS in the Service range of logical clusters. */
const dnsService = '10.96.0.10'

/** A network for so many nodes. Rejects with the reason where nodes cannot run. */
export async function startNodeNetwork(nodes: number): Promise<NodeNetwork> {
  const impossible = await ensureSystemPackages()
  if (impossible !== undefined) throw new Error(`no nodes on this machine: ${impossible}`)
  const { run, release } = await acquireRun()
  const address = await ensureBridge(run)
  const pods = Array.from({ length: nodes }, (_, index) => clusterAddresses(run.record.slot, index).podCidr)
  return {
    kcpFlags: [
      '--bind-address=0.0.0.0',
      `--advertise-address=${address}`,
      ...pods.map((cidr) => `--egress-allow=${cidr}`),
    ],
    startNode: (index, kubeconfig) => startRealNode(run, { index, kubeconfig, address }),
    [Symbol.asyncDispose]: release,
  }
}

async function startRealNode(
  run: Run,
  { index, kubeconfig, address }: { index: number; kubeconfig: string; address: string },
): Promise<ClusterNode & AsyncDisposable> {
  const cluster = `upstream${index + 1}`
  const dir = join(run.dir, cluster)
  run.add({ type: 'directory', path: dir, scope: cluster })
  for (const part of ['log', 'pki']) mkdirSync(join(dir, part), { recursive: true })
  const ca = await CertificateAuthority.create(cluster)
  writeFileSync(join(dir, 'pki', 'ca.crt'), ca.certificate)
  const reachable = join(dir, 'admin.kubeconfig')
  writeFileSync(reachable, readFileSync(kubeconfig, 'utf8').replace('127.0.0.1', address), { mode: 0o600 })
  const controlPlane = {
    ca,
    kubeconfig: reachable,
    processes: new Map<string, ManagedProcess>(),
    // All parts of the node are admins: logical clusters have no authorizer for nodes.
    kubeconfigFor: (file: string) => {
      copyFileSync(reachable, file)
      return Promise.resolve(file)
    },
    get: async (path: string): Promise<unknown> =>
      JSON.parse((await kubectl(kubeconfig, ['get', '--raw', path])).stdout) as unknown,
  }
  const addresses = { ...clusterAddresses(run.record.slot, index), dnsService }
  const spec = { cluster, index, dir, run, addresses, flags: {}, controlPlane: Promise.resolve(controlPlane) }
  return { ...(await startNode(spec)), [Symbol.asyncDispose]: () => run.undo(cluster) }
}
