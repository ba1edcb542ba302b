// Runs the gateways of members: connects what the operator knows of MemberClusters with the syncer, which knows the members.
import { memberClusters, type MemberCluster } from '#crds/index.ts'
import type { MemberToSync, OperatorContext } from '#operator/index.ts'
import {
  ClusterPresence,
  removeMemberGateway,
  startMemberGateway,
  type GatewayPeer,
  type Upstream,
} from '#syncer/index.ts'

const presences = new WeakMap<Upstream, ClusterPresence>()

/** Starts the gateway of a member with service network Gateway. Of another one it deletes what is left of a gateway. */
export async function syncMemberGateway(
  { name, serviceNetwork, gatewayAddress, gatewayReported, client, log, signal }: MemberToSync,
  {
    context,
    upstream,
    image,
  }: { readonly context: OperatorContext; readonly upstream: Upstream; readonly image: string },
): Promise<AsyncDisposable | undefined> {
  if (serviceNetwork !== 'Gateway') {
    await removeMemberGateway(client, signal)
    return undefined
  }
  let presence = presences.get(upstream)
  if (presence === undefined) presences.set(upstream, (presence = new ClusterPresence(upstream.informers)))
  const placed = presence
  const members = context.informers.of<MemberCluster>(memberClusters)
  const peers = (): GatewayPeer[] =>
    members.store
      .list()
      .filter(({ metadata, spec }) => metadata.name !== name && spec?.serviceNetwork?.type === 'Gateway')
      .map(({ metadata, status }) => ({
        name: metadata.name,
        ...status?.gateway,
        clusterIds: [...placed.clustersIn(metadata.name)].flatMap((cluster) => upstream.ids.idOf(cluster) ?? []),
      }))
  const onPeers = (listener: () => void): (() => void) => {
    const ends = [
      placed.onChange((member) => {
        if (member !== name) listener()
      }),
      members.onChange(({ key, before, after }) => {
        const wayOf = (one: typeof before): string => JSON.stringify([one?.spec?.serviceNetwork, one?.status?.gateway])
        if (key !== name && wayOf(before) !== wayOf(after)) listener()
      }),
    ]
    return () => {
      for (const end of ends) end()
    }
  }
  return startMemberGateway({
    memberName: name,
    member: client,
    image,
    ...(gatewayAddress !== undefined && { address: gatewayAddress }),
    peers,
    onPeers,
    // Without what the scheduler has decided, the gateways would be told that nobody may reach anything.
    synced: (until) => upstream.synced(until),
    report: gatewayReported,
    log: log.with({ member: name }),
    signal,
  })
}
