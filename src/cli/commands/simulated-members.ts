// Registers simulated members with an installation, and turns them off and on as their MemberClusters say.
import { sleep } from '#async/index.ts'
import { createInformer, loadKubeconfig, type KubeClient } from '#client/index.ts'
import { memberClusters, type MemberCluster, type ServiceNetwork } from '#crds/index.ts'
import type { SimulatedMember } from '#simulation/index.ts'
import { joinMember } from '#syncer/index.ts'
import type { Logger } from '#telemetry/index.ts'

/** Annotation of a MemberCluster; `off` turns the simulated member off. */
export const powerAnnotation = 'simulation.kcp.dev/power'

interface Context {
  readonly clusters: KubeClient
  readonly log: Logger
  readonly signal: AbortSignal
}

export interface Registration {
  readonly serviceNetwork: ServiceNetwork
  readonly labels?: Readonly<Record<string, string>>
}

/** Joins the member as `kcp member join` does. Rejects with its errors. */
export async function registerMember(
  member: SimulatedMember,
  { serviceNetwork, labels }: Registration,
  { clusters, log, signal }: Context,
): Promise<void> {
  const memberKubeconfig = await loadKubeconfig({ text: member.kubeconfig })
  const { name } = member
  await joinMember({ name, memberKubeconfig, clusters, serviceNetwork, log, signal })
  if (labels !== undefined)
    await clusters.patch(memberClusters, { name }, 'merge', { metadata: { labels } }, { signal })
}

/** Follows the annotation until the result is disposed of. `changed` is called after each change. */
export function followPower(
  members: readonly SimulatedMember[],
  { clusters, log, signal }: Context,
  changed: (member: SimulatedMember) => void = () => undefined,
): AsyncDisposable {
  const informer = createInformer<MemberCluster>({ client: clusters, gvr: memberClusters, log, signal })
  informer.onChange(({ key, after }) => {
    const member = members.find(({ name }) => name === key)
    if (member === undefined || after === undefined) return
    const isOn = after.metadata.annotations?.[powerAnnotation] !== 'off'
    if (member.isOn === isOn) return
    member.setPower(isOn).then(
      () => changed(member),
      (error: unknown) => log.error('the power of a simulated member was not changed', { member: key, error }),
    )
  })
  return informer
}

/** How long a MemberCluster may take to go. */
const goneMs = 4000

/** Deletes the MemberCluster with all its copies, and waits until it is gone. False if it is still there. */
export async function unregisterMember(
  { name }: SimulatedMember,
  { clusters, signal }: Omit<Context, 'log'>,
): Promise<boolean> {
  const found = await clusters.tryGet<MemberCluster>(memberClusters, { name }, { signal })
  if (found === undefined) return true
  await clusters.patch(memberClusters, { name }, 'merge', { spec: { deletionPolicy: 'Force' } }, { signal })
  const { uid = '' } = found.metadata
  await clusters.delete(memberClusters, { name }, { uid, signal })
  const end = Date.now() + goneMs
  while (Date.now() < end) {
    await sleep(200, signal)
    if ((await clusters.tryGet<MemberCluster>(memberClusters, { name }, { signal })) === undefined) return true
  }
  return false
}
