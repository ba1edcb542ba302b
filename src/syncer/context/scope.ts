// One namespace of a logical cluster with its namespace in the member, and one reconcile in it.
import type { ClusterId } from '#apimachinery/meta/index.ts'
import { keyFor, parseKey, type KubeClient } from '#client/index.ts'
import {
  adoptedNamespace,
  downstreamNamespace,
  namespaceSuffix,
  parseDownstreamNamespace,
  type AdoptedNamespace,
} from '#crds/index.ts'
import type { OwnerCluster } from '#syncer/transform/down.ts'
import { locatorOf } from './locator.ts'
import type { NamespaceView } from './namespace-view.ts'
import type { CachedObject, ResourceName } from './resources.ts'
import type { SyncContext } from './sync-context.ts'
import type { SyncedMember } from './synced-member.ts'
import { requestKindOf, type ReconcileRequest, type RequestKind } from './request.ts'

/** A namespace of a logical cluster, and what is in it on both sides. Each question reads the caches again. */
export class Scope {
  readonly context: SyncContext
  readonly cluster: string
  readonly namespace: string
  #memberNamespace: string | undefined

  constructor(context: SyncContext, { cluster, namespace }: { readonly cluster: string; readonly namespace: string }) {
    this.context = context
    this.cluster = cluster
    this.namespace = namespace
  }

  /** The scope of a namespace in the member; undefined if no known logical cluster has it. */
  static ofMember(context: SyncContext, memberNamespace: string): Scope | undefined {
    const parsed = parseDownstreamNamespace(memberNamespace)
    const cluster = parsed === undefined ? undefined : context.upstream.ids.nameOf(parsed.clusterId)
    if (parsed === undefined || cluster === undefined) return adoptedScope(context, memberNamespace)
    const { suffix, isShortened } = parsed
    const whole = isShortened ? wholeName(context, memberNamespace, cluster, suffix) : undefined
    return new Scope(context, { cluster, namespace: whole ?? suffix })
  }

  get member(): SyncedMember {
    return this.context.member
  }

  /** Undefined while the id of the logical cluster is not known. */
  get clusterId(): ClusterId | undefined {
    return this.context.upstream.ids.idOf(this.cluster)
  }

  /** The name of the namespace in the member; undefined while the id of the logical cluster is not known. */
  get memberNamespace(): string | undefined {
    if (this.#memberNamespace === undefined) {
      const id = this.clusterId
      if (id !== undefined) this.#memberNamespace = this.adopted?.namespace ?? downstreamNamespace(id, this.namespace)
    }
    return this.#memberNamespace
  }

  /** The record of the adoption of the namespace from this member; undefined if it was not adopted from it. */
  get adopted(): AdoptedNamespace | undefined {
    const record = adoptedNamespace(this.upstreamNamespace)
    return record?.member === this.member.name ? record : undefined
  }

  /** While the namespace is adopted or given back, only the operator acts in it. */
  get isHeld(): boolean {
    const { adopted } = this
    return adopted !== undefined && adopted.state !== 'Adopted'
  }

  /** What the namespace has in the member by the scheduler's decisions. */
  get view(): NamespaceView {
    return this.context.views.of(this.cluster, this.namespace)
  }

  /** Reads and writes the logical cluster. */
  get upstreamClient(): KubeClient {
    return this.context.upstream.client(this.cluster)
  }

  /** True if the namespace exists in the member and was created for this logical cluster. */
  get isOurs(): boolean {
    const id = this.clusterId
    return id !== undefined && locatorOf(this.liveNamespace)?.clusterId === id
  }

  get upstreamNamespace(): CachedObject | undefined {
    const key = keyFor({ cluster: this.cluster, name: this.namespace })
    return this.context.upstream.informers.namespaces.store.get(key)
  }

  /** The namespace in the member. */
  get liveNamespace(): CachedObject | undefined {
    const name = this.memberNamespace
    return name === undefined ? undefined : this.context.caches.namespaces.store.get(keyFor({ name }))
  }

  upstream(resource: ResourceName, name: string): CachedObject | undefined {
    const { cluster, namespace } = this
    return this.context.upstream.informers[resource].store.get(keyFor({ cluster, namespace, name }))
  }

  /** The object in the member. */
  live(resource: ResourceName, name: string): CachedObject | undefined {
    const namespace = this.memberNamespace
    return namespace === undefined ? undefined : this.context.caches[resource].store.get(keyFor({ namespace, name }))
  }

