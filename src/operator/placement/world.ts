// Everything placement looks at, from caches: workloads, Services and namespaces of all logical clusters; members; rules.
import { cloneJson, type KubeObject } from '../../apimachinery/meta/index.ts'
import { selectorFromObject, type LabelSelectorSource } from '../../apimachinery/selector/index.ts'
import { childSignal } from '../../async/index.ts'
import { createInformer, keyFor, parseKey, type DeepReadonly, type Informer } from '../../client/index.ts'
import {
  hasCopy,
  isConditionTrue,
  logicalClusters,
  memberClusters,
  placedOn,
  placements,
  type LogicalCluster,
  type MemberCluster,
  type Placement,
} from '../../crds/index.ts'
import {
  choose,
  currentMembers,
  targetOf,
  type Candidate,
  type Decision,
  type PlacementRule,
} from '../../placement/index.ts'
import type { OperatorContext } from '../operator-context.ts'
import { CopyCount } from './copy-count.ts'
import { KeyIndex, spaceOf } from './key-index.ts'

type Kept = DeepReadonly<KubeObject>
/** What runs stays where it is meanwhile; only what is new would be placed without its tenant's wish. */
const tenantPlacementsMs = 5000

const gvrs = {
  deployments: { group: 'apps', version: 'v1', resource: 'deployments' },
  services: { group: '', version: 'v1', resource: 'services' },
  namespaces: { group: '', version: 'v1', resource: 'namespaces' },
  placements,
} as const

export class World implements AsyncDisposable {
  readonly deployments: Informer<KubeObject>
  readonly services: Informer<KubeObject>
  readonly namespaces: Informer<KubeObject>
  readonly tenantPlacements: Informer<Placement>
  readonly members: Informer<MemberCluster>
  readonly adminPlacements: Informer<Placement>
  readonly clusters: Informer<LogicalCluster>
  readonly #workloads = new KeyIndex()
  readonly #services = new KeyIndex()
  readonly #tenantRuleKeys = new KeyIndex()
  readonly #load = new CopyCount()
  /** The same of each namespace, by `CLUSTER|NAMESPACE`. */
  readonly #near = new Map<string, CopyCount>()

