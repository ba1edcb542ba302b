// The logical clusters that have workloads in each member, by the scheduler's decision. Only gateways use this record:
// the first member with a gateway starts it.
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { parseKey, type DeepReadonly, type Informer } from '#client/index.ts'
import { placedOn, workloadKinds } from '#crds/index.ts'

export class ClusterPresence implements Disposable {
  /** By member: the number of its workloads by logical cluster. */
  readonly #counts = new Map<string, Map<string, number>>()
  readonly #listeners = new Set<(member: string) => void>()
  readonly #ends: (() => void)[]

  /** `informers`: of the workloads of all logical clusters, by resource. */
  constructor(informers: Readonly<Record<string, Pick<Informer<KubeObject>, 'onChange'>>>) {
    this.#ends = workloadKinds.flatMap(
      ({ gvr }) =>
        informers[gvr.resource]?.onChange(({ key, before, after }) => {
          const { cluster = '' } = parseKey(key)
          const [left, entered] = [membersOf(before), membersOf(after)]
          for (const member of entered) if (!left.includes(member)) this.#add(member, cluster, 1)
          for (const member of left) if (!entered.includes(member)) this.#add(member, cluster, -1)
        }) ?? [],
    )
  }

  /** Names of the logical clusters with workloads in the member. */
  clustersIn(member: string): Iterable<string> {
    return this.#counts.get(member)?.keys() ?? []
  }

  /**
   * Calls the listener with a member when a logical cluster comes to it or leaves it. Returns the function that ends
   * it.
   */
  onChange(listener: (member: string) => void): () => void {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }

  [Symbol.dispose](): void {
    for (const end of this.#ends) end()
  }

  #add(member: string, cluster: string, by: number): void {
    const counts = this.#counts.get(member) ?? new Map<string, number>()
    this.#counts.set(member, counts)
    const before = counts.get(cluster) ?? 0
    if (before + by > 0) counts.set(cluster, before + by)
    else counts.delete(cluster)
    if (counts.size === 0) this.#counts.delete(member)
    if (before === 0 || before + by === 0) for (const listener of this.#listeners) listener(member)
  }
}

function membersOf(workload: DeepReadonly<KubeObject> | undefined): string[] {
  return workload === undefined ? [] : Object.keys(placedOn(workload as KubeObject))
}
