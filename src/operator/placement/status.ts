// The signs of a decision for the tenant: condition Placed while no member can take the workload or its logical cluster
// is asleep, and an Event. Without members, there is only the Event. Pure.
import type { KubeObject } from '#apimachinery/meta/index.ts'
import type { DeepReadonly } from '#client/index.ts'
import { contentHash, newEvent } from '#crds/index.ts'
import type { Rejection } from '#placement/index.ts'
import type { WorkloadRef } from './workload-key.ts'

interface Condition {
  readonly type: string
  readonly status?: string
  readonly message?: string
}

const conditionType = 'Placed'

/** Why copies are held, in one line; empty if none is. */
export function heldMessage(held: readonly Rejection[]): string {
  return held.map(({ message }) => message).join('; ')
}

/** What condition Placed tells. */
export interface PlacedSigns {
  readonly held: readonly Rejection[]
  /** Why the workload has no pods, because its logical cluster is asleep; undefined: it is awake. */
  readonly asleep?: string | undefined
}

/** Whether condition Placed already says this, or is absent if there is nothing to say. */
export function hasPlacedCondition(workload: DeepReadonly<KubeObject>, signs: PlacedSigns): boolean {
  const placed = conditionsOf(workload).find(({ type }) => type === conditionType)
  const wanted = placedCondition(signs)
  return placed?.message === wanted?.message && placed?.status === wanted?.status
}

/**
 * The conditions of a workload with condition Placed: False while something is held, True with the reason why there are
 * no pods while it is asleep, else absent.
 */
export function conditionsWithPlaced(
  workload: DeepReadonly<KubeObject>,
  signs: PlacedSigns,
  now: string,
): readonly Condition[] {
  const others = conditionsOf(workload).filter(({ type }) => type !== conditionType)
  const placed = placedCondition(signs)
  const times = { lastTransitionTime: now, lastUpdateTime: now }
  return placed === undefined ? others : [...others, Object.assign(placed, times)]
}

function placedCondition({ held, asleep }: PlacedSigns): (Condition & { readonly reason: string }) | undefined {
  const type = conditionType
  const message = heldMessage(held)
  if (message !== '') return { type, status: 'False', reason: held[0]?.reason ?? 'Held', message }
  return asleep === undefined ? undefined : { type, status: 'True', reason: 'Asleep', message: asleep }
}

/** Events are kept for an hour, so after a restart, Events are only repeated for younger workloads. */
const eventLifeMs = 3_600_000

/** Whether the workload is so new that an Event from its creation would still exist. */
export function mayTellAgain({ metadata }: DeepReadonly<KubeObject>, now: string): boolean {
  return Date.parse(now) - Date.parse(metadata.creationTimestamp ?? now) < eventLifeMs
}

/** A Warning for the tenant on the workload. */
export function heldEvent(
  { kind, namespace, name }: WorkloadRef,
  workload: DeepReadonly<KubeObject>,
  held: readonly Rejection[],
  now: string,
): KubeObject {
  const { uid = '', resourceVersion = '' } = workload.metadata
  return newEvent({
    // One name for one reason: an Event is not repeated after a restart.
    metadata: { namespace, name: `${name.slice(0, 200)}.${contentHash([uid, heldMessage(held)])}` },
    about: { apiVersion: kind.apiVersion, kind: kind.kind, namespace, name, uid, resourceVersion },
    type: 'Warning',
    reason: held[0]?.reason ?? 'Held',
    message: heldMessage(held),
    component: 'kcp-placement',
    now,
  })
}

function conditionsOf(workload: DeepReadonly<KubeObject>): readonly Condition[] {
  return ((workload['status'] ?? {}) as { conditions?: readonly Condition[] }).conditions ?? []
}
