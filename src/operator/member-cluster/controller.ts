// The controller of MemberClusters: their status, a syncer for each member that answers, and their deletion.
import { systemClock, timestamp, type Clock } from '#async/index.ts'
import type { DeepReadonly, Informer, KubeClient } from '#client/index.ts'
import { isMemberTokenDue } from '#client/member/index.ts'
import {
  agentPhase,
  definitionName,
  isConditionTrue,
  logicalClusters,
  memberClusters,
  memberState,
  placements,
  volumeMoves,
  type ExportedApi,
  type GatewayReport,
  type LogicalCluster,
  type MemberCluster,
  type Placement,
  type VolumeMove,
} from '#crds/index.ts'
import type { MemberApis } from '#operator/exported-apis/member-apis.ts'
import type { OperatorContext, OperatorController } from '#operator/framework/operator-context.ts'
import { recordEvent, type EventText } from '#operator/framework/record-event.ts'
import { createKeyQueue, runController, type ReconcileResult } from '#reconcile/index.ts'
import type { Gauge } from '#telemetry/index.ts'
import { apply, type StartSyncer } from './apply.ts'
import { ConnectedMembers } from './connected-members.ts'
import { drainProgress, type DrainProgress } from './drain-progress.ts'
import { MemberSchemas } from './member-schemas.ts'
import { listPlacedWorkloads, olderTwinOf, probe } from './observe.ts'
import { PlacedWorkloads } from './placed-workloads.ts'
import { plan, type Observed } from './plan.ts'
import type { Probe } from './status.ts'

export interface MemberClusterDeps {
  /** Starts a syncer. The program that wires operator and syncer knows how. */
  readonly startSyncer: StartSyncer
  readonly apis: MemberApis
  readonly clock?: Clock
  /** Seconds between probes of a member. Default 10. */
  readonly probeSeconds?: number
}

/** A reconcile to a member that is down takes the whole probe timeout: dozens of them must not delay the others. */
const workers = 64
/** Failures within this time cause one reconcile, because many objects of a member fail together. */
const collectMs = 1000

/** Keeps MemberClusters and their syncers. */
export function memberClusterController(deps: MemberClusterDeps): OperatorController {
  return {
    name: 'member-cluster',
    async run(context, { signal, started }) {
      const informer = context.informers.of<MemberCluster>(memberClusters)
      using queue = createKeyQueue({ maxMs: 30_000 })
      const moves = context.informers.of<VolumeMove>(volumeMoves)
      using placed = new PlacedWorkloads(context.tenantInformers, () => moves.store.list())
      await using connected = new ConnectedMembers(context.clusters, {
        log: context.log,
        signal,
        changed: (name) => queue.add(name),
        ...(context.dialer && { dialer: context.dialer }),
      })
      const schemas = new MemberSchemas({
        ours: () => ourApi(context),
        log: context.log,
        signal,
        changed: (name) => queue.add(name),
      })
      const members = new Members({
        context,
        informer,
        placements: context.informers.of<Placement>(placements),
        placed,
        connected,
        schemas,
        deps,
        reconcile: (name) => queue.add(name),
        reconcileSoon: (name) => queue.addAfter(name, collectMs),
        signal,
      })
      const endReports = deps.apis.onReport((name) => queue.addAfter(name, collectMs))
      using count = new MemberCount(context.metrics?.members)
      const unsubscribe = informer.onChange(({ key, before, after }) => {
        count.change(before, after)
        // Status writes of this controller must not cause a reconcile.
        const isSame =
          before?.metadata.generation === after?.metadata.generation &&
          before?.metadata.deletionTimestamp === after?.metadata.deletionTimestamp &&
          // The API server writes this part.
          JSON.stringify(before?.status?.agent) === JSON.stringify(after?.status?.agent)
        if (before === undefined || after === undefined || !isSame) queue.add(key)
      })
      try {
        await informer.synced(signal)
        started()
        const reconcile = (name: string, signal: AbortSignal): Promise<ReconcileResult> =>
          members.reconcile(name, signal)
        await runController({ name: 'member-cluster', queue, workers, reconcile, log: context.log, signal })
      } finally {
        endReports()
        unsubscribe()
      }
    },
  }
}

/** The API of any logical cluster: built-in kinds are the same in all of them. */
function ourApi({ informers, virtual }: OperatorContext): KubeClient | undefined {
  const ready = informers
    .of<LogicalCluster>(logicalClusters)
    .store.list()
    .find((one) => isConditionTrue(one, 'Ready'))
  return ready && virtual(`/clusters/${ready.metadata.name}`)
}

