// Workloads by the member that has something of them: by the scheduler's decision or by the finalizer of the member's
// syncer. An index on the shared informers, so that a reconcile of a member does not read the workloads of all logical
// clusters.
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { addAmounts, listOf, type Amounts, type Quantity } from '#apimachinery/quantity/index.ts'
import {
  clusterInKey,
  keyFor,
  namespaceKeyOf,
  ObjectIndex,
  parseKey,
  type DeepReadonly,
  type Informer,
  type SharedInformers,
} from '#client/index.ts'
import {
  finalizingMembers,
  membersWithCopy,
  placedOn,
  requestsOf,
  workloadKinds,
  type VolumeMove,
} from '#crds/index.ts'
import { claimsWithData, endsWithPod, memberOfClaim } from '#placement/index.ts'
import type { ClaimThere, WorkloadThere } from './drain-progress.ts'

const claims = { group: '', version: 'v1', resource: 'persistentvolumeclaims' } as const

export class PlacedWorkloads implements Disposable {
  readonly #kinds: readonly { readonly informer: Informer<KubeObject>; readonly byMember: ObjectIndex }[]
  readonly #claims: Informer<KubeObject>
  readonly #claimsByMember: ObjectIndex
  readonly #moves: () => readonly DeepReadonly<VolumeMove>[]

  /** `informers`: over the logical clusters; `moves`: the VolumeMoves of the installation. */
  constructor(informers: SharedInformers, moves: () => readonly DeepReadonly<VolumeMove>[]) {
    this.#moves = moves
    this.#kinds = workloadKinds.map(({ gvr }) => {
      const informer = informers.of(gvr)
      return { informer, byMember: new ObjectIndex(informer, (_, workload) => membersOf(workload)) }
    })
    this.#claims = informers.of(claims)
    this.#claimsByMember = new ObjectIndex(this.#claims, (_, claim) => memberOfClaim(claim) ?? [])
  }

  /** `CLUSTER/NAMESPACE/NAME` of each workload with something in the member, for people. Waits for the first lists. */
  async of(member: string, signal: AbortSignal): Promise<string[]> {
    await Promise.all(this.#kinds.map(({ informer }) => informer.synced(signal)))
    return this.#kinds.flatMap(({ byMember }) => [...byMember.keysOf(member)].map(pathOf))
  }

  /** The workloads with something in the member. Call it after `of`, which waits for the first lists. */
  workloadsIn(member: string): WorkloadThere[] {
    return this.#kinds.flatMap(({ informer, byMember }) =>
      [...byMember.keysOf(member)].flatMap((key) => {
        const workload = informer.store.get(key)
        return workload === undefined ? [] : [{ cluster: clusterInKey(key), workload }]
      }),
    )
  }

  /**
   * The claims with data in the member that none of its workloads uses, without those of ephemeral volumes. Waits for the
   * first lists.
   */
  async unusedClaimsIn(member: string, signal: AbortSignal): Promise<ClaimThere[]> {
    await this.#claims.synced(signal)
    const found = [...this.#claimsByMember.keysOf(member)].flatMap((key) => {
      const claim = this.#claims.store.get(key)
      return claim === undefined || endsWithPod(claim) ? [] : [{ key, claim }]
    })
    if (found.length === 0) return []
    const workloads = Map.groupBy(this.workloadsIn(member), ({ cluster, workload }) =>
      keyFor({ cluster, name: workload.metadata.namespace ?? '' }),
    )
    const used = new Set<DeepReadonly<KubeObject>>()
    for (const [namespaceKey, inNamespace] of Map.groupBy(found, ({ key }) => namespaceKeyOf(key))) {
      const claims = inNamespace.map(({ claim }) => claim)
      for (const { workload } of workloads.get(namespaceKey) ?? [])
        for (const claim of claimsWithData(workload, claims)) used.add(claim)
    }
    const moves = new Map(
      this.#moves()
        .filter(({ spec, status }) => spec.from === member && status?.phase !== 'Moved')
        .map((move) => [move.spec.claimUid, move]),
    )
    return found
      .filter(({ claim }) => !used.has(claim))
      .map(({ key, claim }) => {
        const move = moves.get(claim.metadata.uid ?? '')
        return { cluster: clusterInKey(key), claim, ...(move && { move }) }
      })
  }

  /** The moves of which the claim has no other way but into the member, unless the member is removed. */
  arrivingIn(member: string): readonly DeepReadonly<VolumeMove>[] {
    return this.#moves().filter(({ spec, status }) => spec.to === member && status?.phase === 'Binding')
  }

  /** Requests of the pods of these workloads, as a ResourceList. Waits for the first lists. */
  async requestedIn(member: string, signal: AbortSignal): Promise<Record<string, string>> {
    await Promise.all(this.#kinds.map(({ informer }) => informer.synced(signal)))
    const sum = new Map<string, Quantity>()
    for (const { byMember } of this.#kinds)
      for (const workload of byMember.of(member)) addAmounts(sum, requestsIn(member, workload))
    return listOf(sum)
  }

  [Symbol.dispose](): void {
    for (const { byMember } of this.#kinds) byMember[Symbol.dispose]()
    this.#claimsByMember[Symbol.dispose]()
  }
}

function requestsIn(member: string, workload: DeepReadonly<KubeObject>): Amounts {
  const { replicas, start } = placedOn(workload as KubeObject)[member] ?? {}
  return requestsOf(workload, start === undefined ? replicas : undefined)
}

/** Members that have, or are to have, something of the workload. */
export function membersOf(workload: DeepReadonly<KubeObject>): string[] {
  return [...new Set([...finalizingMembers(workload), ...membersWithCopy(workload as KubeObject)])]
}

function pathOf(key: string): string {
  const { cluster = '', namespace = '', name } = parseKey(key)
  return `${cluster}/${namespace}/${name}`
}

/** `NAMESPACE/NAME`, for people. */
export function nameOf({ metadata: { namespace = '', name = '' } }: DeepReadonly<KubeObject>): string {
  return `${namespace}/${name}`
}
