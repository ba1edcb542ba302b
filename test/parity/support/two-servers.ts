// Starts a real kube-apiserver and a logical cluster of `kcp start` for comparing their answers.
import { startCluster, waitFor } from '#test/support/index.ts'
import { startOurServer } from './our-server.ts'
import { borrowCluster } from './shared-cluster.ts'
import { openSide, type Side } from './side.ts'

export interface TwoServers extends AsyncDisposable {
  readonly real: Side
  readonly ours: Side
}

/** What a logical cluster serves that a kube-apiserver serves with these flags alone. */
export const betaFlags: readonly string[] = [
  '--feature-gates=MutatingAdmissionPolicy=true',
  '--runtime-config=admissionregistration.k8s.io/v1beta1=true',
]

/** Our server is a new one. The real one is too if it is to have flags, controllers, or no traces of others. */
export async function startTwoServers({
  name,
  controllerManager = false,
  untouched = false,
  flags = [],
  ourFlags = [],
}: {
  name: string
  controllerManager?: boolean
  /** True: nobody may have used the real server before, not even for namespaces. */
  untouched?: boolean
  flags?: readonly string[]
  /** Flags of `kcp start`. */
  ourFlags?: readonly string[]
}): Promise<TwoServers> {
  await using stack = new AsyncDisposableStack()
  const kubeApiserver = [...betaFlags, ...flags]
  const isShared = !controllerManager && !untouched && flags.length === 0
  const real = isShared
    ? borrowCluster(betaFlags)
    : startCluster({ name, controllerManager, flags: { 'kube-apiserver': kubeApiserver } })
  const [cluster, tenant] = await Promise.all([
    real.then((started) => stack.use(started)),
    startOurServer({ name, flags: ['--no-shared-apis', ...ourFlags] }).then((started) => stack.use(started)),
  ])
  const open = (kubeconfig: string): Side => stack.adopt(openSide(kubeconfig), (side) => side.close())
  const sides = { real: open(cluster.kubeconfig), ours: open(tenant.kubeconfig) }
  await removePlacements(sides.ours)
  const owned = stack.move()
  return { ...sides, [Symbol.asyncDispose]: () => owned.disposeAsync() }
}

/** Only ours has the kind Placement, besides apis.kcp.io, without which it is started. A tenant may delete its definition, and has an ordinary cluster then. */
async function removePlacements(ours: Side): Promise<void> {
  await ours.request('DELETE', '/apis/apiextensions.k8s.io/v1/customresourcedefinitions/placements.kcp.dev')
  const isGone = async (): Promise<boolean> => {
    const services = await ours.request('GET', '/apis/apiregistration.k8s.io/v1/apiservices')
    return ![services, await ours.request('GET', '/apis')].some(({ text }) => text.includes('kcp.dev'))
  }
  await waitFor(isGone, { what: 'the group of Placements to go', deadlineMs: 30_000 })
}
