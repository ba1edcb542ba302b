// An Event of a member as the tenant's own cluster would have written it.
import { cloneJson, type ClusterId, type KubeObject } from '../../apimachinery/meta/index.ts'
import type { DeepReadonly } from '../../client/index.ts'

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

/** `name` and `uid`: of the upstream object. Names of namespaces in the message are those of the tenant. */
export function eventUp(
  event: DeepReadonly<MemberEvent>,
  { namespace, clusterId, name, uid }: { namespace: string; clusterId: ClusterId; name: string; uid: string },
): KubeObject {
  const { metadata, involvedObject, related, message, ...content } = cloneJson(event) as MemberEvent
  return {
    ...content,
    metadata: { ...(metadata.name && { name: metadata.name }), namespace },
    involvedObject: { ...referenceUp(involvedObject, namespace), name, uid },
    ...(related && { related: referenceUp(related, namespace) }),
    ...(message !== undefined && { message: message.replaceAll(`${clusterId}-`, '') }),
  }
}

function referenceUp(reference: ObjectReference = {}, namespace: string): ObjectReference {
  const { resourceVersion: _, uid: _uid, ...rest } = reference
  return { ...rest, ...(reference.namespace !== undefined && { namespace }) }
}
