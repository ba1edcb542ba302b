// An Ingress whose class a member does not have: its copy is there, but no controller of the member serves it. An Event says so.
import type { KubeObject } from '../apimachinery/meta/index.ts'
import { isStatusError } from '../apimachinery/status/index.ts'
import { timestamp } from '../async/index.ts'
import type { DeepReadonly } from '../client/index.ts'
import { contentHash, type MemberClass } from '../crds/index.ts'
import type { SyncContext, Visit } from './sync-context.ts'
import { events } from './up-events.ts'

/** What was told of this version of an object already. */
const told = new WeakMap<DeepReadonly<KubeObject>, string>()

/** Writes an Event on the Ingress if the member lacks its class. */
export async function reportMissingClass(
  context: SyncContext,
  ingress: DeepReadonly<KubeObject>,
  visit: Visit,
  signal: AbortSignal,
): Promise<void> {
  const { member, clock, log, upstream } = context
  const missing = missingIngressClass(ingress, member.classesOf?.('IngressClass'))
  if (missing === undefined || told.get(ingress) === missing) return
  const message = `member cluster "${member.name}" has no IngressClass "${missing}": nothing there serves the Ingress until it has one`
  const { cluster, namespace, name } = visit
  const { uid = '', resourceVersion = '' } = ingress.metadata
  const now = timestamp(clock.now())
  const event = {
    apiVersion: 'v1',
    kind: 'Event',
    // One name for one reason: an Event is not repeated after a restart.
    metadata: { namespace, name: `${name.slice(0, 200)}.${contentHash([uid, message])}` },
    involvedObject: { apiVersion: 'networking.k8s.io/v1', kind: 'Ingress', namespace, name, uid, resourceVersion },
    ...{ type: 'Warning', reason: 'ClassMissing', message, source: { component: 'kcp-syncer' } },
    ...{ firstTimestamp: now, lastTimestamp: now, count: 1 },
  }
  try {
    await upstream.client(cluster).create(events, event, { signal })
  } catch (error) {
    // An Event is a help only; AlreadyExists: it was told before.
    if (!isStatusError(error)) throw error
    log.debug('could not write an event', { cluster, namespace, name, error })
  }
  told.set(ingress, missing)
}

/** The class that the Ingress names and a member with these classes does not have. `classes` undefined: not known. */
export function missingIngressClass(
  ingress: DeepReadonly<KubeObject>,
  classes: readonly DeepReadonly<MemberClass>[] | undefined,
): string | undefined {
  const { ingressClassName: name } = (ingress['spec'] ?? {}) as { ingressClassName?: string }
  if (!name || classes === undefined) return undefined
  return classes.some((one) => one.name === name) ? undefined : name
}
