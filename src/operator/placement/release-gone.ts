// A MemberCluster that an admin removed by force, finalizer and all, because its cluster is never coming back: nobody can
// take anything away there any more, so what waits for that is released, and what it last said is forgotten.
import type { KubeObject } from '../../apimachinery/meta/index.ts'
import { tolerate } from '../../apimachinery/status/index.ts'
import type { DeepReadonly, KubeClient } from '../../client/index.ts'
import { memberAnnotation, memberClusters, pieceAnnotation, piecesOf, syncerFinalizer } from '../../crds/index.ts'

const deployments = { group: 'apps', version: 'v1', resource: 'deployments' } as const
/** Where members say their piece besides the workload. */
const saidBeside = [
  { group: 'apps', version: 'v1', resource: 'replicasets' },
  { group: '', version: 'v1', resource: 'services' },
] as const
/** What a member made and only it would have taken away. */
const made = [
  { group: '', version: 'v1', resource: 'pods' },
  { group: 'discovery.k8s.io', version: 'v1', resource: 'endpointslices' },
] as const
const finalizerPrefix = syncerFinalizer('')

/** Members that a workload still waits for, or that have a word in its status, and that are not known (any more). */
export function unknownMembers(workload: DeepReadonly<KubeObject>, isKnown: (member: string) => boolean): string[] {
  const waiting = (workload.metadata.finalizers ?? [])
    .filter((finalizer) => finalizer.startsWith(finalizerPrefix))
    .map((finalizer) => finalizer.slice(finalizerPrefix.length))
  const named = [...waiting, ...Object.keys(piecesOf(workload as KubeObject))]
  return [...new Set(named)].filter((member) => !isKnown(member)).sort()
}

export interface ReleaseOptions {
  /** Where MemberClusters live. */
  readonly clusters: KubeClient
  /** The workload's logical cluster. */
  readonly client: KubeClient
  readonly workload: DeepReadonly<KubeObject>
  readonly members: readonly string[]
  readonly signal: AbortSignal
}

/** Forgets these members, each asked for once more: nothing is released on the strength of a cache alone. */
export async function releaseGone({ clusters, client, workload, members, signal }: ReleaseOptions): Promise<string[]> {
  const gone: string[] = []
  for (const name of members)
    if ((await clusters.tryGet(memberClusters, { name }, { signal })) === undefined) gone.push(name)
  if (gone.length === 0) return gone
  const { name = '', namespace = '', finalizers = [], resourceVersion } = workload.metadata
  await forgetMade(client, namespace, gone, signal)
  const annotations = Object.fromEntries(gone.map((member) => [pieceAnnotation(member), null]))
  for (const gvr of saidBeside) {
    for (const { metadata } of (await client.list<KubeObject>(gvr, { namespace, signal })).items) {
      if (!gone.some((member) => metadata.annotations?.[pieceAnnotation(member)] !== undefined)) continue
      const ref = { namespace, name: metadata.name ?? '' }
      await client.patch(gvr, ref, 'merge', { metadata: { annotations } }, { signal }).catch(tolerate('NotFound'))
    }
  }
  // Last: without its mark nobody would look at the rest again.
  const released = gone.map((member) => syncerFinalizer(member))
  const kept = finalizers.filter((finalizer) => !released.includes(finalizer))
  const metadata = { resourceVersion, finalizers: kept, annotations }
  await client.patch(deployments, { namespace, name }, 'merge', { metadata }, { signal }).catch(tolerate('NotFound'))
  return gone
}

async function forgetMade(
  client: KubeClient,
  namespace: string,
  gone: readonly string[],
  signal: AbortSignal,
): Promise<void> {
  for (const gvr of made) {
    for (const { metadata } of (await client.list<KubeObject>(gvr, { namespace, signal })).items) {
      const member = metadata.annotations?.[memberAnnotation]
      if (member === undefined || !gone.includes(member)) continue
      const { name = '', uid } = metadata
      await client
        .delete(gvr, { namespace, name }, { ...(uid && { uid }), gracePeriodSeconds: 0, signal })
        .catch(tolerate('NotFound'))
    }
  }
}
