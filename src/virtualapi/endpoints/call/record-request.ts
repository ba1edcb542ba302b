// Records the object in a request for the audit log, at the place where kube-apiserver does: decoded and with its defaults,
// before admission.
import { apiVersionOf, cloneJson, encodeJson, type KubeObject } from '#apimachinery/meta/index.ts'
import type { EndpointCall } from './endpoint-call.ts'

/** Names the object in the audit log, and records it if a log asks for it. */
export function recordObject(
  { exchange, definition, target }: Pick<EndpointCall, 'exchange' | 'definition' | 'target'>,
  object: KubeObject,
): void {
  exchange.names(object.metadata)
  if (!exchange.recordsRequest) return
  const { info, strategy, toStorage, fromStorage, storageApiVersion } = definition
  const copy = cloneJson(object)
  const stored = toStorage?.(copy) ?? { ...copy, apiVersion: storageApiVersion }
  strategy.applyDefaults?.(stored, { ...target.context, warnings: [] })
  exchange.requested(encodeJson(fromStorage?.(stored) ?? { ...stored, apiVersion: apiVersionOf(info) }))
}

/** Names and records an object that is never stored, such as a review. */
export function recordGiven({ exchange }: Pick<EndpointCall, 'exchange'>, object: KubeObject): void {
  exchange.names(object.metadata)
  if (exchange.recordsRequest) exchange.requested(encodeJson(object))
}
