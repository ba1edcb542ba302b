// Writes a plan on its workload in one write: the decision, the finalizers of the syncers that act on it, and condition Placed;
// and Events when a move begins, when it has ended, and when a wish cannot be met.
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { isStatusError } from '#apimachinery/status/index.ts'
import type { DeepReadonly, KubeClient } from '#client/index.ts'
import { heldAnnotation, type PlacedOn } from '#crds/index.ts'
import type { Rejection } from '#placement/index.ts'
import type { Logger } from '#telemetry/index.ts'
import { decisionPatch, hasConditions } from './decision-patch.ts'
import { moveEvent, settledEvent, settledOn, workloadEvent, type EventText, type Move } from './moves.ts'
import type { Plan } from './plan.ts'
import { hasPlacedCondition, heldEvent, heldMessage, mayTellAgain } from './status.ts'
import type { WorkloadRef } from './workload-key.ts'

const events = { group: '', version: 'v1', resource: 'events' } as const

export interface ApplyContext {
  /** The API of the workload's logical cluster. */
  readonly client: KubeClient
  readonly log: Logger
  /** RFC 3339. */
  readonly now: string
  /** The member answers, so its syncer will also remove its finalizer. */
  readonly isReady: (member: string) => boolean
}

export interface Changes {
  readonly before: PlacedOn
  readonly plan: Plan
  /** The move that begins with this write. */
  readonly move?: Move
  /** That members were lost with this write, or came back, or that the workload is divided again. */
  readonly asides?: readonly EventText[]
  /** What the tenant was last told by an Event, since the start of the process. */
  readonly told: string | undefined
}

/**
 * True if neither this decision nor one before it can be written without our cache showing it. After a lost answer this one may be;
 * after a conflict our own last one may be what the cache does not show yet. Then its room stays taken until the next visit.
 */
export function isRefusedWrite(error: unknown): boolean {
  return isStatusError(error) && error.code < 500 && error.code !== 408 && error.code !== 409
}

/** Writes what differs; nothing if the workload already says all of it. Rejects with Conflict if it has changed. */
export async function apply(
  ref: WorkloadRef,
  workload: DeepReadonly<KubeObject>,
  { before, plan, move, asides = [], told }: Changes,
  context: ApplyContext,
  signal: AbortSignal,
): Promise<void> {
  const { placedOn: after, decision } = plan
  // Without members nothing is written on the object: it is as on any API server without controllers.
  const held = plan.isWritten ? decision.held : []
  const message = heldMessage(held)
  const heldBefore = workload.metadata.annotations?.[heldAnnotation] ?? ''
  const isTold = !hasConditions(ref.kind) || hasPlacedCondition(workload, message)
  const isCurrent = after === before && message === heldBefore && isTold
  if (!isCurrent) await write(ref, workload, { after, held, move }, context, signal)
  if (after !== before)
    await tellStory(ref, workload, { move, asides, settled: settledOn(before, after) }, context, signal)
  const reason = heldMessage(decision.held)
  if (reason === '' || reason === told || reason === heldBefore) return
  // Without members, pods and Jobs are run by somebody else, or are too many to say so of each.
  if (!plan.isWritten && (ref.kind.move === 'stays' || !mayTellAgain(workload, context.now))) return
  await tell(ref, workload, decision.held, context, signal)
}

async function write(
  { kind, cluster, namespace, name }: WorkloadRef,
  workload: DeepReadonly<KubeObject>,
  {
    after,
    held,
    move,
  }: { readonly after: PlacedOn; readonly held: readonly Rejection[]; readonly move: Move | undefined },
  { client, log, now, isReady }: ApplyContext,
  signal: AbortSignal,
): Promise<void> {
  const patch = decisionPatch(kind, workload, { after, held, move, now, isReady })
  const options = { subresource: 'status', signal } as const
  await client.patch(kind.gvr, { namespace, name }, 'merge', patch, options)
  const states = Object.fromEntries(Object.entries(after).map(([member, { state }]) => [member, state]))
  log.info('placed a workload', { cluster, namespace, name, states })
}

/** Events that a move begins and that it has ended, and what else comes with the write. */
async function tellStory(
  ref: WorkloadRef,
  workload: DeepReadonly<KubeObject>,
  {
    move,
    asides,
    settled,
  }: Required<Pick<Changes, 'asides'>> & {
    readonly move: Move | undefined
    readonly settled: readonly string[] | undefined
  },
  context: ApplyContext,
  signal: AbortSignal,
): Promise<void> {
  const texts: EventText[] = [
    ...asides,
    ...(move ? [moveEvent(move)] : []),
    ...(settled && ref.kind.move !== 'stays' ? [settledEvent(settled)] : []),
  ]
  for (const text of texts) await createEvent(ref, workloadEvent(ref, workload, text, context.now), context, signal)
}

async function tell(
  ref: WorkloadRef,
  workload: DeepReadonly<KubeObject>,
  held: readonly Rejection[],
  context: ApplyContext,
  signal: AbortSignal,
): Promise<void> {
  await createEvent(ref, heldEvent(ref, workload, held, context.now), context, signal)
}

async function createEvent(
  { cluster, namespace, name }: WorkloadRef,
  event: KubeObject,
  { client, log }: ApplyContext,
  signal: AbortSignal,
): Promise<void> {
  try {
    await client.create(events, event, { signal })
  } catch (error) {
    // An Event is a help only; AlreadyExists: it was told before the process started.
    if (!isStatusError(error)) throw error
    log.debug('could not write an event', { cluster, namespace, name, error })
  }
}