interface MembersDependencies {
  readonly context: OperatorContext
  readonly informer: Informer<MemberCluster>
  /** Of the admins. */
  readonly placements: Informer<Placement>
  readonly placed: PlacedWorkloads
  readonly connected: ConnectedMembers
  readonly schemas: MemberSchemas
  readonly deps: MemberClusterDeps
  /** Asks for another reconcile. */
  readonly reconcile: (name: string) => void
  /** Asks for another reconcile, one for all that changes within collectMs. */
  readonly reconcileSoon: (name: string) => void
  readonly signal: AbortSignal
}

class Members {
  readonly #dependencies: MembersDependencies
  readonly #clock: Clock
  /** By member that is being deleted: the number of workloads that was logged last. */
  readonly #loggedRemaining = new Map<string, number>()
  readonly #revisions = new Revisions()
  /** By member that drains: since when only claims that do not move are left, in Unix milliseconds. */
  readonly #onlyClaimsSince = new Map<string, number>()
  /** By member: its syncer's report on its gateway. */
  readonly #gateways = new Map<string, GatewayReport>()

  constructor(dependencies: MembersDependencies) {
    this.#dependencies = dependencies
    this.#clock = dependencies.deps.clock ?? systemClock
  }

  async reconcile(name: string, signal: AbortSignal): Promise<ReconcileResult> {
    const { informer, connected, context, deps, schemas } = this.#dependencies
    const object = informer.store.get(name)
    if (object === undefined) {
      this.#loggedRemaining.delete(name)
      this.#revisions.forget(name)
      this.#onlyClaimsSince.delete(name)
      this.#gateways.delete(name)
      schemas.forget(name)
      await connected.disconnect(name)
      return {}
    }
    const observed = await this.#observe(object, signal)
    const { steps, requeueAfterSeconds } = plan(observed, { probeSeconds: deps.probeSeconds ?? 10 })
    const applyContext = {
      operator: context,
      connected,
      startSyncer: deps.startSyncer,
      controllerSignal: this.#dependencies.signal,
      apis: deps.apis,
      gatewayReported: (report: GatewayReport) => {
        this.#gateways.set(name, report)
        this.#dependencies.reconcile(name)
      },
      failuresChanged: () => this.#dependencies.reconcileSoon(name),
      logRemaining: () => this.#logRemaining(name, observed.placed),
      record: (text: EventText) =>
        recordEvent(
          object,
          text,
          { client: context.clusters, component: 'kcp-member-cluster', now: observed.now, log: context.log },
          signal,
        ),
    }
    for (const step of steps) await apply(step, object, applyContext, signal)
    return requeueAfterSeconds === undefined ? {} : { requeueAfterSeconds }
  }

