// Everything placement reads, from the shared informers: workloads, Services, namespaces and Placements of all logical
// clusters; members, LogicalClusters and the Placements of admins.
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { childSignal } from '#async/index.ts'
import { clusterInKey, namespaceKeyOf, ObjectIndex, type DeepReadonly, type Informer } from '#client/index.ts'
import {
  inheritLabel,
  isConditionTrue,
  isPlaceable,
  labelsInTree,
  logicalClusters,
  maxLevelsBelow,
  memberClusters,
  membersWithCopy,
  memberState,
  placements,
  volumeMoves,
  workloadKinds,
  type LogicalCluster,
  type MemberCluster,
  type Placement,
  type VolumeMove,
  type WorkloadKind,
  type ServiceNetwork,
} from '#crds/index.ts'
import type { OperatorContext } from '#operator/framework/operator-context.ts'
import { isFailoverFrozen, unreachableSince, type Rebalancing } from '#placement/index.ts'
import {
  CopyCount,
  memberGroup,
  memberGroupsOf,
  MemberUsage,
  unsettledGroup,
  waitsForSiblings,
} from './member-usage.ts'
import { PlacedLimits } from './placed-limits.ts'
import { workloadKey, type WorkloadRef } from './workload-key.ts'

type CachedObject = DeepReadonly<KubeObject>

/**
 * How long to wait for Placements of tenants, which may not be served yet. Workloads that run stay where they are; only
 * a new workload could be placed against its tenant's wish.
 */
const tenantPlacementsMs = 5000

const services = { group: '', version: 'v1', resource: 'services' } as const
const claims = { group: '', version: 'v1', resource: 'persistentvolumeclaims' } as const
const budgets = { group: 'policy', version: 'v1', resource: 'poddisruptionbudgets' } as const
const namespaces = { group: '', version: 'v1', resource: 'namespaces' } as const

export interface WorkloadInputs {
  readonly kind: WorkloadKind
  readonly informer: Informer<KubeObject>
  readonly byNamespace: ObjectIndex
  readonly byCluster: ObjectIndex
  /** The workloads by group, as memberGroupsOf gives them. */
  readonly byMember: ObjectIndex
  /** By namespace: the workloads that wait for others of their namespace. */
  readonly waiting: ObjectIndex
}

export class PlacementInputs implements Disposable {
  readonly workloads: readonly WorkloadInputs[]
  readonly services: Informer<KubeObject>
  readonly claims: Informer<KubeObject>
  readonly namespaces: Informer<KubeObject>
  readonly tenantPlacements: Informer<Placement>
  readonly members: Informer<MemberCluster>
  readonly adminPlacements: Informer<Placement>
  readonly clusters: Informer<LogicalCluster>
  readonly volumeMoves: Informer<VolumeMove>
  readonly #movesByClaim: ObjectIndex<VolumeMove>
  readonly #informers: ReadonlyMap<WorkloadKind, Informer<KubeObject>>
  readonly #servicesByNamespace: ObjectIndex
  readonly #claimsByNamespace: ObjectIndex
  readonly #budgets: Informer<KubeObject>
  readonly #budgetsByNamespace: ObjectIndex
  readonly #placementsByCluster: ObjectIndex<Placement>
  /** Copies of all workloads by member. */
  readonly #load = new CopyCount()
  /** Copies by member, for each namespace. */
  readonly #loadByNamespace = new Map<string, CopyCount>()
  /** Copies by member, for each logical cluster. */
  readonly #loadByCluster = new Map<string, CopyCount>()
  /** Requests of workloads by member. */
  readonly usage = new MemberUsage((cluster, requests, sign) =>
    this.placedLimits.requestsChanged(cluster, requests, sign),
  )
  /** Limits of these requests by logical cluster. */
  readonly placedLimits: PlacedLimits
  /** By key of the workload (workloadKey): the move for balance that its next reconcile begins. */
  readonly rebalancing = new Map<string, Rebalancing>()
  /** By key of the workload: why its next reconcile divides it again, for people. */
  readonly dividedAgain = new Map<string, string>()
  readonly #unreachable = new Set<string>()
  #memberCount = 0
  readonly #assumedStates = new Map<string, 'Active' | 'Cordoned' | 'Draining'>()
  readonly #unsubscribe: (() => void)[]

