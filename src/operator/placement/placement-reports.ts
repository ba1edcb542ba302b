// What became of the workloads that each Placement decides about, collected from the visits to them, and its status from that.
import { maxListed, setCondition, type Placement, type PlacementStatus } from '#crds/index.ts'
import { parseKey, type DeepReadonly } from '#client/index.ts'
import { hiddenReasons, type Decision, type Rejection } from '#placement/index.ts'
import { heldMessage } from './status.ts'

interface Outcome {
  readonly members: readonly string[]
  /** Empty if nothing is held. */
  readonly held: string
  /** Of a workload that is held. */
  readonly rejected: readonly Rejection[]
}

const maxMessage = 1024

export class PlacementReports {
  /** By key of the Placement, by key of the workload. */
  readonly #outcomes = new Map<string, Map<string, Outcome>>()
  /** By key of the workload: the Placement that decided last. */
  readonly #deciding = new Map<string, string>()
  readonly #changed: (placementKey: string) => void

  /** `changed` is called with the key of each Placement whose status may differ now. */
  constructor(changed: (placementKey: string) => void) {
    this.#changed = changed
  }

  /** The decision about a workload; `placementKey` is undefined if no Placement decided. */
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

  /** The workload is gone, or no Placement decides about it any more. */
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
