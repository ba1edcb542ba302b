// The Deployments of all logical clusters and the members, as the admin of the installation sees them.
import { groupResourceText, type GroupVersionResource, type KubeObject } from '#apimachinery/meta/index.ts'
import {
  createInformer,
  withoutManagedFields,
  type DeepReadonly,
  type Informer,
  type KubeClient,
} from '#client/index.ts'
import {
  finalizingMembers,
  memberClusters,
  membersWithCopy,
  placedOn,
  placedOnAnnotation,
  type MemberCluster,
} from '#crds/index.ts'
import { silentLogger } from '#telemetry/index.ts'
import { isAvailable } from './web-deployment.ts'

const deployments = { group: 'apps', version: 'v1', resource: 'deployments' } as const

interface Seen {
  writes: number
  /** performance.now() at which it was first seen so. */
  placedAt: number | undefined
  availableAt: number | undefined
  /** The annotation, and how often it changed. */
  decision: string | undefined
  decisions: number
  /** Members that have, or are to have, something of it. */
  members: readonly string[]
  isSettled: boolean
  isLost: boolean
}

/** What a member tells of its drain, compared with what was so. */
export interface DrainLines {
  end(): { readonly told: number; readonly untrue: number }
}

/** For how long what is told may be old, milliseconds. */
const mayBeOldMs = 2000

export class WorkloadWatch implements AsyncDisposable {
  readonly #workloads: Informer<KubeObject>
  readonly #members: Informer<MemberCluster>
  readonly #seen = new Map<string, Seen>()
  readonly #counts = new Map<string, number>()
  #writes = 0
  #placed = 0
  #available = 0
  #unsettled = 0
  #lost = 0

