// Starts kcp and a real kube-apiserver with etcd for one measurement.
import { startCluster, startStoreServer, type StoreServerKind } from '#test/support/index.ts'
import { startKcpUnderTest, type KcpUnderTest } from './kcp-under-test.ts'
import { withChildren } from './process-usage.ts'

export interface Contender {
  readonly name: 'kcp' | 'kube-apiserver'
  /** Path of an administrator's kubeconfig: for a logical cluster of kcp, or for the whole real cluster. */
  readonly kubeconfig: string
  /** Of all its processes, as they are now. */
  readonly pids: () => readonly number[]
}

export interface Contenders extends AsyncDisposable {
  readonly kcp: KcpUnderTest
  readonly both: readonly [Contender, Contender]
}

/** Starts both; `name` is the name of the logical cluster. With `store`, kcp has a server of its own for its data. */
export async function startContenders(name: string, signal: AbortSignal, store?: StoreServerKind): Promise<Contenders> {
  await using stack = new AsyncDisposableStack()
  const cluster = stack.use(await startCluster({ name: 'bench', durable: true, signal }))
  const server = store && stack.use(await startStoreServer(store, { durable: true }))
  const kcp = stack.use(await startKcpUnderTest({ args: server?.flags ?? [] }))
  const ours = await kcp.tenantKubeconfig(name)
  const owned = stack.move()
  return {
    kcp,
    both: [
      {
        name: 'kcp',
        kubeconfig: ours,
        pids: () => [...withChildren(kcp.pid), ...(server?.pids() ?? [])],
      },
      {
        name: 'kube-apiserver',
        kubeconfig: cluster.kubeconfig,
        pids: () => [...cluster.processes.values()].map(({ pid }) => pid),
      },
    ],
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  }
}
