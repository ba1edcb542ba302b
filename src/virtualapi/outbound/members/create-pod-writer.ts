// Writes pods through the API server of their member.
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { fromStatus, isStatusError, serviceUnavailable, StatusError, tolerate } from '#apimachinery/status/index.ts'
import { syncerFieldManager } from '#crds/index.ts'
import { locatePod, type LocatedPod } from './locate-pod.ts'
import { memberUnavailable, type MemberConnections } from './member-connections.ts'
import { podPatch } from './pod-patch.ts'
import type { PodWrite, PodWriter } from './pod-writer.ts'

const pods = { group: '', version: 'v1', resource: 'pods' } as const

/** Creates a PodWriter to the pods in these members. */
export function createPodWriter({ members }: { members: MemberConnections }): PodWriter {
  return {
    async update(write) {
      const { pod: old, next, subresource, dryRun, signal } = write
      const found = await locatePod(members, write, signal)
      const annotationPrefixes = members.annotationPrefixesOf(found.member.name)
      const patch = podPatch({ subresource, old, next, live: found.live, annotationPrefixes })
      if (patch === undefined) return
      const metadata = { ...(patch['metadata'] as object | undefined), uid: found.uid }
      const options = { ...(subresource !== '' && { subresource }), dryRun, fieldManager: syncerFieldManager, signal }
      await asked(found, write, (client) =>
        client.patch(pods, refOf(found), 'strategic', { ...patch, metadata }, options),
      )
    },
    async delete(write) {
      const { gracePeriodSeconds, dryRun, signal } = write
      const found = await locatePod(members, write, signal).catch(tolerate('NotFound'))
      if (found === undefined || dryRun) return
      const grace = gracePeriodSeconds === undefined ? {} : { gracePeriodSeconds }
      await asked(found, write, (client) =>
        client.delete(pods, refOf(found), { uid: found.uid, ...grace, signal }),
      ).catch(tolerate('NotFound', 'Conflict'))
    },
    async evict(write) {
      const { deleteOptions, dryRun, signal } = write
      const found = await locatePod(members, write, signal)
      const { resourceVersion: _, ...preconditions } = {
        ...(deleteOptions['preconditions'] as object | undefined),
      } as {
        resourceVersion?: unknown
      }
      const eviction: KubeObject = {
        apiVersion: 'policy/v1',
        kind: 'Eviction',
        metadata: refOf(found),
        deleteOptions: { ...deleteOptions, preconditions: { ...preconditions, uid: found.uid } },
      }
      await asked(found, write, (client) => client.create(pods, eviction, { subresource: 'eviction', dryRun, signal }))
    },
  }
}

function refOf({ namespace, live }: LocatedPod): { namespace: string; name: string } {
  return { namespace, name: live.metadata.name ?? '' }
}

async function asked(
  { member, namespace }: LocatedPod,
  { pod, signal }: PodWrite,
  ask: (client: LocatedPod['member']['client']) => Promise<unknown>,
): Promise<void> {
  try {
    await ask(member.client)
  } catch (error) {
    if (signal.aborted || !isStatusError(error)) throw error
    throw inUpstreamNames(memberError(member.name, error), namespace, pod.metadata.namespace ?? '')
  }
}

/** The member's own error, or 503 if that error is about our credentials: the tenant was authorized before. */
function memberError(member: string, error: StatusError): Error {
  if (error.code === 403 && / cannot \w+ resource "/.test(error.message))
    return serviceUnavailable(
      `member cluster "${member}" does not let kcp do this yet: it has to be joined again`,
      error,
    )
  return error.code === 403 ? error : memberUnavailable(member, error)
}

/** The error with the tenant's name of the namespace in its messages, in which members name it `ID-NAMESPACE`. */
function inUpstreamNames(error: Error, namespace: string, upstream: string): Error {
  if (!isStatusError(error)) return error
  const { message, details } = error.status
  const causes = details?.causes?.map((cause) => ({
    ...cause,
    ...(cause.message !== undefined && { message: cause.message.replaceAll(namespace, upstream) }),
  }))
  const status = {
    ...error.status,
    ...(message !== undefined && { message: message.replaceAll(namespace, upstream) }),
    ...(details !== undefined && { details: { ...details, ...(causes !== undefined && { causes }) } }),
  }
  const { retryAfterSeconds } = details ?? {}
  if (retryAfterSeconds === undefined) return fromStatus(status, error)
  return new StatusError(status, { cause: error, headers: { 'Retry-After': String(retryAfterSeconds) } })
}
