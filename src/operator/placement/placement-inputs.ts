// Everything placement reads, from the shared informers: workloads, Services, namespaces and Placements of all logical
// clusters; members, LogicalClusters and the Placements of admins.
import { cloneJson, type KubeObject } from '../../apimachinery/meta/index.ts'
import { selectorFromObject, type LabelSelectorSource } from '../../apimachinery/selector/index.ts'
import { childSignal } from '../../async/index.ts'
import { clusterInKey, namespaceKeyOf, ObjectIndex, type DeepReadonly, type Informer } from '../../client/index.ts'
import {
  isConditionTrue,
  logicalClusters,
  memberClusters,
  membersWithCopy,
  placements,
  workloadKinds,
  type LogicalCluster,
  type MemberCluster,
  type Placement,
  type WorkloadKind,
} from '../../crds/index.ts'
import type { OperatorContext } from '../framework/operator-context.ts'
import { CopyCount } from './copy-count.ts'
import { workloadKey, type WorkloadRef } from './workload-key.ts'

type CachedObject = DeepReadonly<KubeObject>

/**
 * How long to wait for Placements of tenants, which may not be served yet. Workloads that run stay where they are; only a
 * new workload could be placed against its tenant's wish.
 */
const tenantPlacementsMs = 5000

const services = { group: '', version: 'v1', resource: 'services' } as const
const namespaces = { group: '', version: 'v1', resource: 'namespaces' } as const

export interface WorkloadInputs {
  readonly kind: WorkloadKind
  readonly informer: Informer<KubeObject>
  readonly byNamespace: ObjectIndex
  readonly byCluster: ObjectIndex
}

export class PlacementInputs implements Disposable {
  readonly workloads: readonly WorkloadInputs[]
  readonly services: Informer<KubeObject>
  readonly namespaces: Informer<KubeObject>
  readonly tenantPlacements: Informer<Placement>
  readonly members: Informer<MemberCluster>
  readonly adminPlacements: Informer<Placement>
  readonly clusters: Informer<LogicalCluster>
  readonly #informers: ReadonlyMap<WorkloadKind, Informer<KubeObject>>
  readonly #servicesByNamespace: ObjectIndex
  readonly #placementsByCluster: ObjectIndex<Placement>
  /** Copies of all workloads by member. */
  readonly #load = new CopyCount()
  /** The same for each namespace. */
  readonly #loadByNamespace = new Map<string, CopyCount>()
  readonly #unsubscribe: (() => void)[]

  constructor({ informers, tenantInformers }: Pick<OperatorContext, 'informers' | 'tenantInformers'>) {
    this.workloads = workloadKinds.map((kind) => {
      const informer = tenantInformers.of(kind.gvr)
      const byCluster = new ObjectIndex(informer, (key) => [clusterInKey(key)])
      return { kind, informer, byNamespace: tenantInformers.byNamespace(kind.gvr), byCluster }
    })
    this.#informers = new Map(this.workloads.map(({ kind, informer }) => [kind, informer]))
    this.services = tenantInformers.of(services)
    this.#servicesByNamespace = tenantInformers.byNamespace(services)
    this.namespaces = tenantInformers.of(namespaces)
    this.tenantPlacements = tenantInformers.of<Placement>(placements)
    this.#placementsByCluster = new ObjectIndex(this.tenantPlacements, (key) => [clusterInKey(key)])
    this.members = informers.of<MemberCluster>(memberClusters)
    this.adminPlacements = informers.of<Placement>(placements)
    this.clusters = informers.of<LogicalCluster>(logicalClusters)
    this.#unsubscribe = this.workloads.map(({ informer }) =>
      informer.onChange(({ key, before, after }) => this.#countCopies(namespaceKeyOf(key), before, after)),
    )
  }

  /** Resolves when everything that decisions need is known; waits for Placements of tenants a limited time only. */
  async synced(signal: AbortSignal): Promise<void> {
    const workloads = this.workloads.map(({ informer }) => informer)
    const needed = [...workloads, this.services, this.namespaces, this.members, this.adminPlacements, this.clusters]
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
    for (const { byCluster } of this.workloads) byCluster[Symbol.dispose]()
    this.#placementsByCluster[Symbol.dispose]()
  }

  workload({ kind, objectKey }: WorkloadRef): CachedObject | undefined {
    return this.#informers.get(kind)?.store.get(objectKey)
  }

  /** Keys (workloadKey) of the workloads of a namespace, given as `CLUSTER|NAMESPACE`. */
  *workloadKeysInNamespace(namespaceKey: string): Generator<string> {
    for (const { kind, byNamespace } of this.workloads)
      for (const key of byNamespace.keysOf(namespaceKey)) yield workloadKey(kind, key)
  }

  *workloadKeysInCluster(cluster: string): Generator<string> {
    for (const { kind, byCluster } of this.workloads)
      for (const key of byCluster.keysOf(cluster)) yield workloadKey(kind, key)
  }

  *allWorkloadKeys(): Generator<string> {
    for (const { kind, informer } of this.workloads)
      for (const key of informer.store.keys()) yield workloadKey(kind, key)
  }

  servicesIn(namespaceKey: string): CachedObject[] {
    return [...this.#servicesByNamespace.of(namespaceKey)]
  }

  tenantPlacementsIn(cluster: string): Iterable<DeepReadonly<Placement>> {
    return this.#placementsByCluster.of(cluster)
  }

  isKnown(member: string): boolean {
    return this.members.store.get(member) !== undefined
  }

  isFlat(member: string): boolean {
    return this.members.store.get(member)?.spec?.serviceNetwork?.type === 'Flat'
  }

  isReady(member: string): boolean {
    const found = this.members.store.get(member)
    return found !== undefined && isConditionTrue(found, 'Ready')
  }

  /** Copies that are placed on the member. */
  loadOf(member: string): number {
    return this.#load.of(member)
  }

  /** Members with a copy of another workload of the namespace. */
  membersOfOthers(namespaceKey: string, workload: CachedObject): string[] {
    return this.#loadByNamespace.get(namespaceKey)?.without(copiesOf(workload)) ?? []
  }

  #countCopies(namespaceKey: string, before: CachedObject | undefined, after: CachedObject | undefined): void {
    const inNamespace = this.#loadByNamespace.get(namespaceKey) ?? new CopyCount()
    for (const count of [this.#load, inNamespace]) count.replace(copiesOf(before), copiesOf(after))
    if (inNamespace.isEmpty) this.#loadByNamespace.delete(namespaceKey)
    else this.#loadByNamespace.set(namespaceKey, inNamespace)
  }
}

function copiesOf(workload: CachedObject | undefined): string[] {
  return workload === undefined ? [] : membersWithCopy(workload as KubeObject)
}

type Selector = DeepReadonly<NonNullable<Placement['spec']>>['namespaceSelector']

/** Whether labels match a selector. An absent or empty selector matches everything. */
export function matches(selector: Selector, labels: Readonly<Record<string, string>> | undefined): boolean {
  if (selector === undefined) return true
  return selectorFromObject(cloneJson(selector) as LabelSelectorSource).matches(labels ?? {})
}