  allUpstream(resource: ResourceName): Iterable<CachedObject> {
    return this.context.upstreamIn(resource, this.cluster, this.namespace)
  }

  /** All objects in the member. */
  allLive(resource: ResourceName): Iterable<CachedObject> {
    const namespace = this.memberNamespace
    return namespace === undefined ? [] : this.context.downstreamIn(resource, namespace)
  }

  /** The objects in the member that `owner`, an object of the member, controls. */
  controlledBy(
    resource: Parameters<SyncContext['controlledBy']>[0],
    owner: { readonly kind: string; readonly name: string },
  ): Iterable<CachedObject> {
    const namespace = this.memberNamespace
    return namespace === undefined ? [] : this.context.controlledBy(resource, namespace, owner)
  }

  /** The upstream ReplicaSet of a ReplicaSet with this name in the member. */
  historyReportedAs(name: string): CachedObject | undefined {
    return this.context.historyReportedAs(this.cluster, this.namespace, name)
  }

  /** Asks for a reconcile in this namespace. */
  enqueue(kind: RequestKind, name: string | undefined): void {
    if (name !== undefined) this.context.enqueue({ kind, cluster: this.cluster, namespace: this.namespace, name })
  }

  /** Asks for the reconcile in which an object of this resource is copied into the member. */
  enqueueCopy(resource: ResourceName, name: string | undefined): void {
    this.enqueue(requestKindOf(resource), name)
  }

  /** Asks for the reconcile of the namespace itself. */
  enqueueNamespace(): void {
    this.enqueue('namespace', this.namespace)
  }
}

/** The scope of a namespace that was adopted from the member; undefined if no logical cluster has adopted it. */
function adoptedScope(context: SyncContext, memberNamespace: string): Scope | undefined {
  for (const key of context.upstream.adoptedNamespaces.keysOf(`${context.member.name}/${memberNamespace}`)) {
    const { cluster = '', name } = parseKey(key)
    return new Scope(context, { cluster, namespace: name })
  }
  return undefined
}

/** The upstream name of a namespace that has a shortened name in the member; undefined: it only looks shortened. */
function wholeName(context: SyncContext, memberNamespace: string, cluster: string, suffix: string): string | undefined {
  const known = locatorOf(context.caches.namespaces.store.get(keyFor({ name: memberNamespace })))?.name
  if (known !== undefined) return known
  // Our cache does not have the namespace yet.
  for (const namespace of context.views.namespacesOf(cluster))
    if (namespace !== suffix && namespaceSuffix(namespace) === suffix) return namespace
  return undefined
}

/** The work on one key of the queue: what it is about on both sides, and the signal that ends it. */
export class Reconcile extends Scope implements ReconcileRequest {
  readonly kind: RequestKind
  readonly name: string
  readonly signal: AbortSignal

  constructor(context: SyncContext, { kind, name, ...where }: ReconcileRequest, signal: AbortSignal) {
    super(context, where)
    this.kind = kind
    this.name = name
    this.signal = signal
  }

  /** Name and namespace upstream. */
  get ref(): { readonly namespace: string; readonly name: string } {
    return { namespace: this.namespace, name: this.name }
  }

  /** A step of this reconcile that is about another object of the namespace. */
  on(kind: RequestKind, name = this.name): Reconcile {
    return new Reconcile(this.context, { kind, cluster: this.cluster, namespace: this.namespace, name }, this.signal)
  }

  /**
   * Whether the report is not to be written yet, because the next one will soon replace it. A reconcile of `kind` is
   * then queued for the time when the report must be written.
   */
  isPostponed(report: string, kind: RequestKind = this.kind): boolean {
    const { context, cluster, namespace, name } = this
    const waitMs = context.passing.wait(report)
    if (waitMs !== undefined) context.enqueueAfter({ kind, cluster, namespace, name }, waitMs)
    return waitMs !== undefined
  }
}

/** The logical cluster as transforms need it. */
export function ownerCluster({ cluster, member, adopted }: Scope, clusterId: ClusterId): OwnerCluster {
  const { annotationPrefixes, name } = member
  return {
    cluster,
    clusterId,
    ...(adopted && { adoptedFrom: { member: name, namespace: adopted.namespace } }),
    ...(annotationPrefixes && { annotationPrefixes }),
  }
}