  constructor({ virtual, informers, log }: OperatorContext, signal: AbortSignal) {
    const client = virtual('/clusters/*')
    const all = <T extends KubeObject>(gvr: (typeof gvrs)[keyof typeof gvrs]): Informer<T> =>
      createInformer<T>({ client, gvr, allClusters: true, log, signal, transform: withoutManagedFields })
    this.deployments = all(gvrs.deployments)
    this.services = all(gvrs.services)
    this.namespaces = all(gvrs.namespaces)
    this.tenantPlacements = all<Placement>(gvrs.placements)
    this.members = informers.of<MemberCluster>(memberClusters)
    this.adminPlacements = informers.of<Placement>(placements)
    this.clusters = informers.of<LogicalCluster>(logicalClusters)
    this.deployments.onChange(({ key, before, after }) => {
      this.#workloads.set(key, after !== undefined)
      const space = spaceOf(key)
      const near = this.#near.get(space) ?? new CopyCount()
      for (const count of [this.#load, near]) count.replace(copiesOf(before), copiesOf(after))
      if (near.isEmpty) this.#near.delete(space)
      else this.#near.set(space, near)
    })
    this.services.onChange(({ key, after }) => this.#services.set(key, after !== undefined))
    this.tenantPlacements.onChange(({ key, after }) => this.#tenantRuleKeys.set(key, after !== undefined))
  }

  /** Resolves when everything needed to decide is known. Placements of tenants may not be served anywhere yet. */
  async synced(signal: AbortSignal): Promise<void> {
    const needed = [this.deployments, this.services, this.namespaces, this.members, this.adminPlacements, this.clusters]
    await Promise.all(needed.map((informer) => informer.synced(signal)))
    using waiting = childSignal(signal)
    const patience = setTimeout(() => waiting.abort(new Error('not served yet')), tenantPlacementsMs)
    try {
      await this.tenantPlacements.synced(waiting.signal)
    } catch {
      signal.throwIfAborted()
    } finally {
      clearTimeout(patience)
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(
      [this.deployments, this.services, this.namespaces, this.tenantPlacements].map((informer) =>
        informer[Symbol.asyncDispose](),
      ),
    )
  }

  workloadKeys(space: string): Iterable<string> {
    return this.#workloads.inSpace(space)
  }

  /** Keys of the workloads of one logical cluster. */
  workloadsIn(cluster: string): Iterable<string> {
    return this.#workloads.inCluster(cluster)
  }

  servicesOf(space: string): Kept[] {
    return [...this.#services.inSpace(space)].flatMap((key) => this.services.store.get(key) ?? [])
  }

  isFlat(member: string): boolean {
    return this.members.store.get(member)?.spec?.serviceNetwork?.type === 'Flat'
  }

  isReady(member: string): boolean {
    const found = this.members.store.get(member)
    return found !== undefined && isConditionTrue(found, 'Ready')
  }

  /** Where this workload should run, and why not elsewhere. Undefined: its logical cluster is not known (yet). */
  decide(key: string, workload: Kept): Decision | undefined {
    const { cluster = '', namespace = '' } = parseKey(key)
    const owner = this.clusters.store.get(cluster)
    if (owner === undefined) return undefined
    const space = this.namespaces.store.get(keyFor({ cluster, name: namespace }))
    const target = targetOf({
      object: workload.metadata.annotations,
      namespace: space?.metadata.annotations,
      placements: [this.#tenantRules(cluster, space), this.#adminRules(owner, space)],
    })
    const candidates = this.#candidates(owner)
    const own = currentMembers(placedOn(workload as KubeObject))
    return choose({ target, candidates, current: own, near: this.#neighbours(key, workload) })
  }

  /** What is new goes where its namespace is already: members with a copy of another workload of it. */
  #neighbours(key: string, workload: Kept): string[] {
    return this.#near.get(spaceOf(key))?.without(copiesOf(workload)) ?? []
  }

  #candidates({ metadata: { labels } }: DeepReadonly<LogicalCluster>): Candidate[] {
    return this.members.store.list().map((member) => ({
      name: member.metadata.name,
      ready: isConditionTrue(member, 'Ready'),
      state: member.metadata.deletionTimestamp === undefined ? (member.spec?.state ?? 'Active') : 'Draining',
      admits: matches(member.spec?.logicalClusterSelector, labels),
      load: this.#load.of(member.metadata.name),
    }))
  }

  #tenantRules(cluster: string, space: Kept | undefined): PlacementRule[] {
    return [...this.#tenantRuleKeys.inCluster(cluster)]
      .flatMap((key) => this.tenantPlacements.store.get(key) ?? [])
      .filter((rule) => matches(rule.spec?.namespaceSelector, space?.metadata.labels))
      .map(ruleOf)
  }

  #adminRules(owner: DeepReadonly<LogicalCluster>, space: Kept | undefined): PlacementRule[] {
    return this.adminPlacements.store
      .list()
      .filter(
        ({ spec }) =>
          matches(spec?.logicalClusterSelector, owner.metadata.labels) &&
          matches(spec?.namespaceSelector, space?.metadata.labels),
      )
      .map(ruleOf)
  }
}

function copiesOf(workload: Kept | undefined): string[] {
  if (workload === undefined) return []
  return Object.entries(placedOn(workload as KubeObject))
    .filter(([, copy]) => hasCopy(copy))
    .map(([member]) => member)
}

function ruleOf({ metadata, spec }: DeepReadonly<Placement>): PlacementRule {
  return {
    name: metadata.name,
    priority: spec?.priority ?? 0,
    creationTimestamp: metadata.creationTimestamp ?? '',
    ...(spec?.clusters && { clusters: spec.clusters }),
  }
}

type Selector = DeepReadonly<NonNullable<Placement['spec']>>['namespaceSelector']

/** An absent selector, and an empty one, select everything. */
export function matches(selector: Selector, labels: Readonly<Record<string, string>> | undefined): boolean {
  if (selector === undefined) return true
  return selectorFromObject(cloneJson(selector) as LabelSelectorSource).matches(labels ?? {})
}

function withoutManagedFields<T extends KubeObject>(object: T): T {
  delete object.metadata.managedFields
  return object
}