  constructor({ informers, tenantInformers }: Pick<OperatorContext, 'informers' | 'tenantInformers'>) {
    this.workloads = workloadKinds.map((kind) => {
      const informer = tenantInformers.of(kind.gvr)
      const byCluster = new ObjectIndex(informer, (key) => [clusterInKey(key)])
      const byMember = new ObjectIndex(informer, (_, workload) => memberGroupsOf(workload))
      const waiting = new ObjectIndex(informer, (key, workload) =>
        waitsForSiblings(workload) ? [namespaceKeyOf(key)] : [],
      )
      return { kind, informer, byNamespace: tenantInformers.byNamespace(kind.gvr), byCluster, byMember, waiting }
    })
    this.#informers = new Map(this.workloads.map(({ kind, informer }) => [kind, informer]))
    this.services = tenantInformers.of(services)
    this.#servicesByNamespace = tenantInformers.byNamespace(services)
    this.claims = tenantInformers.of(claims)
    this.#claimsByNamespace = tenantInformers.byNamespace(claims)
    this.#budgets = tenantInformers.of(budgets)
    this.#budgetsByNamespace = tenantInformers.byNamespace(budgets)
    this.namespaces = tenantInformers.of(namespaces)
    this.tenantPlacements = tenantInformers.of<Placement>(placements)
    this.#placementsByCluster = new ObjectIndex(this.tenantPlacements, (key) => [clusterInKey(key)])
    this.members = informers.of<MemberCluster>(memberClusters)
    this.adminPlacements = informers.of<Placement>(placements)
    this.clusters = informers.of<LogicalCluster>(logicalClusters)
    this.placedLimits = new PlacedLimits(this.clusters.store, (cluster) => this.usage.requestedBy(cluster))
    this.volumeMoves = informers.of<VolumeMove>(volumeMoves)
    this.#movesByClaim = new ObjectIndex(this.volumeMoves, (_, { spec }) => [spec.claimUid])
    this.#unsubscribe = this.workloads.map(({ kind, informer }) =>
      informer.onChange(({ key, before, after }) => {
        this.#countCopies(key, before, after)
        this.usage.observe(workloadKey(kind, key), after)
      }),
    )
    this.#unsubscribe.push(
      this.clusters.onChange(({ before, after }) => this.placedLimits.clusterChanged(before, after)),
    )
    const unsubscribe = this.members.onChange(({ key, before, after }) => {
      this.#memberCount += Number(after !== undefined) - Number(before !== undefined)
      if (after !== undefined && unreachableSince(after) !== undefined) this.#unreachable.add(key)
      else this.#unreachable.delete(key)
    })
    this.#unsubscribe.push(unsubscribe)
  }

  /**
   * Resolves when everything that decisions need is known; waits for Placements of tenants a limited time only. Without
   * the VolumeMoves, workloads wait where they are.
   */
  async synced(signal: AbortSignal): Promise<void> {
    const workloads = this.workloads.map(({ informer }) => informer)
    const ofTenants = [...workloads, this.services, this.claims, this.#budgets, this.namespaces]
    const needed = [...ofTenants, this.members, this.adminPlacements, this.clusters]
    await Promise.all(needed.map((informer) => informer.synced(signal)))
    using waiting = childSignal(signal)
    const timer = setTimeout(() => waiting.abort(new Error('not served yet')), tenantPlacementsMs)
    try {
      await this.tenantPlacements.synced(waiting.signal)
    } catch {
      signal.throwIfAborted()
    } finally {
      clearTimeout(timer)
    }
  }

  [Symbol.dispose](): void {
    for (const unsubscribe of this.#unsubscribe) unsubscribe()
    for (const { byCluster, byMember, waiting } of this.workloads)
      for (const index of [byCluster, byMember, waiting]) index[Symbol.dispose]()
    this.#placementsByCluster[Symbol.dispose]()
    this.#movesByClaim[Symbol.dispose]()
  }

  workload({ kind, objectKey }: WorkloadRef): CachedObject | undefined {
    const found = this.#informers.get(kind)?.store.get(objectKey)
    return found !== undefined && isPlaceable(found) ? found : undefined
  }

  /**
   * Keys (workloadKey) of the workloads of a namespace, given as `CLUSTER|NAMESPACE`, that are `wanted`; default all.
   */
  *workloadKeysInNamespace(
    namespaceKey: string,
    wanted: (workload: CachedObject) => boolean = () => true,
  ): Generator<string> {
    for (const { kind, byNamespace, informer } of this.workloads)
      for (const key of byNamespace.keysOf(namespaceKey)) {
        const workload = informer.store.get(key)
        if (workload !== undefined && wanted(workload) && isPlaceable(workload)) yield workloadKey(kind, key)
      }
  }

  /** Keys of the workloads of a namespace that wait for others of it to serve elsewhere. */
  *workloadKeysWaitingIn(namespaceKey: string): Generator<string> {
    for (const { kind, waiting } of this.workloads)
      for (const key of waiting.keysOf(namespaceKey)) yield workloadKey(kind, key)
  }

  *workloadKeysInCluster(cluster: string): Generator<string> {
    for (const { kind, byCluster, informer } of this.workloads)
      for (const key of byCluster.keysOf(cluster)) if (isOurs(informer, key)) yield workloadKey(kind, key)
  }

  /**
   * Keys of the workloads whose decision a member can change: with something there, and all that are not settled
   * because they are moving, held or nowhere.
   */
  *workloadKeysConcernedBy(member: string): Generator<string> {
    for (const { kind, byMember } of this.workloads) {
      const keys = new Set([...byMember.keysOf(memberGroup(member)), ...byMember.keysOf(unsettledGroup)])
      for (const key of keys) yield workloadKey(kind, key)
    }
  }

  /** The workloads of a namespace, given as `CLUSTER|NAMESPACE`, that members do not make themselves. */
  *workloadsInNamespace(namespaceKey: string): Generator<CachedObject> {
    for (const { byNamespace } of this.workloads)
      for (const workload of byNamespace.of(namespaceKey)) if (isPlaceable(workload)) yield workload
  }

  servicesIn(namespaceKey: string): CachedObject[] {
    return [...this.#servicesByNamespace.of(namespaceKey)]
  }

  claimsIn(namespaceKey: string): Iterable<CachedObject> {
    return this.#claimsByNamespace.of(namespaceKey)
  }

  /** The moves of the claim with this uid, those that are over included. */
  movesOfClaim(uid: string): Iterable<DeepReadonly<VolumeMove>> {
    return this.#movesByClaim.of(uid)
  }

  /** PodDisruptionBudgets. */
  budgetsIn(namespaceKey: string): Iterable<CachedObject> {
    return this.#budgetsByNamespace.of(namespaceKey)
  }

  /** The labels of a logical cluster and its ancestors, which rules of admins select. */
  labelsOf(cluster: string): Readonly<Record<string, string>> | undefined {
    const find = (name: string) => treeFactsOf(this.clusters.store.get(name))
    const own = find(cluster)
    return own && labelsInTree(own, find)
  }

  /** The Placements that ancestors let hold below: they bound the logical cluster as those of admins do. */
  *inheritedPlacements(cluster: string): Generator<DeepReadonly<Placement>> {
    for (const above of this.#ancestorsOf(cluster))
      for (const placement of this.tenantPlacementsIn(above))
        if (placement.metadata.labels?.[inheritLabel] === 'true') yield withoutSelector(placement)
  }

  /** The names of the logical clusters below this one, and of itself. */
  *subtreeOf(cluster: string): Generator<string> {
    yield cluster
    if (!this.#hasTree) return
    for (const { metadata } of this.clusters.store.list())
      if (metadata.name !== cluster && [...this.#ancestorsOf(metadata.name)].includes(cluster)) yield metadata.name
  }

  /** The ancestors, the parent first; as many as a tree can have. */
  *#ancestorsOf(cluster: string): Generator<string> {
    let next = this.clusters.store.get(cluster)?.spec?.parentRef?.name
    for (let level = 0; next !== undefined && level < maxLevelsBelow; level++) {
      yield next
      next = this.clusters.store.get(next)?.spec?.parentRef?.name
    }
  }

  get #hasTree(): boolean {
    return this.clusters.store.list().some(({ spec }) => spec?.parentRef !== undefined)
  }

  tenantPlacementsIn(cluster: string): Iterable<DeepReadonly<Placement>> {
    return this.#placementsByCluster.of(cluster)
  }

  isKnown(member: string): boolean {
    return this.members.store.get(member) !== undefined
  }

  /** How its pods reach those of other members. */
  networkOf(member: string): ServiceNetwork {
    return this.members.store.get(member)?.spec?.serviceNetwork?.type ?? 'None'
  }

  isReady(member: string): boolean {
    const found = this.members.store.get(member)
    return found !== undefined && isConditionTrue(found, 'Ready')
  }

  /** An admin's wish for the member. */
  stateOf(member: DeepReadonly<MemberCluster>): 'Active' | 'Cordoned' | 'Draining' {
    return this.#assumedStates.get(member.metadata.name) ?? memberState(member)
  }

  /** Decisions are made as if the member were in this state: for a preview, which writes nothing. */
  assumeState(member: string, state: 'Active' | 'Cordoned' | 'Draining'): void {
    this.#assumedStates.set(member, state)
  }

  /** Keys of the workloads with something in the member, or that are to have something there. */
  *workloadKeysIn(member: string): Generator<string> {
    for (const { kind, byMember } of this.workloads)
      for (const key of byMember.keysOf(memberGroup(member))) yield workloadKey(kind, key)
  }

  /** Number of copies of the logical cluster that are placed on the member. */
  loadOfCluster(cluster: string, member: string): number {
    return this.#loadByCluster.get(cluster)?.of(member) ?? 0
  }

  /** Whether the member does not answer, and somebody has made sure that nothing runs there. */
  isFenced(member: string): boolean {
    const found = this.members.store.get(member)
    return found?.spec?.fenced === true && unreachableSince(found) !== undefined
  }

  /** Members that do not answer. */
  get unreachable(): string[] {
    return [...this.#unreachable]
  }

  /** Whether failover has stopped, because too many members do not answer. */
  get isFailoverFrozen(): boolean {
    return isFailoverFrozen({ unreachable: this.#unreachable.size, all: this.#memberCount })
  }

  /** Number of copies that are placed on the member. */
  loadOf(member: string): number {
    return this.#load.of(member)
  }

  /** Members with a copy of another workload of the namespace. */
  membersOfOthers(namespaceKey: string, workload: CachedObject): string[] {
    return this.#loadByNamespace.get(namespaceKey)?.without(copiesOf(workload)) ?? []
  }

  #countCopies(key: string, before: CachedObject | undefined, after: CachedObject | undefined): void {
    const [left, taken] = [copiesOf(before), copiesOf(after)]
    this.#load.replace(left, taken)
    replaceIn(this.#loadByNamespace, namespaceKeyOf(key), left, taken)
    replaceIn(this.#loadByCluster, clusterInKey(key), left, taken)
  }
}

/** Whether kcp places the object: pods and Jobs that members made are in the same informers. */
function isOurs({ store }: Informer<KubeObject>, key: string): boolean {
  const found = store.get(key)
  return found !== undefined && isPlaceable(found)
}

function replaceIn(
  counts: Map<string, CopyCount>,
  group: string,
  before: readonly string[],
  after: readonly string[],
): void {
  const count = counts.get(group) ?? new CopyCount()
  count.replace(before, after)
  if (count.isEmpty) counts.delete(group)
  else counts.set(group, count)
}

function copiesOf(workload: CachedObject | undefined): string[] {
  return workload === undefined ? [] : membersWithCopy(workload as KubeObject)
}

function treeFactsOf(cluster: DeepReadonly<LogicalCluster> | undefined) {
  return cluster && { labels: cluster.metadata.labels, parent: cluster.spec?.parentRef?.name }
}

/** A tenant's Placement selects namespaces only. */
function withoutSelector(placement: DeepReadonly<Placement>): DeepReadonly<Placement> {
  const { logicalClusterSelector: _, ...spec } = placement.spec ?? {}
  return { ...placement, spec }
}
