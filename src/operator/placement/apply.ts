// Writes a plan on its workload in one write: the decision, the finalizers of the syncers that act on it, and condition
// Placed; and Events when a move begins, when it has ended, and when a wish cannot be met.
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { isStatusError } from '#apimachinery/status/index.ts'
import type { DeepReadonly, KubeClient } from '#client/index.ts'
import {
  heldAnnotation,
  historyAnnotation,
  membersWithCopy,
  type PlacedOn,
  placedOnAnnotation,
  syncerFinalizer,
  type WorkloadKind,
} from '#crds/index.ts'
import { type Rejection, statusChange } from '#placement/index.ts'
import type { Logger } from '#telemetry/index.ts'
import { type EventText, historyWith, type Move, moveEvent, settledEvent, settledOn, workloadEvent } from './moves.ts'
import type { Plan } from './plan.ts'
import { conditionsWithPlaced, hasPlacedCondition, heldEvent, heldMessage, mayTellAgain } from './status.ts'
import type { WorkloadRef } from './workload-key.ts'

const events = { group: '', version: 'v1', resource: 'events' } as const

interface ApplyContext {
  /** The API of the workload's logical cluster. */
  readonly client: KubeClient
  readonly log: Logger
  /** RFC 3339. */
  readonly now: string
  /** True if the member answers: only then can its syncer remove the finalizer again. */
  readonly isReady: (member: string) => boolean
}

export interface PlacedWorkload {
  readonly ref: WorkloadRef
  readonly workload: DeepReadonly<KubeObject>
}

interface Changes {
  readonly before: PlacedOn
  readonly plan: Plan
  /** The move that begins with this write. */
  readonly move?: Move
  /** Events besides those of a move: members were lost or came back, or the workload is divided again. */
  readonly asides?: readonly EventText[]
  /** The last Event for the tenant since the start of the process. */
  readonly told: string | undefined
}

/**
 * True if this decision was certainly not written and our cache has every earlier one, so that its room can be freed.
 * After a lost response the decision may have been written; after a conflict the cache may lack our previous one. In
 * both cases the room stays taken until the next reconcile.
 */
export function isRefusedWrite(error: unknown): boolean {
  return isStatusError(error) && error.code < 500 && error.code !== 408 && error.code !== 409
}

/** Writes what differs; nothing if the workload already says all of it. Rejects with Conflict if it has changed. */
export async function apply(
  subject: PlacedWorkload,
  { before, plan, move, asides = [], told }: Changes,
  context: ApplyContext,
  signal: AbortSignal,
): Promise<void> {
  const { ref, workload } = subject
  const { placedOn: after, decision } = plan
  // Without members nothing is written on the object: it stays as on an API server without controllers.
  const held = plan.isWritten ? decision.held : []
  const message = heldMessage(held)
  const heldBefore = workload.metadata.annotations?.[heldAnnotation] ?? ''
  const isTold = !hasConditions(ref.kind) || hasPlacedCondition(workload, { held, asleep: plan.asleep })
  const isCurrent = after === before && message === heldBefore && isTold
  if (!isCurrent) await write(subject, { after, held, asleep: plan.asleep, move }, context, signal)
  if (after !== before) await tellStory(subject, { move, asides, settled: settledOn(before, after) }, context, signal)
  const reason = heldMessage(decision.held)
  if (reason === '' || reason === told || reason === heldBefore) return
  // Without members, another program may run pods and Jobs, and there can be too many of them for an Event each.
  if (!plan.isWritten && (ref.kind.move === 'stays' || !mayTellAgain(workload, context.now))) return
  await createEvent(ref, heldEvent(ref, workload, decision.held, context.now), context, signal)
}

async function write(
  { ref: { kind, cluster, namespace, name }, workload }: PlacedWorkload,
  decided: Pick<DecisionParts, 'after' | 'held' | 'asleep' | 'move'>,
  { client, log, now, isReady }: ApplyContext,
  signal: AbortSignal,
): Promise<void> {
  const { after } = decided
  const patch = decisionPatch(kind, workload, { ...decided, now, isReady })
  const options = { subresource: 'status', signal } as const
  await client.patch(kind.gvr, { namespace, name }, 'merge', patch, options)
  const states = Object.fromEntries(Object.entries(after).map(([member, { state }]) => [member, state]))
  log.info('placed a workload', { cluster, namespace, name, states })
}

