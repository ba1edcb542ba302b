// The views of all namespaces for one member, cached until a workload, claim or Ingress changes.
import { isInMember, viewNamespace, type NamespaceContent, type NamespaceView } from './namespace-view.ts'
import type { SyncedMember } from './sync-context.ts'

export interface ViewChanges {
  /** References that were added or removed. */
  readonly references: readonly string[]
  /** Namespaces whose Services the member now needs, or no longer needs. */
  readonly namespaces: readonly string[]
}

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
      view = viewNamespace(this.#contentOf(cluster, namespace), {
        member: this.#member.name,
        clusterPresent: this.#reaches(cluster),
      })
      this.#views.set(key, view)
    }
    return view
  }

  namespacesOf(cluster: string): Iterable<string> {
    return this.#namespaces(cluster)
  }

  /** Namespaces of a logical cluster with workloads in the member. */
  presentIn(cluster: string): ReadonlySet<string> {
    return this.#present.get(cluster) ?? none
  }

  /** Reads the content of a namespace again, and returns what has changed. */
  refresh(cluster: string, namespace: string): ViewChanges {
    const key = `${cluster}|${namespace}`
    const before = this.#views.get(key)
    const reachedBefore = this.#reaches(cluster)
    this.#count(cluster, namespace)
    this.#views.delete(key)
    const namespaces = new Set<string>()
    if (this.#reaches(cluster) !== reachedBefore) {
      for (const other of this.#namespaces(cluster)) {
        this.#views.delete(`${cluster}|${other}`)
        namespaces.add(other)
      }
    }
    const after = this.of(cluster, namespace)
    if (
      before?.servicesWanted !== after.servicesWanted ||
      before.present !== after.present ||
      before.leaving !== after.leaving ||
      before.needed !== after.needed
    )
      namespaces.add(namespace)
    const known = before?.references ?? new Set<string>()
    const references = [...new Set([...known, ...after.references])].filter(
      (one) => known.has(one) !== after.references.has(one),
    )
    return { references, namespaces: [...namespaces] }
  }

  /** Where pods reach those of other members, they may use Services of every namespace. */
  #reaches(cluster: string): boolean {
    return this.#member.serviceNetwork !== 'None' && this.#present.has(cluster)
  }

  #count(cluster: string, namespace: string): void {
    const present = this.#present.get(cluster) ?? new Set<string>()
    if ([...this.#contentOf(cluster, namespace).workloads].some((workload) => isInMember(workload, this.#member.name)))
      present.add(namespace)
    else present.delete(namespace)
    if (present.size === 0) this.#present.delete(cluster)
    else this.#present.set(cluster, present)
  }
}
