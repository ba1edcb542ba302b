// The Event on a claim that waits because nothing uses it: its volume is made in the member where a pod uses the claim,
// which may never happen. The volume controller of Kubernetes writes such an Event too.
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { isStatusError } from '#apimachinery/status/index.ts'
import { timestamp, type Clock } from '#async/index.ts'
import { namespaceKeyOf, parseKey, type DeepReadonly } from '#client/index.ts'
import { contentHash, newEvent } from '#crds/index.ts'
import { memberOfClaim, usesClaim } from '#placement/index.ts'
import type { KeyQueue, ReconcileResult } from '#reconcile/index.ts'
import type { OperatorContext } from '#operator/framework/operator-context.ts'
import type { PlacementInputs } from './placement-inputs.ts'
import { mayTellAgain } from './status.ts'

type CachedObject = DeepReadonly<KubeObject>

const events = { group: '', version: 'v1', resource: 'events' } as const
/** A pod with a claim is often written right after the claim. */
const patienceMs = 5000

/** Reconciles each claim after it was created. Returns the function that ends it. */
export function followClaims({ claims }: PlacementInputs, queue: Pick<KeyQueue, 'add'>): () => void {
  return claims.onChange(({ key, before, after }) => {
    if (before === undefined && after !== undefined && isWaiting(after)) queue.add(key)
  })
}

export interface ClaimContext {
  readonly context: OperatorContext
  readonly inputs: PlacementInputs
  readonly clock: Clock
}

/** Tells once that the claim is not used. */
export async function reconcileClaim(
  key: string,
  { context, inputs, clock }: ClaimContext,
  signal: AbortSignal,
): Promise<ReconcileResult> {
  const claim = inputs.claims.store.get(key)
  // Without members, another program makes the volumes.
  if (claim === undefined || !isWaiting(claim) || inputs.members.store.size === 0) return {}
  const now = timestamp(clock.now())
  if (!mayTellAgain(claim, now)) return {}
  const waitMs = Date.parse(claim.metadata.creationTimestamp ?? now) + patienceMs - clock.now()
  if (waitMs > 0) return { requeueAfterSeconds: waitMs / 1000 }
  for (const workload of inputs.workloadsInNamespace(namespaceKeyOf(key))) if (usesClaim(workload, claim)) return {}
  const { cluster = '', namespace = '', name } = parseKey(key)
  try {
    await context
      .virtual(`/clusters/${cluster}`)
      .create(events, waitingEvent(claim, { namespace, name, now }), { signal })
  } catch (error) {
    // An Event is a help only; AlreadyExists: it was told before the process started.
    if (!isStatusError(error)) throw error
    context.log.debug('could not write an event', { cluster, namespace, name, error })
  }
  return {}
}

/** Whether no member has made its volume, or will. */
function isWaiting(claim: CachedObject): boolean {
  const { phase = 'Pending' } = (claim['status'] ?? {}) as { phase?: string }
  return phase === 'Pending' && memberOfClaim(claim) === undefined && claim.metadata.deletionTimestamp === undefined
}

function waitingEvent(
  { metadata: { uid = '', resourceVersion = '' } }: CachedObject,
  { namespace, name, now }: { readonly namespace: string; readonly name: string; readonly now: string },
): KubeObject {
  const message =
    'waiting for a workload that uses it: the volume is created in the member cluster in which that workload runs'
  return newEvent({
    metadata: { namespace, name: `${name.slice(0, 200)}.${contentHash([uid, message])}` },
    about: { apiVersion: 'v1', kind: 'PersistentVolumeClaim', namespace, name, uid, resourceVersion },
    type: 'Normal',
    reason: 'WaitForFirstConsumer',
    message,
    component: 'kcp-placement',
    now,
  })
}
