// Finds the copy of an upstream pod in its member. Only a pod that is in a namespace of the logical cluster and has the
// expected uid counts, so a tenant cannot write anything that leads to another pod.
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { badRequest, notFound } from '#apimachinery/status/index.ts'
import { downstreamNamespace, memberAnnotation, memberNamespaceAnnotation, memberUidAnnotation } from '#crds/index.ts'
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
 * The copy of a pod. Rejects with BadRequest for a pod that is not placed, with NotFound if the member has no such pod,
 * and with ServiceUnavailable if the member cannot be reached.
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
  const namespace = annotations?.[memberNamespaceAnnotation] ?? downstreamNamespace(cluster.id, upstream)
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
