// Checks before a syncer deletes something because it is gone upstream. An object that a cache lacks is gone only if a
// watch has reported its deletion, or the API server says so when it is asked. If more than a handful of workloads is
// gone without a reported deletion (a list that was empty by mistake, a store that was lost or restored), the syncer
// deletes none of them until an admin accepts the deletions.
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { serviceUnavailable } from '#apimachinery/status/index.ts'
import type { Clock } from '#async/index.ts'
import { keyFor } from '#client/index.ts'
import { workloadKinds, type SuspendedDeletions } from '#crds/index.ts'
import { locatorOf } from './locator.ts'
import { gvrs, type ResourceName } from './resources.ts'
import { Scope } from './scope.ts'
import type { AskedObject, DeletionChecks, SyncContext } from './sync-context.ts'
import type { ReconcileRequest } from './request.ts'

/** The cause of the errors with which the guard holds a deletion. */
const heldByGuard = new Error('a deletion in a member is held')

/** Whether a step failed because the guard holds a deletion. Tenants are not told of such failures. */
export function isDeletionHeld(error: unknown): boolean {
  return error instanceof Error && error.cause === heldByGuard
}

/** How many workloads of one logical cluster, or of all, may go without a reported deletion before deletions stop. */
const handful = { ofCluster: 5, ofAll: 20 } as const
/** The same limit as a part of the workloads in the member. The larger of the two limits counts. */
const usualPart = 0.1
/** How long a count is reused, milliseconds: deletions come in bursts. */
const countMs = 1000

type Ref = Pick<ReconcileRequest, 'cluster' | 'namespace' | 'name'>
type Count = Omit<SuspendedDeletions, 'cluster'>

export class DeletionGuard implements DeletionChecks {
  readonly #clock: Clock
  /** By name of the logical cluster; undefined: the count of all together. */
  readonly #counts = new Map<string | undefined, { readonly count: Count; readonly atMs: number }>()
  /** By logical cluster with suspended deletions: counts again; undefined once they are not suspended any more. */
  readonly #suspended = new Map<string | undefined, () => Count | undefined>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /**
   * Resolves if the object (with the uid, if it is known) may be deleted in the member because it is gone upstream.
   * Rejects with ServiceUnavailable, so that the reconcile is repeated, if it is there or if deletions are suspended.
   */
  async confirmGone(asked: AskedObject, known: { readonly uid: string } | undefined): Promise<void> {
    const { context } = asked
    const resource = resourceOf(asked)
    if (context.upstream.tombstones.has(resource, keyOf(asked))) return
    const found = await this.findUnlisted(asked)
    if (found !== undefined && (!known?.uid || known.uid === found.metadata.uid))
      throw serviceUnavailable(
        `${resource} "${asked.name}" is there, but was not in the list of all logical clusters`,
        heldByGuard,
      )
    if (context.member.acceptsDeletions?.() === true) return
    for (const cluster of [asked.cluster, undefined]) {
      const recount = (): Count | undefined => this.#tripped(context, cluster)
      const count = recount()
      if (count === undefined) continue
      this.#suspended.set(cluster, recount)
      throw serviceUnavailable(
        `${count.missing} of ${count.total} workloads in the member are gone upstream, but kcp saw no deletion of them: deletions in the member are suspended`,
        heldByGuard,
      )
    }
  }

  /** Asks the API server for an object that our cache lacks; undefined: it is gone. If found, its informer relists. */
  async findUnlisted(asked: AskedObject): Promise<KubeObject | undefined> {
    const { context, cluster, namespace, name, signal } = asked
    const resource = resourceOf(asked)
    if (context.upstream.tombstones.has(resource, keyOf(asked))) return undefined
    const ref = { name, ...(namespace && { namespace }) }
    const found = await context.upstream.client(cluster).tryGet<KubeObject>(gvrs[resource], ref, { signal })
    const informer = context.upstream.informers[resource]
    if (found !== undefined && informer.store.get(keyOf(asked)) === undefined) informer.relist()
    return found
  }

  /**
   * Throws ServiceUnavailable while workloads of the logical cluster are missing upstream. Objects that are in the
   * member because of workloads, such as ConfigMaps, only seem to be needed no more then, so they must stay.
   */
  holdFollower({ context, cluster, name }: AskedObject): void {
    const { missing } = this.#count(context, cluster)
    if (missing > 0)
      throw serviceUnavailable(
        `"${name}" stays while ${missing} workloads of its logical cluster are missing upstream`,
        heldByGuard,
      )
  }

  /** Forgets the counts, because a list lacks a workload that was there before. */
  vanished(): void {
    this.#counts.clear()
  }

  /** The logical clusters in which deletions are suspended now, with their counts of workloads. */
  suspended(): SuspendedDeletions[] {
    const found: SuspendedDeletions[] = []
    for (const [cluster, recount] of this.#suspended) {
      const count = recount()
      if (count === undefined) this.#suspended.delete(cluster)
      else found.push({ cluster, ...count })
    }
    return found
  }

  #tripped(context: SyncContext, cluster: string | undefined): Count | undefined {
    if (context.member.acceptsDeletions?.() === true) return undefined
    const count = this.#count(context, cluster)
    const limit = cluster === undefined ? handful.ofAll : handful.ofCluster
    return count.missing > Math.max(limit, count.total * usualPart) ? count : undefined
  }

  #count(context: SyncContext, cluster: string | undefined): Count {
    const atMs = this.#clock.now()
    const known = this.#counts.get(cluster)
    if (known !== undefined && atMs - known.atMs < countMs) return known.count
    const count = countMissing(context, cluster)
    this.#counts.set(cluster, { count, atMs })
    return count
  }
}

function resourceOf({ kind }: ReconcileRequest): ResourceName {
  return (kind === 'pod' ? 'pods' : kind) as ResourceName
}

function keyOf({ cluster, namespace, name }: Ref): string {
  return keyFor({ cluster, name, ...(namespace && { namespace }) })
}

/**
 * Counts the copies of the workloads of a logical cluster, or of all, and how many of these workloads are missing
 * upstream without a reported deletion.
 */
function countMissing(context: SyncContext, cluster: string | undefined): Count {
  const id = cluster === undefined ? '' : (context.upstream.ids.idOf(cluster) ?? '')
  let [missing, total] = [0, 0]
  for (const { metadata } of context.downstreamIn('namespaces', '')) {
    const { name: below = '' } = metadata
    const found = below.startsWith(id) ? Scope.ofMember(context, below) : undefined
    if (found === undefined || (cluster !== undefined && found.cluster !== cluster)) continue
    for (const { gvr } of workloadKinds) {
      const { resource } = gvr
      for (const copy of context.downstreamIn(resource, below)) {
        const locator = copy.metadata.deletionTimestamp === undefined ? locatorOf(copy) : undefined
        if (locator === undefined) continue
        total++
        if (found.upstream(resource, locator.name) !== undefined) continue
        const { cluster, namespace } = found
        if (!context.upstream.tombstones.has(resource, keyOf({ cluster, namespace, name: locator.name }))) missing++
      }
    }
  }
  return { missing, total }
}
