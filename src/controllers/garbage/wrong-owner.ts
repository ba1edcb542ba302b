// Owners in other namespaces own nothing: the tenant is told with an Event on the object that names one.
import { createHash } from 'node:crypto'
import { tolerate } from '../../apimachinery/status/index.ts'
import { systemClock, timestamp } from '../../async/index.ts'
import type { KubeClient } from '../../client/index.ts'
import type { GraphObject } from './object-graph.ts'
import type { Owner } from './owners.ts'

const events = { group: '', version: 'v1', resource: 'events' } as const

/** Writes the Event `OwnerRefInvalidNamespace`, once per object and owner. */
export async function tellWrongOwner(
  { place, apiVersion, kind, metadata }: GraphObject,
  { reference, wrongNamespace }: Owner,
  { client }: { client: KubeClient },
  signal: AbortSignal,
): Promise<void> {
  if (wrongNamespace === undefined) return
  const { uid = '' } = metadata
  const namespace = place.namespace === '' ? 'default' : place.namespace
  const suffix = createHash('sha256').update(`${uid}|${reference.uid}`).digest('hex').slice(0, 16)
  const text = `[${reference.apiVersion}/${reference.kind}, namespace: ${place.namespace}, name: ${reference.name}, uid: ${reference.uid}]`
  const now = timestamp(systemClock.now())
  const event = {
    apiVersion: 'v1',
    kind: 'Event',
    metadata: { name: `${place.name}.${suffix}`.slice(-253), namespace },
    involvedObject: { apiVersion, kind, name: place.name, uid, ...(place.namespace && { namespace: place.namespace }) },
    reason: 'OwnerRefInvalidNamespace',
    message: `ownerRef ${text} does not exist in namespace "${place.namespace}"`,
    type: 'Warning',
    source: { component: 'garbage-collector-controller' },
    firstTimestamp: now,
    lastTimestamp: now,
    count: 1,
  }
  // Told already, or the namespace is going.
  await client.create(events, event, { signal }).catch(tolerate('AlreadyExists', 'Forbidden', 'NotFound'))
}
