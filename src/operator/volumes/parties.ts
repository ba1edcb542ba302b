// The parties of a VolumeMove, found by the names in its spec, and the reasons why there are none.
import type { Duplex } from 'node:stream'
import { clusterIdOf, type KubeObject } from '#apimachinery/meta/index.ts'
import { createClient, type DeepReadonly, type KubeClient } from '#client/index.ts'
import type { PodPortOfMember } from '#client/member/index.ts'
import {
  adoptedNamespace,
  downstreamNamespace,
  logicalClusters,
  memberClusters,
  memberState,
  type LogicalCluster,
  type MemberCluster,
  type ServiceNetwork,
  type VolumeMove,
} from '#crds/index.ts'
import type { OperatorContext } from '#operator/framework/operator-context.ts'

export const gvrs = {
  claims: { group: '', version: 'v1', resource: 'persistentvolumeclaims' },
  volumes: { group: '', version: 'v1', resource: 'persistentvolumes' },
  pods: { group: '', version: 'v1', resource: 'pods' },
  secrets: { group: '', version: 'v1', resource: 'secrets' },
  namespaces: { group: '', version: 'v1', resource: 'namespaces' },
  attachments: { group: 'storage.k8s.io', version: 'v1', resource: 'volumeattachments' },
} as const

/** A member that is connected. */
export interface MemberAccess {
  readonly client: KubeClient
  /** Opens a connection to a port of a pod. */
  readonly dialPod: (pod: PodPortOfMember, signal: AbortSignal) => Promise<Duplex>
}

interface PartySearch {
  readonly accessOf: (member: string) => MemberAccess | undefined
  readonly isSourceLost?: boolean
  readonly signal: AbortSignal
}

/** One member of a move. */
export interface MemberSide extends MemberAccess {
  readonly name: string
  /** The namespace of the claim there. */
  readonly namespace: string
  readonly isDraining: boolean
  /** Its MemberCluster is being deleted. */
  readonly isEnding: boolean
  /** It has no MemberCluster any more: nothing can be asked of it, and what is there stays. */
  readonly isGone: boolean
  readonly serviceNetwork: ServiceNetwork
}

export interface VolumeParties {
  readonly move: DeepReadonly<VolumeMove>
  readonly source: MemberSide
  readonly target: MemberSide
  /** The API of the logical cluster. */
  readonly upstream: KubeClient
  readonly signal: AbortSignal
}

/** Why a move does not go on: for condition Progressing. */
export class Obstacle extends Error {
  readonly reason: string
  readonly againSeconds: number

  constructor(reason: string, message: string, { againSeconds = 5 }: { readonly againSeconds?: number } = {}) {
    super(message)
    this.reason = reason
    this.againSeconds = againSeconds
  }
}

/** Access to a member that does not answer: nothing is asked of it. */
function lostMember(name: string): MemberAccess {
  const refuse = (): Promise<never> =>
    Promise.reject(new Obstacle('Unreachable', `member cluster "${name}" does not answer`))
  return {
    client: createClient({ request: refuse, upgrade: refuse, [Symbol.asyncDispose]: () => Promise.resolve() }),
    dialPod: refuse,
  }
}

/**
 * Throws Obstacle if a member is not connected; `isSourceLost`: the old member need not be, nor need a member that is
 * gone. Undefined: the logical cluster is gone.
 */
export async function partiesOf(
  move: DeepReadonly<VolumeMove>,
  { informers, virtual }: Pick<OperatorContext, 'informers' | 'virtual'>,
  { accessOf, isSourceLost = false, signal }: PartySearch,
): Promise<VolumeParties | undefined> {
  const { logicalCluster, namespace, from, to } = move.spec
  const owner = informers.of<LogicalCluster>(logicalClusters).store.get(logicalCluster)
  if (owner === undefined) return undefined
  const upstream = virtual(`/clusters/${logicalCluster}`)
  const found = await upstream.tryGet<KubeObject>(gvrs.namespaces, { name: namespace }, { signal })
  const adopted = adoptedNamespace(found)
  const members = informers.of<MemberCluster>(memberClusters).store
  const sideOf = (name: string): MemberSide => {
    const member = members.get(name)
    const isGone = member === undefined
    const access = isGone || (isSourceLost && name === from) ? lostMember(name) : accessOf(name)
    if (access === undefined) throw new Obstacle('Unreachable', `member cluster "${name}" is not connected`)
    const own = downstreamNamespace(clusterIdOf(owner.metadata.uid ?? ''), namespace)
    const isEnding = member?.metadata.deletionTimestamp !== undefined
    const isDraining = member !== undefined && memberState(member) === 'Draining'
    const { type: serviceNetwork = 'None' } = member?.spec?.serviceNetwork ?? {}
    return {
      ...access,
      name,
      namespace: adopted?.member === name ? adopted.namespace : own,
      isDraining,
      isEnding,
      isGone,
      serviceNetwork,
    }
  }
  return { move, source: sideOf(from), target: sideOf(to), upstream, signal }
}
