// What one decision changes of its workload, as one patch of the status subresource. Pure.
import type { KubeObject } from '#apimachinery/meta/index.ts'
import type { DeepReadonly } from '#client/index.ts'
import {
  heldAnnotation,
  historyAnnotation,
  membersWithCopy,
  placedOnAnnotation,
  syncerFinalizer,
  type PlacedOn,
  type WorkloadKind,
} from '#crds/index.ts'
import { statusChange, type Rejection } from '#placement/index.ts'
import { historyWith, type Move } from './moves.ts'
import { conditionsWithPlaced, hasPlacedCondition, heldMessage } from './status.ts'

export interface DecisionParts {
  readonly after: PlacedOn
  readonly held: readonly Rejection[]
  /** The move that begins with this write. */
  readonly move: Move | undefined
  /** RFC 3339. */
  readonly now: string
  /** The member answers, so its syncer will also remove its finalizer. */
  readonly isReady: (member: string) => boolean
}

export interface DecisionPatch {
  readonly metadata: {
    /** Of the workload that the decision was made about: whoever has written it since, wins. */
    readonly resourceVersion: string | undefined
    readonly annotations: Readonly<Record<string, string | null>>
    readonly finalizers?: readonly string[]
  }
  readonly status?: Readonly<Record<string, unknown>>
}

/** A merge patch, which takes annotations and finalizers too, so that conditions need no second write. */
export function decisionPatch(
  kind: WorkloadKind,
  workload: DeepReadonly<KubeObject>,
  { after, held, move, now, isReady }: DecisionParts,
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
  const status = statusAfter(kind, workload, { after, held, now })
  return { metadata, ...(status && { status }) }
}

/**
 * The change of the status that follows from the decision: condition Placed, and which members' reports count. Their syncers would
 * need a write for the latter.
 */
function statusAfter(
  kind: WorkloadKind,
  workload: DeepReadonly<KubeObject>,
  { after, held, now }: Pick<DecisionParts, 'after' | 'held' | 'now'>,
): Readonly<Record<string, unknown>> | undefined {
  const merged = kind.status && statusChange(workload as KubeObject, { rule: kind.status, now, copies: after })
  if (!hasConditions(kind) || hasPlacedCondition(workload, heldMessage(held))) return merged
  const before = (workload['status'] ?? {}) as Readonly<Record<string, unknown>>
  const shown = { ...workload, status: { ...before, ...merged } }
  return { ...merged, conditions: conditionsWithPlaced(shown, held, now) }
}

/** The status of a CronJob has none. */
export function hasConditions({ status }: WorkloadKind): boolean {
  return status === undefined || status.conditions !== undefined
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
