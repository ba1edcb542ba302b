// The controller of Adoptions: plans them, takes namespaces over, and gives them back. The state is on the namespace in
// the logical cluster, so that an adoption goes on where it was after a failure at any point.
import { systemClock, timestamp, sleep } from '#async/index.ts'
import type { DeepReadonly, KubeClient } from '#client/index.ts'
import {
  adoptableLabel,
  adoptions,
  findCondition,
  setCondition,
  type Adoption,
  type AdoptionAction,
  type AdoptionStatus,
  type ConditionUpdate,
  type PlannedObject,
} from '#crds/index.ts'
import { runLoop } from '#operator/framework/loop.ts'
import type { OperatorContext, OperatorController } from '#operator/framework/operator-context.ts'
import { recordEvent } from '#operator/framework/record-event.ts'
import type { ReconcileResult } from '#reconcile/index.ts'
import { asObstacle, consentOf, partiesOf, type Obstacle } from './parties.ts'
import type { AdoptionParties, AdoptionSteps } from './steps.ts'

interface AdoptionDeps<Plan> {
  readonly steps: AdoptionSteps<Plan>
  /** The API of a member whose syncer runs. */
  readonly clientOf: (member: string) => KubeClient | undefined
  /** Calls the listener with the name of each member whose syncer has started. Returns the function that ends this. */
  readonly onSyncerStarted: (listener: (member: string) => void) => () => void
}

/** How long this process may take to connect to members after its start, milliseconds. Until then it tells of no failure. */
const startMs = 30_000
/** How long to wait for syncers of this process to notice that nobody may act in the namespace, milliseconds. */
const noticeMs = 1500
/**
 * Seconds until the next attempt: while the consent in the member is missing, while the scheduler has not placed all
 * workloads, and after an obstacle or a failure. No event announces that one of these has changed.
 */
const lookSeconds = { consent: 3, placement: 0.5, failure: 5 } as const
/**
 * Maximum number of passes that remove marks from a namespace that is given back: controllers of the member may still
 * write what was just removed.
 */
const maxPasses = 20

/** The controller that plans, performs and undoes adoptions. */
export function adoptionController<Plan>(deps: AdoptionDeps<Plan>): OperatorController {
  return {
    name: 'adoption',
    async run(context, { signal, started }) {
      const informer = context.informers.of<Adoption>(adoptions)
      started()
      const keeper = new Adoptions(context, deps)
      await runLoop(
        {
          name: 'adoption',
          workers: 4,
          informers: [informer],
          fairnessKey: (key) => key,
          follow: (add) => [
            informer.onChange(({ key, before, after }) => {
              const isSame = before?.metadata.generation === after?.metadata.generation
              if (before === undefined || !isSame) add(key)
            }),
            deps.onSyncerStarted((member) => {
              for (const { metadata, spec } of informer.store.list()) if (spec.member === member) add(metadata.name)
            }),
          ],
          reconcile: async (key, life) => {
            const object = informer.store.get(key)
            return object === undefined ? {} : await keeper.reconcile(object, life)
          },
        },
        context,
        signal,
      )
    },
  }
}

/** What one reconcile found. Absent parts of the status stay as they are. */
interface Outcome {
  readonly adopted: Omit<ConditionUpdate, 'type'>
  readonly consented?: Omit<ConditionUpdate, 'type'>
  readonly planned?: Omit<ConditionUpdate, 'type'>
  readonly plan?: Pick<AdoptionStatus, 'counts' | 'objects' | 'findings'>
  readonly clusterId?: string
  readonly againSeconds?: number
}

const said = (reason: string, message: string): Outcome['adopted'] => ({ status: 'False', reason, message })

class Adoptions<Plan> {
  readonly #context: OperatorContext
  readonly #deps: AdoptionDeps<Plan>
  readonly #began = performance.now()

  constructor(context: OperatorContext, deps: AdoptionDeps<Plan>) {
    this.#context = context
    this.#deps = deps
  }

  async reconcile(object: DeepReadonly<Adoption>, signal: AbortSignal): Promise<ReconcileResult> {
    const found = partiesOf(object, this.#context, { clientOf: this.#deps.clientOf, signal })
    const outcome = 'obstacle' in found ? blocked(found.obstacle) : await this.#attempt(object, found.parties)
    if (!this.#isSilent(object, outcome)) await this.#writeStatus(object, outcome, signal)
    return outcome.againSeconds === undefined ? {} : { requeueAfterSeconds: outcome.againSeconds }
  }

  /** Whether the outcome says only that a side does not answer: what is adopted stays so, and a start takes its time. */
  #isSilent({ metadata, status }: DeepReadonly<Adoption>, { adopted }: Outcome): boolean {
    if (adopted.reason !== 'Unreachable') return false
    const known = status?.conditions?.find(({ type }) => type === 'Adopted')
    const isAdopted = known?.status === 'True' && known.observedGeneration === metadata.generation
    return isAdopted || performance.now() - this.#began < startMs
  }

  async #attempt(object: DeepReadonly<Adoption>, parties: AdoptionParties): Promise<Outcome> {
    try {
      return object.spec.mode === 'Undo' ? await this.#undo(parties) : await this.#adopt(object, parties)
    } catch (error) {
      parties.signal.throwIfAborted()
      return blocked(asObstacle(error, parties.member.name))
    }
  }

