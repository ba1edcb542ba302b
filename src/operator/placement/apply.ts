// Writes a plan on its workload: the decision, condition Placed, and an Event when a wish cannot be met.
import type { KubeObject } from '../../apimachinery/meta/index.ts'
import { isStatusError } from '../../apimachinery/status/index.ts'
import type { DeepReadonly, KubeClient } from '../../client/index.ts'
import { heldAnnotation, placedOnAnnotation, type PlacedOn } from '../../crds/index.ts'
import type { Logger } from '../../telemetry/index.ts'
import type { Plan } from './plan.ts'
import { conditionsWithPlaced, hasPlacedCondition, heldEvent, heldMessage } from './status.ts'
import type { WorkloadRef } from './workload-key.ts'

const events = { group: '', version: 'v1', resource: 'events' } as const

export interface ApplyContext {
  /** The API of the workload's logical cluster. */
  readonly client: KubeClient
  readonly log: Logger
  /** RFC 3339. */
  readonly now: string
}

/** Writes what differs; nothing if the workload already says all of it. Rejects with Conflict if it has changed. */
export async function apply(
  ref: WorkloadRef,
  workload: DeepReadonly<KubeObject>,
  { before, plan }: { readonly before: PlacedOn; readonly plan: Plan },
  { client, log, now }: ApplyContext,
  signal: AbortSignal,
): Promise<void> {
  const { kind, cluster, namespace, name } = ref
  const { placedOn: after, decision } = plan
  const held = heldMessage(decision.held)
  const heldBefore = workload.metadata.annotations?.[heldAnnotation] ?? ''
  const hasCondition = hasPlacedCondition(workload, held)
  if (after === before && held === heldBefore && hasCondition) return
  const placed = Object.keys(after).length === 0 ? null : JSON.stringify(after)
  const annotations = { [placedOnAnnotation]: placed, [heldAnnotation]: held === '' ? null : held }
  const metadata = { resourceVersion: workload.metadata.resourceVersion, annotations }
  const written = await client.patch<KubeObject>(kind.gvr, { namespace, name }, 'merge', { metadata }, { signal })
  if (!hasCondition) {
    const status = { conditions: conditionsWithPlaced(written, decision.held, now) }
    const patch = { metadata: { resourceVersion: written.metadata.resourceVersion }, status }
    await client.patch(kind.gvr, { namespace, name }, 'merge', patch, { subresource: 'status', signal })
  }
  const states = Object.fromEntries(Object.entries(after).map(([member, { state }]) => [member, state]))
  log.info('placed a workload', { cluster, namespace, name, states })
  if (held === '' || held === heldBefore) return
  try {
    await client.create(events, heldEvent(ref, workload, decision.held, now), { signal })
  } catch (error) {
    // The decision is written; an Event is a help only.
    if (!isStatusError(error)) throw error
    log.debug('could not write an event', { cluster, namespace, name, error })
  }
}
