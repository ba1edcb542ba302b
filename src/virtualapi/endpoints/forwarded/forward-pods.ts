// Forwards writes of tenants on pods that run in a member: they are made in the member first, so that an accepted write
// holds there, too.
import type { JsonObject, KubeObject } from '#apimachinery/meta/index.ts'
import { isStatusError, requestEntityTooLarge } from '#apimachinery/status/index.ts'
import { memberAnnotation } from '#crds/index.ts'
import type { PodWrite, PodWriter } from '#virtualapi/outbound/members/pod-writer.ts'
import { decodeMetadata } from '#virtualapi/kinds/resources/object-bytes.ts'
import type { Forward } from '#virtualapi/write/registry/write.ts'
import type { EndpointCall } from '#virtualapi/endpoints/call/endpoint-call.ts'
import type { EndpointDependencies } from '#virtualapi/endpoints/call/dependencies.ts'

const forwardedParts: ReadonlySet<string> = new Set(['', 'status', 'ephemeralcontainers', 'resize'])
const verbs: ReadonlySet<string> = new Set(['create', 'update', 'patch', 'delete', 'deletecollection'])

/**
 * The call with a target that forwards writes on pods. Writes of our own processes are not forwarded: they come from
 * members, or are passed on later.
 */
export function withForward(call: EndpointCall<EndpointDependencies>): EndpointCall<EndpointDependencies> {
  const { exchange, dependencies, definition, target } = call
  const { group, resource } = definition.info
  if (group !== '' || resource !== 'pods' || !verbs.has(exchange.info.verb)) return call
  if (dependencies.podWriter === undefined || exchange.user.realm.kind === 'installation') return call
  return { ...call, target: { ...target, forward: forwardTo(dependencies.podWriter, call) } }
}

function forwardTo(writer: PodWriter, call: EndpointCall): Forward {
  return {
    async update(next, pod, subresource) {
      if (!isInMember(pod) || !forwardedParts.has(subresource)) return
      await writer.update({ ...writeOf(call, pod), next, subresource })
    },
    async delete(pod, { gracePeriodSeconds }) {
      if (!isInMember(pod)) return false
      const grace = gracePeriodSeconds === undefined ? {} : { gracePeriodSeconds }
      try {
        await writer.delete({ ...writeOf(call, pod), ...grace })
        return true
      } catch (error) {
        // Tenants give up a pod in a lost member by a forced deletion. The syncer passes the deletion on if the member
        // returns.
        if (gracePeriodSeconds !== 0 || !isStatusError(error, 'ServiceUnavailable')) throw error
        return false
      }
    },
  }
}

/** Evicts a pod in its member. Resolves with false for a pod that runs in no member. */
export async function forwardEviction(
  call: EndpointCall<EndpointDependencies>,
  pod: KubeObject,
  deleteOptions: JsonObject,
): Promise<boolean> {
  if (call.target.forward === undefined || call.dependencies.podWriter === undefined || !isInMember(pod)) return false
  await call.dependencies.podWriter.evict({ ...writeOf(call, pod), deleteOptions })
  return true
}

/** Throws 413 if the offload thread would have to change a pod in a member: it has no connections to members. */
export function requireNoForward({ target, objects, definition, request, exchange }: EndpointCall): void {
  if (target.forward === undefined || exchange.info.verb === 'delete') return
  const entry = objects.get(definition.storageKey, request.namespace, request.name)
  if (entry !== undefined && decodeMetadata(entry.bytes).annotations?.[memberAnnotation] !== undefined)
    throw requestEntityTooLarge('the pod is too large to be changed in its member cluster')
}

function isInMember({ metadata }: KubeObject): boolean {
  return metadata.annotations?.[memberAnnotation] !== undefined
}

function writeOf({ cluster, target, exchange }: EndpointCall, pod: KubeObject): PodWrite {
  return { cluster, pod, dryRun: target.context.dryRun, signal: exchange.signal }
}