/** Creates the Events of a write: about the begin of a move, about its end, and the `asides`. */
async function tellStory(
  { ref, workload }: PlacedWorkload,
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

async function createEvent(
  { cluster, namespace, name }: WorkloadRef,
  event: KubeObject,
  { client, log }: ApplyContext,
  signal: AbortSignal,
): Promise<void> {
  try {
    await client.create(events, event, { signal })
  } catch (error) {
    // Events are best effort. AlreadyExists: the Event was created before this process started.
    if (!isStatusError(error)) throw error
    log.debug('could not write an event', { cluster, namespace, name, error })
  }
}

interface DecisionParts {
  readonly after: PlacedOn
  readonly held: readonly Rejection[]
  /** As in Plan. */
  readonly asleep?: string | undefined
  /** The move that begins with this write. */
  readonly move: Move | undefined
  /** RFC 3339. */
  readonly now: string
  /** True if the member answers: only then can its syncer remove the finalizer again. */
  readonly isReady: (member: string) => boolean
}

export interface DecisionPatch {
  readonly metadata: {
    /** The version of the workload that the decision was made about: a later write by others wins. */
    readonly resourceVersion: string | undefined
    readonly annotations: Readonly<Record<string, string | null>>
    readonly finalizers?: readonly string[]
  }
  readonly status?: Readonly<Record<string, unknown>>
}

/**
 * A merge patch of the status subresource. It changes annotations and finalizers too, so that conditions need no second
 * write.
 */
export function decisionPatch(
  kind: WorkloadKind,
  workload: DeepReadonly<KubeObject>,
  { after, held, asleep, move, now, isReady }: DecisionParts,
): DecisionPatch {
  const message = heldMessage(held)
  const placed = Object.keys(after).length === 0 ? null : JSON.stringify(after)
  const annotations = {
    [placedOnAnnotation]: placed,
    [heldAnnotation]: message === '' ? null : message,
    // A Job or pod ends where it began: it has no history.
    ...(move && kind.move !== 'stays' && { [historyAnnotation]: historyWith(workload, move, now) }),
  }
  const { resourceVersion } = workload.metadata
  const metadata = { resourceVersion, annotations, ...newFinalizers(workload, annotations, isReady) }
  const status = statusAfter(kind, workload, { after, held, asleep, now })
  return { metadata, ...(status && { status }) }
}

/**
 * The change of the status that follows from the decision: condition Placed, and the status merged from the reports of
 * the members that count now. Merging it here saves the syncers of these members a write.
 */
function statusAfter(
  kind: WorkloadKind,
  workload: DeepReadonly<KubeObject>,
  { after, held, asleep, now }: Pick<DecisionParts, 'after' | 'held' | 'asleep' | 'now'>,
): Readonly<Record<string, unknown>> | undefined {
  const merged = kind.status && statusChange(workload as KubeObject, { rule: kind.status, now, copies: after })
  if (!hasConditions(kind) || hasPlacedCondition(workload, { held, asleep })) return merged
  const before = (workload['status'] ?? {}) as Readonly<Record<string, unknown>>
  const shown = { ...workload, status: { ...before, ...merged } }
  return { ...merged, conditions: conditionsWithPlaced(shown, { held, asleep }, now) }
}

/** Whether the status of the kind has conditions: that of a CronJob has none. */
function hasConditions({ status }: WorkloadKind): boolean {
  return status === undefined || status.conditions !== undefined
}

/** Adds the finalizers of the members that get a copy now, which saves each of their syncers a write. */
function newFinalizers(
  { apiVersion, kind, metadata }: DeepReadonly<KubeObject>,
  annotations: Record<string, string | null>,
  isReady: (member: string) => boolean,
): { readonly finalizers?: readonly string[] } {
  const text = annotations[placedOnAnnotation]
  if (typeof text !== 'string') return {}
  const decided: KubeObject = { apiVersion, kind, metadata: { annotations: { [placedOnAnnotation]: text } } }
  const { finalizers = [] } = metadata
  const missing = membersWithCopy(decided)
    .filter(isReady)
    .map((member) => syncerFinalizer(member))
    .filter((finalizer) => !finalizers.includes(finalizer))
  return missing.length === 0 ? {} : { finalizers: [...finalizers, ...missing] }
}
