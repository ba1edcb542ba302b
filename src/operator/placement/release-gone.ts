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

/**
 * Forgets these members, asked for once more: nothing is released on the strength of a cache alone. They are asked for all
 * at once: tenants write finalizers, and thousands of names of members that never were must cost no more than one.
 */
export async function releaseGone({ clusters, client, workload, members, signal }: ReleaseOptions): Promise<string[]> {
  const { items } = await clusters.list<KubeObject>(memberClusters, { metadataOnly: true, signal })
  const there = new Set(items.map((item) => item.metadata.name))
  const gone = members.filter((name) => !there.has(name))
  if (gone.length === 0) return gone
  const { name = '', namespace = '', finalizers = [], resourceVersion } = workload.metadata
  await forgetMade(client, namespace, new Set(gone), signal)
  const said = new Set(gone.map((member) => pieceAnnotation(member)))
  const annotations = piecesGone(workload, said)
  for (const gvr of saidBeside) {
    for (const { metadata } of (await client.list<KubeObject>(gvr, { namespace, signal })).items) {
      if (!Object.keys(metadata.annotations ?? {}).some((annotation) => said.has(annotation))) continue
      const ref = { namespace, name: metadata.name ?? '' }
      const patch = { metadata: { annotations: piecesGone({ metadata }, said) } }
      await client.patch(gvr, ref, 'merge', patch, { signal }).catch(tolerate('NotFound'))
    }
  }
  // Last: without its mark nobody would look at the rest again.
  const released = new Set(gone.map((member) => syncerFinalizer(member)))
  const kept = finalizers.filter((finalizer) => !released.has(finalizer))
  const metadata = { resourceVersion, finalizers: kept, annotations }
  await client.patch(deployments, { namespace, name }, 'merge', { metadata }, { signal }).catch(tolerate('NotFound'))
  return gone
}

/** A merge patch's annotations: those that are there of what members said. */
function piecesGone(
  { metadata }: Pick<DeepReadonly<KubeObject>, 'metadata'>,
  said: ReadonlySet<string>,
): Record<string, null> {
  const there = Object.keys(metadata.annotations ?? {}).filter((annotation) => said.has(annotation))
  return Object.fromEntries(there.map((annotation) => [annotation, null]))
}

async function forgetMade(
  client: KubeClient,
  namespace: string,
  gone: ReadonlySet<string>,
  signal: AbortSignal,
): Promise<void> {
  for (const gvr of made) {
    for (const { metadata } of (await client.list<KubeObject>(gvr, { namespace, signal })).items) {
      const member = metadata.annotations?.[memberAnnotation]
      if (member === undefined || !gone.has(member)) continue
      const { name = '', uid } = metadata
      await client
        .delete(gvr, { namespace, name }, { ...(uid && { uid }), gracePeriodSeconds: 0, signal })
        .catch(tolerate('NotFound'))
    }
  }
}
