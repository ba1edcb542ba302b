// Writes a plan on its workload in one write: the decision, the finalizers of the syncers that act on it, and condition Placed;
// and an Event when a wish cannot be met.
import type { KubeObject } from '../../apimachinery/meta/index.ts'
import { isStatusError } from '../../apimachinery/status/index.ts'
import type { DeepReadonly, KubeClient } from '../../client/index.ts'
import {
  heldAnnotation,
  membersWithCopy,
  placedOnAnnotation,
  syncerFinalizer,
  type PlacedOn,
} from '../../crds/index.ts'
import type { Rejection } from '../../placement/index.ts'
import type { Logger } from '../../telemetry/index.ts'
import type { Plan } from './plan.ts'
import { conditionsWithPlaced, hasPlacedCondition, heldEvent, heldMessage, mayTellAgain } from './status.ts'
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
  /** What the tenant was last told by an Event, since the start of the process. */
  readonly told: string | undefined
}

/** Writes what differs; nothing if the workload already says all of it. Rejects with Conflict if it has changed. */
export async function apply(
  ref: WorkloadRef,
  workload: DeepReadonly<KubeObject>,
  { before, plan, told }: Changes,
  context: ApplyContext,
  signal: AbortSignal,
): Promise<void> {
  const { placedOn: after, decision } = plan
  // Without members nothing is written on the object: it is as on any API server without controllers.
  const held = plan.isWritten ? decision.held : []
  const message = heldMessage(held)
  const heldBefore = workload.metadata.annotations?.[heldAnnotation] ?? ''
  const isCurrent = after === before && message === heldBefore && hasPlacedCondition(workload, message)
  if (!isCurrent) await write(ref, workload, { after, held }, context, signal)
  const reason = heldMessage(decision.held)
  if (reason === '' || reason === told || reason === heldBefore) return
  if (!plan.isWritten && !mayTellAgain(workload, context.now)) return
  await tell(ref, workload, decision.held, context, signal)
}

/** To the status subresource, which takes annotations and finalizers too, so that conditions need no second write. */
async function write(
  { kind, cluster, namespace, name }: WorkloadRef,
  workload: DeepReadonly<KubeObject>,
  { after, held }: { readonly after: PlacedOn; readonly held: readonly Rejection[] },
  { client, log, now, isReady }: ApplyContext,
  signal: AbortSignal,
): Promise<void> {
  const message = heldMessage(held)
  const placed = Object.keys(after).length === 0 ? null : JSON.stringify(after)
  const annotations = { [placedOnAnnotation]: placed, [heldAnnotation]: message === '' ? null : message }
  const { resourceVersion } = workload.metadata
  const metadata = { resourceVersion, annotations, ...newFinalizers(workload, annotations, isReady) }
  const changesStatus = !hasPlacedCondition(workload, message)
  const status = changesStatus ? { status: { conditions: conditionsWithPlaced(workload, held, now) } } : {}
  const options = { subresource: 'status', signal } as const
  await client.patch(kind.gvr, { namespace, name }, 'merge', { metadata, ...status }, options)
  const states = Object.fromEntries(Object.entries(after).map(([member, { state }]) => [member, state]))
  log.info('placed a workload', { cluster, namespace, name, states })
}

/** With the finalizers of the members that get a copy now; their syncers would each need a write for it. */
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

async function tell(
  ref: WorkloadRef,
  workload: DeepReadonly<KubeObject>,
  held: readonly Rejection[],
  { client, log, now }: ApplyContext,
  signal: AbortSignal,
): Promise<void> {
  try {
    await client.create(events, heldEvent(ref, workload, held, now), { signal })
  } catch (error) {
    // An Event is a help only; AlreadyExists: it was told before the process started.
    if (!isStatusError(error)) throw error
    const { cluster, namespace, name } = ref
    log.debug('could not write an event', { cluster, namespace, name, error })
  }
}
