// The views of all namespaces of one member's syncer, kept until a workload changes.
import type { KubeObject } from '../apimachinery/meta/index.ts'
import type { DeepReadonly } from '../client/index.ts'
import { viewNamespace, holdsHere, type NamespaceView } from './namespace-view.ts'
import type { SyncedMember } from './sync-context.ts'

export interface ViewChanges {
  /** References that came or went. */
  readonly references: readonly string[]
  /** Namespaces whose Services came into, or went out of, the member's reach. */
  readonly spaces: readonly string[]
}

type Workloads = (cluster: string, namespace: string) => Iterable<DeepReadonly<KubeObject>>

const none: ReadonlySet<string> = new Set()

export class Views {
  readonly #member: SyncedMember
  readonly #workloads: Workloads
  /** Namespaces of a logical cluster, those without workloads included. */
  readonly #namespaces: (cluster: string) => Iterable<string>
  readonly #views = new Map<string, NamespaceView>()
  /** Per logical cluster: namespaces with something in the member. */
  readonly #present = new Map<string, Set<string>>()

  constructor(member: SyncedMember, workloads: Workloads, namespaces: (cluster: string) => Iterable<string>) {
    this.#member = member
    this.#workloads = workloads
    this.#namespaces = namespaces
  }

  of(cluster: string, namespace: string): NamespaceView {
    const key = `${cluster}|${namespace}`
    let view = this.#views.get(key)
    if (view === undefined) {
      view = viewNamespace(this.#workloads(cluster, namespace), {
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

  /** Looks at a namespace's workloads again. Says what is different. */
  refresh(cluster: string, namespace: string): ViewChanges {
    const key = `${cluster}|${namespace}`
    const before = this.#views.get(key)
    const reachedBefore = this.#reaches(cluster)
    this.#count(cluster, namespace)
    this.#views.delete(key)
    const spaces = new Set<string>()
    if (this.#reaches(cluster) !== reachedBefore) {
      for (const other of this.#namespaces(cluster)) {
        this.#views.delete(`${cluster}|${other}`)
        spaces.add(other)
      }
    }
    const after = this.of(cluster, namespace)
    if (before?.servicesWanted !== after.servicesWanted || before.present !== after.present) spaces.add(namespace)
    const known = before?.references ?? new Set<string>()
    const references = [...new Set([...known, ...after.references])].filter(
      (one) => known.has(one) !== after.references.has(one),
    )
    return { references, spaces: [...spaces] }
  }

  /** Pods of a member with a flat network reach pods everywhere, so they may ask for Services of any namespace. */
  #reaches(cluster: string): boolean {
    return this.#member.serviceNetwork === 'Flat' && this.#present.has(cluster)
  }

  #count(cluster: string, namespace: string): void {
    const spaces = this.#present.get(cluster) ?? new Set<string>()
    if ([...this.#workloads(cluster, namespace)].some((workload) => holdsHere(workload, this.#member.name)))
      spaces.add(namespace)
    else spaces.delete(namespace)
    if (spaces.size === 0) this.#present.delete(cluster)
    else this.#present.set(cluster, spaces)
  }
}
