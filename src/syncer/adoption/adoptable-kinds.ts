// The kinds with objects that can be adopted: those that the syncer copies, and the APIs that the member exports to the
// logical cluster.
import type { GroupVersionResource, JsonObject, KubeObject } from '#apimachinery/meta/index.ts'
import { isStatusError } from '#apimachinery/status/index.ts'
import type { KubeClient } from '#client/index.ts'
import {
  definitionName,
  exportedByAnnotation,
  exportedFromLabel,
  type ExportedApi,
  type RelatedReference,
} from '#crds/index.ts'
import { gvrs, type ResourceName } from '#syncer/context/resources.ts'
import { storedVersion } from '#syncer/rules/stored-version.ts'
import type { AdoptionRequest } from './request.ts'

/** The kinds that are copied, in the order in which their objects are made in the logical cluster. */
export const adoptable = [
  'serviceaccounts',
  'secrets',
  'configmaps',
  'persistentvolumeclaims',
  'limitranges',
  'networkpolicies',
  'services',
  'poddisruptionbudgets',
  'statefulsets',
  'deployments',
  'daemonsets',
  'replicasets',
  'replicationcontrollers',
  'jobs',
  'cronjobs',
  'horizontalpodautoscalers',
  'ingresses',
] as const satisfies readonly ResourceName[]
export type AdoptableResource = (typeof adoptable)[number]

export interface AdoptableKind {
  /** Of a custom resource, in the version of the logical cluster. */
  readonly gvr: GroupVersionResource
  /** Absent: a custom resource. */
  readonly resource?: AdoptableResource
  /** Of a custom resource: why its objects cannot be adopted, and what to do. Absent: they can. */
  readonly obstacle?: string
  /** Of a custom resource: the Secrets and ConfigMaps that are shown beside its objects. */
  readonly related?: readonly RelatedReference[]
}

export const copiedKinds: readonly AdoptableKind[] = adoptable.map((resource) => ({ gvr: gvrs[resource], resource }))

const definitions = { group: 'apiextensions.k8s.io', version: 'v1', resource: 'customresourcedefinitions' } as const

/** The APIs of the member with objects in namespaces, as the logical cluster has them. Rejects with StatusError. */
export async function customKinds(request: AdoptionRequest): Promise<AdoptableKind[]> {
  const found: AdoptableKind[] = []
  for (const api of request.member.exportedAPIs) {
    const kind = await customKind(request, api)
    if (kind !== undefined) found.push(kind)
  }
  return found
}

async function customKind(request: AdoptionRequest, api: Readonly<ExportedApi>): Promise<AdoptableKind | undefined> {
  const { upstream, downstream, cluster, member, signal } = request
  const { group, resource, related = [] } = api
  const name = definitionName(api)
  const ours = await upstream.tryGet<KubeObject>(definitions, { name }, { signal })
  const theirs = ours ?? (await definitionIn(downstream, name, signal))
  const { scope } = (theirs?.['spec'] ?? {}) as { scope?: string }
  const version = theirs && storedVersion(theirs['spec'] as JsonObject)
  if (version === undefined || scope === 'Cluster') return undefined
  const obstacle = obstacleOf(ours, { name, member: member.name, cluster })
  return { gvr: { group, version, resource }, related, ...(obstacle !== undefined && { obstacle }) }
}

async function definitionIn(client: KubeClient, name: string, signal: AbortSignal): Promise<KubeObject | undefined> {
  try {
    return await client.tryGet<KubeObject>(definitions, { name }, { signal })
  } catch (error) {
    // The member exports an API for which it has not joined again yet.
    if (isStatusError(error, 'Forbidden')) return undefined
    throw error
  }
}

/** Why the logical cluster does not take objects of the API from this member; undefined: it does. */
function obstacleOf(
  ours: KubeObject | undefined,
  { name, member, cluster }: { readonly name: string; readonly member: string; readonly cluster: string },
): string | undefined {
  const look = `kubectl describe membercluster ${member} says why`
  if (ours === undefined) return `logical cluster "${cluster}" does not have ${name} from the member: ${look}`
  const { labels, annotations } = ours.metadata
  const from = labels?.[exportedFromLabel]
  if (from === undefined)
    return `logical cluster "${cluster}" has a definition ${name} of its own: delete it there first`
  const members = (annotations?.[exportedByAnnotation] ?? from).split(',')
  return members.includes(member)
    ? undefined
    : `${name} of the member does not fit that of logical cluster "${cluster}": ${look}`
}
