// The status of Placements, of tenants in their logical clusters and of admins beside the MemberClusters: collected
// from the decisions about the workloads of each Placement.
import { isDeepStrictEqual } from 'node:util'
import { tolerate } from '#apimachinery/status/index.ts'
import { timestamp, type Clock } from '#async/index.ts'
import { type DeepReadonly, parseKey } from '#client/index.ts'
import { maxListed, type Placement, placements, type PlacementStatus, setCondition } from '#crds/index.ts'
import type { OperatorContext } from '#operator/framework/operator-context.ts'
import { hiddenReasons, type Decision, type Rejection } from '#placement/index.ts'
import type { KeyQueue, ReconcileResult } from '#reconcile/index.ts'
import type { PlacementInputs } from './placement-inputs.ts'
import { heldMessage } from './status.ts'

/** Many workloads change together: their Placement is written once for all that change within this time. */
const collectMs = 1000

/** Reconciles a Placement after each of its changes. Returns the function that ends it. */
export function followPlacements(inputs: PlacementInputs, queue: KeyQueue): () => void {
  const ends = [inputs.tenantPlacements, inputs.adminPlacements].map((informer) =>
    informer.onChange(({ key, before, after }) => {
      if (after !== undefined && before?.metadata.generation !== after.metadata.generation)
        queue.addAfter(key, collectMs)
    }),
  )
  return () => {
    for (const end of ends) end()
  }
}

/** Adds a Placement whose report has changed to the queue. */
export function reportTo(queue: KeyQueue): (key: string) => void {
  return (key) => queue.addAfter(key, collectMs)
}

/** Writes the status of the Placement with this key if it differs. Rejects with StatusError. */
export async function writePlacementStatus(
  key: string,
  { context, inputs, reports, clock }: PlacementStatusParts,
  signal: AbortSignal,
): Promise<ReconcileResult> {
  const { cluster, name } = parseKey(key)
  const informer = cluster === undefined ? inputs.adminPlacements : inputs.tenantPlacements
  const placement = informer.store.get(key)
  if (placement === undefined) return {}
  const status = reports.statusOf(key, placement, timestamp(clock.now()))
  if (isDeepStrictEqual(status, placement.status)) return {}
  const client = cluster === undefined ? context.clusters : context.virtual(`/clusters/${cluster}`)
  await client
    .patch(placements, { name }, 'merge', { status }, { subresource: 'status', signal })
    .catch(tolerate('NotFound'))
  return {}
}

interface PlacementStatusParts {
  readonly context: OperatorContext
  readonly inputs: PlacementInputs
  readonly reports: PlacementReports
  readonly clock: Clock
}

interface Outcome {
  readonly members: readonly string[]
  /** Empty if nothing is held. */
  readonly held: string
  /** The rejections of a workload that is held. */
  readonly rejected: readonly Rejection[]
}

const maxMessage = 1024

export class PlacementReports {
  /** By key of the Placement: the outcome of each workload, by key of the workload. */
  readonly #outcomes = new Map<string, Map<string, Outcome>>()
  /** By key of the workload: the Placement that decided last. */
  readonly #deciding = new Map<string, string>()
  readonly #changed: (placementKey: string) => void

  /** `changed` is called with the key of each Placement whose status may differ now. */
  constructor(changed: (placementKey: string) => void) {
    this.#changed = changed
  }

  /** Notes the decision about a workload; `placementKey` is undefined if no Placement decided. */
  note(workloadKey: string, placementKey: string | undefined, { wanted, held, rejected }: Decision): void {
    if (this.#deciding.get(workloadKey) !== placementKey) this.forget(workloadKey)
    if (placementKey === undefined) return
    const outcomes = this.#outcomes.get(placementKey) ?? new Map<string, Outcome>()
    const members = wanted.kind === 'members' ? wanted.names : []
    const isTenants = parseKey(placementKey).cluster !== undefined
    const shown = isTenants ? rejected.filter(({ reason }) => !hiddenReasons.has(reason)) : rejected
    const outcome = { members, held: heldMessage(held), rejected: held.length > 0 ? shown.slice(0, maxListed) : [] }
    const before = outcomes.get(workloadKey)
    outcomes.set(workloadKey, outcome)
    this.#outcomes.set(placementKey, outcomes)
    this.#deciding.set(workloadKey, placementKey)
    if (before?.held !== outcome.held || before.members.join() !== members.join()) this.#changed(placementKey)
  }

  /** Forgets a workload that is gone, or about which no Placement decides any more. */
  forget(workloadKey: string): void {
    const placementKey = this.#deciding.get(workloadKey)
    if (placementKey === undefined) return
    this.#deciding.delete(workloadKey)
    const outcomes = this.#outcomes.get(placementKey)
    outcomes?.delete(workloadKey)
    if (outcomes?.size === 0) this.#outcomes.delete(placementKey)
    this.#changed(placementKey)
  }

  /** The status of a Placement, from what was noted. `now`: RFC 3339. */
  statusOf(key: string, { metadata, status }: DeepReadonly<Placement>, now: string): PlacementStatus {
    const counts = new Map<string, number>()
    const rejected = new Map<string, Rejection>()
    const held: [string, string][] = []
    const outcomes = this.#outcomes.get(key) ?? new Map<string, Outcome>()
    for (const [workload, outcome] of outcomes) {
      for (const member of outcome.members) counts.set(member, (counts.get(member) ?? 0) + 1)
      for (const rejection of outcome.rejected) if (rejection.cluster !== '') rejected.set(rejection.cluster, rejection)
      if (outcome.held !== '') held.push([workload, outcome.held])
    }
    const observedGeneration = metadata.generation ?? 0
    const condition = { ...scheduled(outcomes.size, held.sort()), observedGeneration }
    return {
      workloads: outcomes.size,
      held: held.length,
      clusters: firstByName(counts).map(([name, workloads]) => ({ name, workloads })),
      rejected: firstByName(rejected).map(([cluster, { reason, message }]) => ({
        cluster,
        reason,
        message: message.slice(0, maxMessage),
      })),
      observedGeneration,
      conditions: setCondition(status?.conditions, condition, now).map((one) => ({ ...one })),
    }
  }
}

function scheduled(all: number, held: readonly (readonly [string, string])[]) {
  const type = 'Scheduled'
  const [first] = held
  if (first === undefined) {
    const message = all === 0 ? 'it decides for no workload' : `all ${all} workloads have a member cluster`
    return { type, status: 'True', reason: all === 0 ? 'NoWorkloads' : 'AllPlaced', message } as const
  }
  const message = `${held.length} of ${all} workloads are held; the first is ${first[0]}: ${first[1]}`.slice(
    0,
    maxMessage,
  )
  return { type, status: 'False', reason: 'Held', message } as const
}

function firstByName<T>(map: ReadonlyMap<string, T>): [string, T][] {
  return [...map].sort(([a], [b]) => (a < b ? -1 : 1)).slice(0, maxListed)
}
