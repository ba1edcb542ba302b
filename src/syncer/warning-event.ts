// Warning Events upstream: what a member does not give an object that it has.
import type { KubeObject } from '../apimachinery/meta/index.ts'
import { isStatusError } from '../apimachinery/status/index.ts'
import { timestamp } from '../async/index.ts'
import type { DeepReadonly } from '../client/index.ts'
import { contentHash } from '../crds/index.ts'
import type { SyncContext, Visit } from './sync-context.ts'
import { events } from './up-events.ts'

/** What was told of this version of an object already. */
const told = new WeakMap<DeepReadonly<KubeObject>, string>()

/** Writes an Event of type Warning on the upstream object, once for each message. */
export async function warnOf(
  { clock, log, upstream }: SyncContext,
  object: DeepReadonly<KubeObject>,
  { cluster, namespace, name }: Pick<Visit, 'cluster' | 'namespace' | 'name'>,
  { reason, message }: { readonly reason: string; readonly message: string },
  signal: AbortSignal,
): Promise<void> {
  if (told.get(object) === message) return
  const { uid = '', resourceVersion = '' } = object.metadata
  const { apiVersion, kind } = object
  const now = timestamp(clock.now())
  const event = {
    apiVersion: 'v1',
    kind: 'Event',
    // One name for one reason: an Event is not repeated after a restart.
    metadata: { namespace, name: `${name.slice(0, 200)}.${contentHash([uid, message])}` },
    involvedObject: { apiVersion, kind, namespace, name, uid, resourceVersion },
    ...{ type: 'Warning', reason, message, source: { component: 'kcp-syncer' } },
    ...{ firstTimestamp: now, lastTimestamp: now, count: 1 },
  }
  try {
    await upstream.client(cluster).create(events, event, { signal })
  } catch (error) {
    // An Event is a help only; AlreadyExists: it was told before.
    if (!isStatusError(error)) throw error
    log.debug('could not write an event', { cluster, namespace, name, error })
  }
  told.set(object, message)
}