  /** `everywhere` is the API over all logical clusters, `root` that with the MemberClusters. */
  constructor(everywhere: KubeClient, root: KubeClient, signal: AbortSignal) {
    const common = { log: silentLogger, signal, transform: withoutManagedFields }
    this.#workloads = createInformer<KubeObject>({
      ...common,
      client: everywhere,
      gvr: deployments,
      allClusters: true,
    })
    this.#members = createInformer<MemberCluster>({ ...common, client: root, gvr: memberClusters })
    this.#workloads.onChange(({ key, after }) => this.#note(key, after))
  }

  get placedCount(): number {
    return this.#placed
  }

  get availableCount(): number {
    return this.#available
  }

  /** Workloads with a copy that does not serve. */
  get unsettledCount(): number {
    return this.#unsettled
  }

  /** Workloads with a copy that is lost. */
  get lostCount(): number {
    return this.#lost
  }

  /** Writes of all Deployments so far. */
  get allWrites(): number {
    return this.#writes
  }

  placedAt(key: string): number | undefined {
    return this.#seen.get(key)?.placedAt
  }

  availableAt(key: string): number | undefined {
    return this.#seen.get(key)?.availableAt
  }

  writes(key: string): number {
    return this.#seen.get(key)?.writes ?? 0
  }

  memberList(): DeepReadonly<MemberCluster>[] {
    return this.#members.store.list()
  }

  member(name: string): DeepReadonly<MemberCluster> | undefined {
    return this.#members.store.get(name)
  }

  /** Number of workloads with something in the member. */
  workloadsIn(member: string): number {
    return this.#counts.get(member) ?? 0
  }

  keysIn(member: string): string[] {
    return [...this.#seen].filter(([, { members }]) => members.includes(member)).map(([key]) => key)
  }

  /** How often each workload was decided so far. */
  decisions(): ReadonlyMap<string, number> {
    return new Map([...this.#seen].map(([key, { decisions }]) => [key, decisions]))
  }

  /** Keys of the workloads that were decided again since then. */
  changedSince(before: ReadonlyMap<string, number>): string[] {
    return [...this.#seen].filter(([key, { decisions }]) => before.get(key) !== decisions).map(([key]) => key)
  }

  /** Compares what the status of the member says with the number of workloads there. */
  followDrain(member: string): DrainLines {
    const history: { at: number; count: number }[] = []
    let told = 0
    let untrue = 0
    const timer = setInterval(() => {
      const at = performance.now()
      history.push({ at, count: this.workloadsIn(member) })
    }, 50)
    const end = this.#members.onChange(({ key, before, after }) => {
      const [was, is] = [before?.status, after?.status].map((status) => (status?.moving ?? 0) + (status?.held ?? 0))
      if (key !== member || before === undefined || after?.spec?.state !== 'Draining' || is === was) return
      told++
      const now = performance.now()
      const recent = history.filter(({ at }) => at >= now - mayBeOldMs).map(({ count }) => count)
      recent.push(this.workloadsIn(member))
      if (is === undefined || is > Math.max(...recent) || is < Math.min(...recent)) untrue++
    })
    return {
      end: () => {
        clearInterval(timer)
        end()
        return { told, untrue }
      },
    }
  }

  #note(key: string, object: DeepReadonly<KubeObject> | undefined): void {
    const seen = this.#seen.get(key) ?? newSeen()
    if (object === undefined) {
      this.#take(seen, { members: [], isSettled: true, isLost: false })
      this.#seen.delete(key)
      return
    }
    this.#seen.set(key, seen)
    this.#writes++
    seen.writes++
    const decision = object.metadata.annotations?.[placedOnAnnotation]
    if (decision !== seen.decision) {
      seen.decision = decision
      seen.decisions++
    }
    const copies = Object.values(placedOn(object as KubeObject))
    if (copies.length > 0 && seen.placedAt === undefined) {
      seen.placedAt = performance.now()
      this.#placed++
    }
    if (isAvailable(object) && seen.availableAt === undefined) {
      seen.availableAt = performance.now()
      this.#available++
    }
    this.#take(seen, {
      members: [...new Set([...finalizingMembers(object), ...membersWithCopy(object as KubeObject)])],
      isSettled: copies.length === 1 && copies[0]?.state === 'Serving',
      isLost: copies.some(({ state }) => state === 'Lost'),
    })
  }

  #take(seen: Seen, now: Pick<Seen, 'members' | 'isSettled' | 'isLost'>): void {
    for (const member of seen.members) this.#counts.set(member, this.workloadsIn(member) - 1)
    for (const member of now.members) this.#counts.set(member, this.workloadsIn(member) + 1)
    this.#unsettled += Number(seen.isSettled) - Number(now.isSettled)
    this.#lost += Number(now.isLost) - Number(seen.isLost)
    Object.assign(seen, now)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([this.#workloads[Symbol.asyncDispose](), this.#members[Symbol.asyncDispose]()])
  }
}

function newSeen(): Seen {
  return {
    ...{ writes: 0, placedAt: undefined, availableAt: undefined },
    ...{ decision: undefined, decisions: 0 },
    ...{ members: [], isSettled: true, isLost: false },
  }
}

export interface CountedEvents extends AsyncDisposable {
  /** Events since the first lists, by resource. */
  readonly counts: Readonly<Record<string, number>>
}

/** Counts the changes of these resources from now on. */
export async function countEvents(
  client: KubeClient,
  resources: readonly GroupVersionResource[],
  signal: AbortSignal,
): Promise<CountedEvents> {
  await using stack = new AsyncDisposableStack()
  const counts: Record<string, number> = {}
  for (const gvr of resources) {
    const options = { client, gvr, allClusters: true, metadataOnly: true, log: silentLogger, signal }
    const informer = stack.use(createInformer<KubeObject>(options))
    await informer.synced(signal)
    const what = groupResourceText(gvr)
    const initial = informer.store.size
    counts[what] = -initial
    informer.onChange(() => {
      counts[what] = (counts[what] ?? 0) + 1
    })
  }
  const owned = stack.move()
  return { counts, [Symbol.asyncDispose]: () => owned.disposeAsync() }
}
