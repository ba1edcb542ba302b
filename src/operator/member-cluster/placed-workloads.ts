// Which workloads have something in which member: by the scheduler's decision or by the finalizer of the member's syncer.
// An index on the shared informers, so that a visit to a member does not read the workloads of all logical clusters.
import type { KubeObject } from '../../apimachinery/meta/index.ts'
import { ObjectIndex, type DeepReadonly, type Informer, type SharedInformers } from '../../client/index.ts'
import { finalizingMembers, membersWithCopy, workloadKinds } from '../../crds/index.ts'

export class PlacedWorkloads implements Disposable {
  readonly #kinds: readonly { readonly informer: Informer<KubeObject>; readonly byMember: ObjectIndex }[]

  constructor(informers: SharedInformers) {
    this.#kinds = workloadKinds.map(({ gvr }) => {
      const informer = informers.of(gvr)
      return { informer, byMember: new ObjectIndex(informer, (_, workload) => membersOf(workload)) }
    })
  }

  /** `NAMESPACE/NAME` of each workload with something in the member. Waits for the first lists. */
  async of(member: string, signal: AbortSignal): Promise<string[]> {
    await Promise.all(this.#kinds.map(({ informer }) => informer.synced(signal)))
    return this.#kinds.flatMap(({ byMember }) => [...byMember.of(member)].map(nameOf))
  }

  [Symbol.dispose](): void {
    for (const { byMember } of this.#kinds) byMember[Symbol.dispose]()
  }
}

/** Members that have, or are to have, something of the workload. */
export function membersOf(workload: DeepReadonly<KubeObject>): string[] {
  return [...new Set([...finalizingMembers(workload), ...membersWithCopy(workload as KubeObject)])]
}

/** `NAMESPACE/NAME`, for people. */
export function nameOf({ metadata: { namespace = '', name = '' } }: DeepReadonly<KubeObject>): string {
  return `${namespace}/${name}`
}
