// Starts kcp and a real kube-apiserver with etcd for one measurement.
import { startCluster, startEtcd } from '#test/support/index.ts'
import { startKcpUnderTest, type KcpUnderTest } from './kcp-under-test.ts'
import { withChildren } from './process-usage.ts'

export interface Contender {
  readonly name: 'kcp' | 'kube-apiserver'
  /** Path of an administrator's kubeconfig: for a logical cluster of kcp, or for the whole real cluster. */
  readonly kubeconfig: string
  readonly pids: readonly number[]
}

export interface Contenders extends AsyncDisposable {
  readonly kcp: KcpUnderTest
  readonly both: readonly [Contender, Contender]
}

/** Starts both; `name` is the name of the logical cluster. With `store`, kcp has an etcd of its own. */
export async function startContenders(name: string, signal: AbortSignal, store?: 'etcd'): Promise<Contenders> {
  await using stack = new AsyncDisposableStack()
  const cluster = stack.use(await startCluster({ name: 'bench', durable: true, signal }))
  const etcd = store && stack.use(await startEtcd({ durable: true }))
  const args = etcd === undefined ? [] : ['--store', 'etcd', '--etcd-servers', etcd.urls.join()]
  const kcp = stack.use(await startKcpUnderTest({ args }))
  const ours = await kcp.tenantKubeconfig(name)
  const owned = stack.move()
  return {
    kcp,
    both: [
      {
        name: 'kcp',
        kubeconfig: ours,
        pids: [...withChildren(kcp.pid), ...(etcd?.members ?? []).map(({ pid }) => pid)],
      },
      {
        name: 'kube-apiserver',
        kubeconfig: cluster.kubeconfig,
        pids: [...cluster.processes.values()].map(({ pid }) => pid),
      },
    ],
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  }
}
