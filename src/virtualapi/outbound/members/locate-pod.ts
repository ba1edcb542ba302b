// Finds the pod in a member that an upstream pod is a copy of. Only a pod in a namespace of the logical cluster and
// with the uid of the upstream pod counts, so a tenant can write nothing that leads to another pod.
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { badRequest, notFound } from '#apimachinery/status/index.ts'
import { downstreamNamespace, memberAnnotation, memberUidAnnotation } from '#crds/index.ts'
import type { LogicalCluster } from '#virtualapi/request/logical-cluster.ts'
import { memberUnavailable, type MemberConnection, type MemberConnections } from './member-connections.ts'

const pods = { group: '', version: 'v1', resource: 'pods' } as const

export interface LocatedPod {
  readonly member: MemberConnection
  /** The pod as it is in the member now. */
  readonly live: KubeObject
  readonly namespace: string
  readonly uid: string
}

/**
 * Rejects with BadRequest for a pod that is not placed, NotFound where the member has no such pod, ServiceUnavailable.
 */
export async function locatePod(
  members: MemberConnections,
  { cluster, pod }: { readonly cluster: LogicalCluster; readonly pod: KubeObject },
  signal: AbortSignal,
): Promise<LocatedPod> {
  const { name = '', namespace: upstream = '', uid, annotations } = pod.metadata
  const memberName = annotations?.[memberAnnotation]
  if (memberName === undefined) throw badRequest(`pod "${name}" is not placed on a member cluster yet`)
  const member = await members.byName(memberName, signal)
  const namespace = downstreamNamespace(cluster.id, upstream)
  let live: KubeObject | undefined
  try {
    live = await member.client.tryGet<KubeObject>(pods, { namespace, name }, { signal })
  } catch (error) {
    if (signal.aborted) throw error
    throw memberUnavailable(memberName, error)
  }
  const expected = annotations?.[memberUidAnnotation] ?? uid
  if (live === undefined || expected === undefined || live.metadata.uid !== expected) throw notFound(pods, name)
  return { member, live, namespace, uid: expected }
}