  async #adopt({ metadata, spec, status }: DeepReadonly<Adoption>, parties: AdoptionParties): Promise<Outcome> {
    const { steps } = this.#deps
    const record = await steps.recordOf(parties)
    const { clusterId } = parties
    if (record?.state === 'Adopted') return { ...whole(parties), clusterId }
    const wasAdopted = findCondition({ status: { conditions: [...(status?.conditions ?? [])] } }, 'Adopted')
    if (record === undefined && wasAdopted?.status === 'True')
      return {
        adopted: {
          status: 'True',
          reason: 'Released',
          message: 'its workloads have left the member cluster, which has its namespace back',
        },
        clusterId,
      }
    const { isConsented, obstacle } = await consentOf(parties)
    if (obstacle !== undefined) return { ...blocked(obstacle), clusterId }
    const isPlanned =
      status?.conditions?.find(({ type }) => type === 'Planned')?.observedGeneration === metadata.generation
    if (!isConsented && isPlanned) {
      // Only the label is waited for: the plan would be the same.
      const { message } = consentCondition(parties, isConsented)
      return { adopted: said('NotConsented', message), clusterId, againSeconds: lookSeconds.consent }
    }
    const plan = await steps.plan(parties, { isConsented })
    // The findings are of the first plan: they tell of the member around the namespace, and change nothing.
    const findings = isPlanned ? {} : { findings: await steps.findingsOf(parties, plan) }
    const { plan: found, ...rest } = this.#planOf(plan, isConsented)
    const planned = {
      ...rest,
      plan: { ...found, ...findings },
      consented: consentCondition(parties, isConsented),
      clusterId,
    }
    if (!isConsented) {
      const adopted = said('NotConsented', planned.consented.message)
      return { ...planned, adopted, againSeconds: lookSeconds.consent }
    }
    if (planned.planned.status !== 'True')
      return {
        ...planned,
        adopted: said('Refused', planned.planned.message),
        ...(spec.mode === 'Adopt' && { againSeconds: 30 }),
      }
    if (spec.mode !== 'Adopt')
      return { ...planned, adopted: said('NotAsked', 'nothing is changed while spec.mode is Plan') }
    return { ...planned, ...(await this.#takeOver(parties, plan)) }
  }

  #planOf(
    plan: Plan,
    isConsented: boolean,
  ): { plan: NonNullable<Outcome['plan']>; planned: Omit<ConditionUpdate, 'type'> } {
    const { steps } = this.#deps
    const [objects, found] = [steps.objectsOf(plan), steps.countsOf(plan)]
    const counts = [...found].map(([action, count]) => ({ action, objects: count }))
    return { plan: { counts, objects }, planned: plannedCondition(objects, found, isConsented) }
  }

