// An owner in another namespace does not count: an Event on the object tells the tenant, as upstream does.
import { createHash } from 'node:crypto'
import { tolerate } from '#apimachinery/status/index.ts'
import { systemClock, timestamp } from '#async/index.ts'
import type { KubeClient } from '#client/index.ts'
import type { GraphObject } from '#reconcile/object-graph/index.ts'
import type { Owner } from './garbage-owners.ts'

const events = { group: '', version: 'v1', resource: 'events' } as const

/** Writes the Event `OwnerRefInvalidNamespace` once per object and owner. Does nothing for valid references. */
export async function reportWrongOwner(
  { key, apiVersion, kind, metadata }: GraphObject,
  { reference, wrongNamespace }: Owner,
  { client }: { client: KubeClient },
  signal: AbortSignal,
): Promise<void> {
  if (wrongNamespace === undefined) return
  const { uid = '' } = metadata
  const namespace = key.namespace === '' ? 'default' : key.namespace
  const suffix = createHash('sha256').update(`${uid}|${reference.uid}`).digest('hex').slice(0, 16)
  const text = `[${reference.apiVersion}/${reference.kind}, namespace: ${key.namespace}, name: ${reference.name}, uid: ${reference.uid}]`
  const now = timestamp(systemClock.now())
  const event = {
    apiVersion: 'v1',
    kind: 'Event',
    metadata: { name: `${key.name}.${suffix}`.slice(-253), namespace },
    involvedObject: { apiVersion, kind, name: key.name, uid, ...(key.namespace && { namespace: key.namespace }) },
    reason: 'OwnerRefInvalidNamespace',
    message: `ownerRef ${text} does not exist in namespace "${key.namespace}"`,
    type: 'Warning',
    source: { component: 'garbage-collector-controller' },
    firstTimestamp: now,
    lastTimestamp: now,
    count: 1,
  }
  // The Event exists already, or the namespace is being deleted.
  await client.create(events, event, { signal }).catch(tolerate('AlreadyExists', 'Forbidden', 'NotFound'))
}
