// An Event of a member as the tenant's own cluster would have written it.
import { isJsonNumber, isJsonObject, type ClusterId, type KubeObject } from '#apimachinery/meta/index.ts'
import type { DeepReadonly } from '#client/index.ts'
import { memberAnnotation } from '#crds/index.ts'

interface ObjectReference {
  readonly kind?: string
  readonly namespace?: string
  readonly name?: string
  readonly [field: string]: unknown
}

export interface MemberEvent extends KubeObject {
  readonly involvedObject?: ObjectReference
  readonly related?: ObjectReference
  readonly message?: string
  readonly lastTimestamp?: string
  readonly eventTime?: string
  readonly series?: { readonly lastObservedTime?: string }
}

/** Bounds of the texts that members choose; that of the message is the bound in the API of Events. */
const maxMessageLength = 1024
const maxTextLength = 128
const shownFields = [
  'type',
  'reason',
  'action',
  'reportingComponent',
  'reportingInstance',
  'source',
  'series',
  'count',
  'firstTimestamp',
  'lastTimestamp',
  'eventTime',
] as const

/** `about`: the upstream object. Names of namespaces in the message are those of the tenant. */
export function eventUp(
  event: DeepReadonly<MemberEvent>,
  { member, clusterId, about }: { member: string; clusterId: ClusterId; about: DeepReadonly<KubeObject> },
): KubeObject {
  const { name = '', namespace = '', uid = '' } = about.metadata
  const { involvedObject, related, message } = event
  const content = shownFields.flatMap((field) =>
    event[field] === undefined ? [] : [[field, bounded(event[field])] as const],
  )
  const { fieldPath } = involvedObject ?? {}
  return {
    apiVersion: 'v1',
    kind: 'Event',
    ...Object.fromEntries(content),
    metadata: {
      ...(event.metadata.name && { name: event.metadata.name }),
      namespace,
      annotations: { [memberAnnotation]: member },
    },
    involvedObject: {
      apiVersion: about.apiVersion,
      kind: about.kind,
      namespace,
      name,
      uid,
      ...(typeof fieldPath === 'string' && { fieldPath: fieldPath.slice(0, maxMessageLength) }),
    },
    ...(related && { related: relatedUp(related, namespace) }),
    ...(typeof message === 'string' && { message: message.replaceAll(`${clusterId}-`, '').slice(0, maxMessageLength) }),
  }
}

function relatedUp({ apiVersion, kind, namespace, name }: ObjectReference, upstream: string): ObjectReference {
  const reference = { apiVersion, kind, ...(namespace !== undefined && { namespace: upstream }), name }
  return bounded(reference) as ObjectReference
}

/** The value with its texts cut, and without objects and lists in its fields. */
function bounded(value: unknown): unknown {
  if (!isJsonObject(value) || isJsonNumber(value)) return boundedLeaf(value)
  const parts = Object.entries(value).map(([field, part]) => [field, boundedLeaf(part)] as const)
  return Object.fromEntries(parts.filter(([, part]) => part !== undefined).slice(0, maxParts))
}
/** How many fields of such a value are kept: more than any of them has. */
const maxParts = 8

function boundedLeaf(value: unknown): unknown {
  if (typeof value === 'string') return value.slice(0, maxTextLength)
  return isJsonNumber(value) || typeof value === 'boolean' ? value : undefined
}
