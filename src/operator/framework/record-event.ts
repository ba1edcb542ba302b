// Events on our cluster-scoped objects, for `kubectl describe` and `kubectl events`.
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { newEvent } from '#crds/index.ts'
import { isStatusError } from '#apimachinery/status/index.ts'
import type { DeepReadonly, KubeClient } from '#client/index.ts'
import type { Logger } from '#telemetry/index.ts'

export interface EventText {
  readonly type: 'Normal' | 'Warning'
  readonly reason: string
  readonly message: string
}

export interface EventContext {
  readonly client: KubeClient
  /** The reporter, such as `kcp-logical-cluster`. */
  readonly component: string
  /** RFC 3339. */
  readonly now: string
  readonly log: Logger
}

const events = { group: '', version: 'v1', resource: 'events' } as const

/** Writes an Event about the object into namespace default. An Event is a help only: a refusal is logged. */
export async function recordEvent(
  { apiVersion, kind, metadata }: DeepReadonly<KubeObject>,
  { type, reason, message }: EventText,
  { client, component, now, log }: EventContext,
  signal: AbortSignal,
): Promise<void> {
  const { name = '', uid = '', resourceVersion = '' } = metadata
  const event = newEvent({
    metadata: { namespace: 'default', generateName: `${name}.` },
    about: { apiVersion, kind, name, uid, resourceVersion },
    ...{ type, reason, message, component, now },
  })
  try {
    await client.create(events, event, { signal })
  } catch (error) {
    if (!isStatusError(error)) throw error
    log.debug('could not write an event', { name, error })
  }
}
