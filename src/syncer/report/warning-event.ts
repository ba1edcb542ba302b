// Warning Events upstream: about objects that a member refuses, and about things that a member cannot give an object.
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { isStatusError } from '#apimachinery/status/index.ts'
import { timestamp } from '#async/index.ts'
import { contentHash } from '#crds/index.ts'
import type { CachedObject } from '#syncer/context/resources.ts'
import type { Reconcile } from '#syncer/context/scope.ts'
import { events } from '#syncer/up/events.ts'

export interface Warning {
  readonly reason: string
  readonly message: string
  /** Whether the count of an existing Event grows by one. Default: the Event stays as it is. */
  readonly repeats?: boolean
}

const maxMessageLength = 1024
/** The message that was told last, by version of the object. */
const told = new WeakMap<CachedObject, string>()

/** Writes an Event of type Warning on the upstream object, once for each message of this version of it. */
export async function warnOnce(reconcile: Reconcile, object: CachedObject, warning: Warning): Promise<void> {
  if (told.get(object) === warning.message) return
  await warnOf(reconcile, object, warning)
  told.set(object, warning.message)
}

/**
 * Writes an Event of type Warning on the upstream object. An Event is a help only, so a refusal is logged; so is one
 * beyond the budget of the logical cluster. One object and message have one Event, so a restart does not write a second
 * one.
 */
export async function warnOf(
  reconcile: Reconcile,
  { apiVersion, kind, metadata }: CachedObject,
  { reason, message: text, repeats = false }: Warning,
): Promise<void> {
  const { cluster, signal } = reconcile
  const { clock, log, eventBudget } = reconcile.context
  const { name = '', namespace, uid = '', resourceVersion = '' } = metadata
  const message = text.slice(0, maxMessageLength)
  if (!eventBudget.take(cluster, clock.now())) {
    log.debug('an event is beyond the budget of its logical cluster', { cluster, name, reason, message })
    return
  }
  const now = timestamp(clock.now())
  const ref = { namespace: namespace ?? 'default', name: `${name.slice(0, 200)}.${contentHash([uid, message])}` }
  const about = { apiVersion, kind, name, uid, resourceVersion, ...(namespace !== undefined && { namespace }) }
  const event = {
    apiVersion: 'v1',
    kind: 'Event',
    metadata: ref,
    involvedObject: about,
    type: 'Warning',
    reason,
    message,
    source: { component: 'kcp-syncer' },
    firstTimestamp: now,
    lastTimestamp: now,
    count: 1,
  }
  const client = reconcile.upstreamClient
  try {
    try {
      await client.create(events, event, { signal })
    } catch (error) {
      if (!isStatusError(error, 'AlreadyExists')) throw error
      if (!repeats) return
      const known = await client.get<KubeObject & { readonly count?: number }>(events, ref, { signal })
      await client.patch(events, ref, 'merge', { lastTimestamp: now, count: (known.count ?? 1) + 1 }, { signal })
    }
  } catch (error) {
    if (!isStatusError(error)) throw error
    log.debug('could not write an event', { cluster, ...ref, error })
  }
}
