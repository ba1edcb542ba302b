// The views of all namespaces for one member. A view is kept, and updated by changes, while the member has something of
// the namespace; most members have nothing of most namespaces.
import type { WorkloadResource } from '#crds/index.ts'
import { NamespaceView, type ContentChange, type NamespaceContent } from './namespace-view.ts'
import type { SyncedMember } from './synced-member.ts'

export interface ViewChanges {
  /** References that were added or removed. */
  readonly references: Iterable<string>
  /** Namespaces whose Services the member now needs, or no longer needs. */
  readonly namespaces: Iterable<string>
}

/** The resources whose objects decide what of their namespace a member gets. */
export type ContentResource = WorkloadResource | 'ingresses' | 'persistentvolumeclaims' | 'serviceaccounts'

type ContentOf = (cluster: string, namespace: string) => NamespaceContent

const none: ReadonlySet<string> = new Set()

export class Views {
  readonly #member: SyncedMember
  readonly #contentOf: ContentOf
  /** Namespaces of a logical cluster, including those without workloads. */
  readonly #namespaces: (cluster: string) => Iterable<string>
  readonly #views = new Map<string, NamespaceView>()
  /** By logical cluster: namespaces with workloads in the member. */
  readonly #present = new Map<string, Set<string>>()

  constructor(member: SyncedMember, contentOf: ContentOf, namespaces: (cluster: string) => Iterable<string>) {
    this.#member = member
    this.#contentOf = contentOf
    this.#namespaces = namespaces
  }

  of(cluster: string, namespace: string): NamespaceView {
    const key = `${cluster}|${namespace}`
    let view = this.#views.get(key)
    if (view === undefined) {
      view = new NamespaceView(this.#contentOf(cluster, namespace), this.#member.name, () => this.#reaches(cluster))
      if (view.needed) this.#views.set(key, view)
    }
    return view
  }

  /** Number of views that are kept. */
  get size(): number {
    return this.#views.size
  }

  /** A deleted namespace needs no view. */
  forget(cluster: string, namespace: string): void {
    this.#views.delete(`${cluster}|${namespace}`)
  }

  namespacesOf(cluster: string): Iterable<string> {
    return this.#namespaces(cluster)
  }

  /** Namespaces of a logical cluster with workloads in the member. */
  presentIn(cluster: string): ReadonlySet<string> {
    return this.#present.get(cluster) ?? none
  }

  /** Updates the view of the namespace with a change of one of its objects, and returns what else changes by that. */
  change(cluster: string, namespace: string, resource: ContentResource, change: ContentChange): ViewChanges {
    const known = this.#views.get(`${cluster}|${namespace}`)
    const view = known ?? this.of(cluster, namespace)
    const before = known === undefined ? undefined : factsOf(view)
    const reachedBefore = this.#reaches(cluster)
    const changed = changeIn(view, resource, change)
    this.#count(cluster, namespace, view)
    if (!view.needed) this.forget(cluster, namespace)
    const namespaces = new Set<string>()
    if (this.#reaches(cluster) !== reachedBefore) for (const other of this.#namespaces(cluster)) namespaces.add(other)
    // Where no view was kept, the member had nothing: the namespace has changed only if the member needs it now.
    if (known === undefined ? view.needed : before !== factsOf(view)) namespaces.add(namespace)
    return { references: known === undefined ? view.references() : changed, namespaces }
  }

  /** Whether pods of the logical cluster here reach other members: then they may use Services of every namespace. */
  #reaches(cluster: string): boolean {
    return this.#member.serviceNetwork !== 'None' && this.#present.has(cluster)
  }

  #count(cluster: string, namespace: string, { present: isPresent }: NamespaceView): void {
    const present = this.#present.get(cluster) ?? new Set<string>()
    if (isPresent) present.add(namespace)
    else present.delete(namespace)
    if (present.size === 0) this.#present.delete(cluster)
    else this.#present.set(cluster, present)
  }
}

/** The facts that decide which objects follow the namespace into the member, as text. */
function factsOf({ present, serves, needed, servicesWanted }: NamespaceView): string {
  return `${present} ${serves} ${needed} ${servicesWanted}`
}

function changeIn(view: NamespaceView, resource: ContentResource, change: ContentChange): readonly string[] {
  if (resource === 'ingresses') return view.changeIngress(change)
  if (resource === 'serviceaccounts') return view.changeAccount(change)
  if (resource !== 'persistentvolumeclaims') return view.changeWorkload(change)
  view.changeClaim(change)
  return []
}
