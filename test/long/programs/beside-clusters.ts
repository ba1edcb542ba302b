// The same story beside a real kube-apiserver, beside one logical cluster and beside many at once.
import type { ClusterAccess } from '#test/clients/controllers/cluster-access.ts'
import { startInstance } from '#test/integration/kcp-instance.ts'
import { startCluster, type ClusterOptions } from '#test/support/index.ts'

interface Options {
  /** Flags of the real cluster's programs; its controllers run. */
  readonly realFlags?: ClusterOptions['flags']
  /** Arguments of `kcp start`. */
  readonly kcpArgs?: readonly string[]
  /** Logical clusters of the last test; 20 by default. */
  readonly many?: number
}

/** Declares one test for each of the three. `prefix` is that of the logical clusters' names. */
export function besideClusters(
  prefix: string,
  live: (cluster: ClusterAccess) => Promise<void>,
  { realFlags = {}, kcpArgs = [], many = 20 }: Options = {},
): void {
  it('tells its story to a real kube-apiserver', async () => {
    await using cluster = await startCluster({ name: 'real', controllerManager: true, flags: realFlags })
    await live(cluster)
  })

  it('does the same in a logical cluster', async () => {
    await using kcp = await startInstance(kcpArgs)
    await live(await kcp.tenant(prefix))
  })

  it(`does the same in ${many} logical clusters at once`, async () => {
    await using kcp = await startInstance(kcpArgs)
    const clusters: ClusterAccess[] = []
    // One after the other: each starts programs, and twenty at once take minutes on a loaded machine.
    for (let index = 0; index < many; index++) clusters.push(await kcp.tenant(`${prefix}-${index}`))
    await atOnce(clusters, live)
  })
}

async function atOnce(clusters: readonly ClusterAccess[], live: (cluster: ClusterAccess) => Promise<void>) {
  const outcomes = await Promise.allSettled(clusters.map(live))
  const failed = outcomes.flatMap((one) => (one.status === 'rejected' ? [one.reason as unknown] : []))
  if (failed.length > 0)
    throw new AggregateError(failed, `${failed.length} of ${clusters.length} failed:\n${failed.map(String).join('\n')}`)
}
