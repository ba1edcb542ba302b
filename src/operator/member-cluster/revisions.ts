// Notices that a member was restored from a backup. Revisions of etcd only grow, so a smaller one than before means that the
// member has gone back in time.

export class Revisions {
  /** By member: the cluster that answered last, and its revision then. */
  readonly #last = new Map<string, { readonly uid: string; readonly revision: bigint }>()

  /**
   * Whether the member has gone back since it answered last. `revision`: the resourceVersion of a list that it made just now;
   * `uid`: of its kube-system, because another cluster counts by itself.
   */
  hasGoneBack(member: string, { uid, revision }: { readonly uid: string; readonly revision: string }): boolean {
    if (!/^\d+$/.test(revision)) return false
    const before = this.#last.get(member)
    const now = BigInt(revision)
    this.#last.set(member, { uid, revision: now })
    return before?.uid === uid && now < before.revision
  }

  forget(member: string): void {
    this.#last.delete(member)
  }
}