  async #observe(object: DeepReadonly<MemberCluster>, signal: AbortSignal): Promise<Observed> {
    const { informer, context, placed, connected, schemas, deps } = this.#dependencies
    const { name, deletionTimestamp } = object.metadata
    const found = await this.#probe(object, signal)
    const twin = found.kind === 'answered' ? olderTwinOf(object, found.uid, informer.store.list()) : undefined
    const known = await placed.of(name, signal)
    const mustAsk = known.length === 0 && deletionTimestamp !== undefined
    const workloads = mustAsk ? await listPlacedWorkloads(context.virtual('/clusters/*'), name, signal) : known
    const imported = deps.apis.placedIn(name, (api) => mayMove(api, informer.store.list()))
    const isDraining = memberState(object) === 'Draining'
    const claims = isDraining ? await placed.unusedClaimsIn(name, signal) : []
    const drain = isDraining
      ? drainProgress(name, { workloads: placed.workloadsIn(name), claims, arriving: placed.arrivingIn(name) })
      : undefined
    const requested = await placed.requestedIn(name, signal)
    const isRestored = found.kind === 'answered' && this.#revisions.hasGoneBack(name, found)
    const nowMs = this.#clock.now()
    const kubeconfig = connected.kubeconfigOf(name)
    const tokenDue = kubeconfig !== undefined && isMemberTokenDue(kubeconfig, this.#clock.now())
    const now = timestamp(nowMs)
    const classes = connected.classesOf(name)
    const client = connected.clientOf(name)
    const unsupportedFields = found.kind === 'answered' && client && schemas.unsupportedBy(name, client, found.version)
    const exports = deps.apis.reportOf(name)
    const gateway = this.#gateways.get(name)
    const failures = connected.failuresOf(name)
    const facts = {
      ...(failures && { failures }),
      ...(gateway && { gateway }),
      ...(exports && { exports }),
      ...(unsupportedFields && { unsupportedFields }),
      agentAnswers: await this.#agentAnswers(object, signal),
      twin,
      tokenDue,
      placed: [...workloads, ...imported],
      requested,
      isRestored,
      classes,
      suspended: connected.suspendedDeletionsOf(name),
      ...(drain && { drain, ...this.#onlyClaims(name, drain, nowMs) }),
      nowMs,
      now,
    }
    return { object, probe: found, ...facts }
  }

  #onlyClaims(
    member: string,
    { claims, moving, held }: DrainProgress,
    nowMs: number,
  ): Pick<Observed, 'onlyClaimsForMs'> {
    const isOnly = claims > 0 && moving === 0 && held === claims
    const mayMove = this.#dependencies.placements.store.list().some(({ spec }) => spec?.volumes !== undefined)
    if (!isOnly || !mayMove) this.#onlyClaimsSince.delete(member)
    else if (!this.#onlyClaimsSince.has(member)) this.#onlyClaimsSince.set(member, nowMs)
    const sinceMs = this.#onlyClaimsSince.get(member)
    return sinceMs === undefined ? {} : { onlyClaimsForMs: nowMs - sinceMs }
  }

  async #probe(object: DeepReadonly<MemberCluster>, signal: AbortSignal): Promise<Probe> {
    try {
      return await probe(await this.#dependencies.connected.connect(object, signal), signal)
    } catch (error) {
      if (signal.aborted) throw error
      return { kind: 'unusable', message: error instanceof Error ? error.message : String(error) }
    }
  }

  /** Whether a member that is reached by a kubeconfig is reached through its agent, too, and is the same cluster. */
  async #agentAnswers(object: DeepReadonly<MemberCluster>, signal: AbortSignal): Promise<boolean> {
    if (object.spec?.connection?.kubeconfigSecretRef === undefined) return false
    if (agentPhase(object, this.#clock.now()) !== 'Enrolled') return false
    const { connected, context } = this.#dependencies
    const uid = await connected.uidThroughAgent(object, signal)
    if (uid === undefined || uid === object.status?.id) return uid !== undefined
    context.log.warn('the agent of a member is in another cluster', { member: object.metadata.name, uid })
    return false
  }

  #logRemaining(member: string, workloads: readonly string[]): void {
    const remaining = workloads.length
    if (this.#loggedRemaining.get(member) === remaining) return
    const keys = { member, remaining, first: workloads[0] }
    this.#dependencies.context.log.info('a member that is being deleted still has workloads', keys)
    this.#loggedRemaining.set(member, remaining)
  }
}

/** Whether objects of an API leave a member that is drained: if all members that export the API say so. */
function mayMove(api: Readonly<ExportedApi>, members: readonly DeepReadonly<MemberCluster>[]): boolean {
  const name = definitionName(api)
  return members
    .flatMap(({ spec }) => spec?.exportedAPIs ?? [])
    .filter((one) => definitionName(one) === name)
    .every(({ move = 'Never' }) => move !== 'Never')
}

const statuses = ['True', 'False', 'Unknown'] as const
type Status = (typeof statuses)[number]

export class MemberCount implements Disposable {
  readonly #gauge: Gauge | undefined
  readonly #counts: Record<Status, number> = { True: 0, False: 0, Unknown: 0 }

  constructor(gauge: Gauge | undefined) {
    this.#gauge = gauge
  }

  /** Takes one change of the informer: `before` is absent for a new member, `after` for one that is gone. */
  change(before: DeepReadonly<MemberCluster> | undefined, after: DeepReadonly<MemberCluster> | undefined): void {
    if (before !== undefined) this.#add(readyOf(before), -1)
    if (after !== undefined) this.#add(readyOf(after), 1)
  }

  /** This process knows nothing of members any more. */
  [Symbol.dispose](): void {
    for (const ready of statuses) this.#gauge?.set(0, { ready })
  }

  #add(ready: Status, by: number): void {
    this.#counts[ready] += by
    this.#gauge?.set(this.#counts[ready], { ready })
  }
}

/** The status of the member's condition Ready; Unknown until the operator has probed the member for the first time. */
function readyOf({ status }: DeepReadonly<MemberCluster>): Status {
  const text = status?.conditions?.find(({ type }) => type === 'Ready')?.status
  return statuses.find((known) => known === text) ?? 'Unknown'
}

export class Revisions {
  /** By member: the cluster that answered last, and its revision then. */
  readonly #last = new Map<string, { readonly uid: string; readonly revision: bigint }>()

  /**
   * Whether the member has gone back since it answered last. `revision`: the resourceVersion of a list that it made
   * just now; `uid`: of its kube-system, because another cluster counts by itself.
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