  /** Goes on with the adoption from where it is. */
  async #takeOver(parties: AdoptionParties, plan: Plan): Promise<Pick<Outcome, 'adopted' | 'againSeconds'>> {
    const { steps } = this.#deps
    const record = await steps.beginAdoption(parties)
    if (record.state === 'Leaving') await steps.writeState(parties, 'Adopting')
    await steps.claimNamespace(parties, record)
    await steps.createUpstream(parties, plan)
    const waiting = await steps.notPlaced(parties, plan)
    if (waiting.length > 0)
      return { adopted: said('NotPlaced', shortened(waiting)), againSeconds: lookSeconds.placement }
    const problems = await steps.takeObjects(parties, plan)
    if (problems.length > 0)
      return { adopted: said('WouldChange', shortened(problems)), againSeconds: lookSeconds.failure }
    await steps.writeState(parties, 'Adopted')
    return whole(parties)
  }

  async #undo(parties: AdoptionParties): Promise<Outcome> {
    const { steps } = this.#deps
    const { signal, clusterId } = parties
    const record = await steps.recordOf(parties)
    if (record === undefined)
      return { adopted: said('Undone', `logical cluster "${parties.cluster}" has nothing of the namespace`), clusterId }
    if (record.state !== 'Leaving') {
      // Changes of tenants reach the member only in state Adopted: in other states there can be no obstacles.
      const obstacles = record.state === 'Adopted' ? await steps.obstaclesToUndo(parties) : []
      if (obstacles.length > 0)
        return {
          adopted: { status: 'True', reason: 'CannotUndo', message: shortened(obstacles) },
          againSeconds: lookSeconds.failure,
          clusterId,
        }
      await steps.writeState(parties, 'Leaving')
      await sleep(noticeMs, signal)
    }
    await this.#removeAllMarks(parties)
    await steps.removeUpstream(parties)
    await this.#removeAllMarks(parties)
    await steps.releaseNamespaces(parties, record)
    return { adopted: said('Undone', 'the member cluster has its namespace back as it was'), clusterId }
  }

  async #removeAllMarks(parties: AdoptionParties): Promise<void> {
    for (let pass = 0; pass < maxPasses; pass++) {
      if ((await this.#deps.steps.removeMarks(parties)) === 0) return
      await sleep(200, parties.signal)
    }
  }

  async #writeStatus(object: DeepReadonly<Adoption>, outcome: Outcome, signal: AbortSignal): Promise<void> {
    const { name, generation = 0 } = object.metadata
    const { clusters, log } = this.#context
    const now = timestamp(systemClock.now())
    const before = object.status?.conditions
    const updates = (['Consented', 'Planned', 'Adopted'] as const).map((type) => ({
      type,
      update: { Consented: outcome.consented, Planned: outcome.planned, Adopted: outcome.adopted }[type],
    }))
    const conditions = updates.reduce<ReturnType<typeof setCondition> | undefined>(
      (list, { type, update }) =>
        update === undefined ? list : setCondition(list, { type, observedGeneration: generation, ...update }, now),
      before,
    )
    const status = {
      observedGeneration: generation,
      conditions,
      ...outcome.plan,
      ...(outcome.clusterId !== undefined && { clusterId: outcome.clusterId }),
    }
    const changed = Object.entries(status).some(
      ([field, value]) =>
        JSON.stringify(value) !== JSON.stringify((object.status as Record<string, unknown> | undefined)?.[field]),
    )
    if (!changed) return
    await clusters.patch(adoptions, { name }, 'merge', { status }, { subresource: 'status', signal })
    const was = before?.find(({ type }) => type === 'Adopted')
    if (was?.reason === outcome.adopted.reason) return
    const { status: isAdopted, reason, message } = outcome.adopted
    const text = {
      type: isAdopted === 'True' || reason === 'Undone' || reason === 'NotAsked' ? 'Normal' : 'Warning',
      reason,
      message,
    } as const
    await recordEvent(object, text, { client: clusters, component: 'kcp-adoption', now, log }, signal)
  }
}

function blocked({ reason, message }: Obstacle): Outcome {
  return { adopted: said(reason, message), againSeconds: lookSeconds.failure }
}

function whole({ namespace, cluster }: AdoptionParties): { adopted: Outcome['adopted'] } {
  return {
    adopted: {
      status: 'True',
      reason: 'Adopted',
      message: `it is namespace "${namespace}" of logical cluster "${cluster}"`,
    },
  }
}

function consentCondition(
  { memberNamespace, clusterId, member }: AdoptionParties,
  isConsented: boolean,
): Omit<ConditionUpdate, 'type'> {
  const label = `${adoptableLabel}=${clusterId}`
  return isConsented
    ? { status: 'True', reason: 'Consented', message: `the namespace has the label ${label}` }
    : {
        status: 'False',
        reason: 'NotConsented',
        message: `an admin of member cluster "${member.name}" has to consent there: kubectl label namespace ${memberNamespace} ${label}`,
      }
}

function plannedCondition(
  objects: readonly PlannedObject[],
  counts: ReadonlyMap<AdoptionAction, number>,
  isConsented: boolean,
): Omit<ConditionUpdate, 'type'> {
  const refused = objects.filter(({ action }) => action === 'Refuse')
  if (refused.length > 0)
    return {
      status: 'False',
      reason: 'Refused',
      message: shortened(refused.map(({ kind, name, message = '' }) => `${kind} "${name}": ${message}`)),
    }
  const [adopted = 0, carried = 0, kept = 0] = (['Adopt', 'Carry', 'Keep'] as const).map((action) => counts.get(action))
  const text = `${adopted} objects are adopted, ${carried} are carried along, ${kept} stay in the member cluster`
  return isConsented
    ? { status: 'True', reason: 'Planned', message: `${text}; dry runs show no change` }
    : {
        status: 'Unknown',
        reason: 'NotConsented',
        message: `${text}; without consent, no dry run tells whether a write would change them`,
      }
}

const maxTold = 5

function shortened(sentences: readonly string[]): string {
  const more = sentences.length - maxTold
  return [...sentences.slice(0, maxTold), ...(more > 0 ? [`and ${more} more`] : [])].join('; ').slice(0, 4000)
}
