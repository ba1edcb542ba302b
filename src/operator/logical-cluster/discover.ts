// The resources that an API serves, in one version each, from its discovery.
import { parseApiVersion, type GroupVersionResource } from '#apimachinery/meta/index.ts'
import { isStatusError } from '#apimachinery/status/index.ts'
import type { KubeClient } from '#client/index.ts'

interface ResourceList {
  resources?: { name: string; verbs?: string[] }[]
}
interface Aggregated {
  kind: 'APIGroupDiscoveryList'
  items?: {
    metadata?: { name?: string }
    versions?: { version: string; resources?: { resource: string; verbs?: string[] }[] }[]
  }[]
}
interface GroupList {
  groups?: { name: string; preferredVersion?: { groupVersion: string }; versions?: { groupVersion: string }[] }[]
}

const aggregated = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json'

/** Every resource with the verb list, in the version the server prefers. */
export async function listableResources(client: KubeClient, signal: AbortSignal): Promise<GroupVersionResource[]> {
  const [core, groups] = await Promise.all([
    client.raw('/api', { signal, accept: aggregated }),
    client.raw('/apis', { signal, accept: aggregated }),
  ])
  if (isAggregated(core) && isAggregated(groups)) return [...fromAggregated(core), ...fromAggregated(groups)]
  const preferred = ((groups as GroupList).groups ?? []).flatMap(({ preferredVersion, versions = [] }) =>
    (versions.length > 0 ? versions : preferredVersion ? [preferredVersion] : []).map(
      ({ groupVersion }) => groupVersion,
    ),
  )
  const found = new Map<string, GroupVersionResource>()
  for (const groupVersion of ['v1', ...preferred]) {
    const { group, version } = parseApiVersion(groupVersion)
    const list = await resourceList(client, group === '' ? `/api/${version}` : `/apis/${groupVersion}`, signal)
    for (const { name, verbs = [] } of list.resources ?? []) {
      const key = `${name}.${group}`
      const wanted = verbs.includes('list') && !name.includes('/') && !found.has(key)
      if (wanted) found.set(key, { group, version, resource: name })
    }
  }
  return [...found.values()]
}

function isAggregated(value: unknown): value is Aggregated {
  return (value as Aggregated | undefined)?.kind === 'APIGroupDiscoveryList'
}

function fromAggregated({ items = [] }: Aggregated): GroupVersionResource[] {
  const found = new Map<string, GroupVersionResource>()
  for (const { metadata, versions = [] } of items) {
    const group = metadata?.name ?? ''
    for (const { version, resources = [] } of versions) {
      for (const { resource, verbs = [] } of resources) {
        const key = `${resource}.${group}`
        if (verbs.includes('list') && !found.has(key)) found.set(key, { group, version, resource })
      }
    }
  }
  return [...found.values()]
}

/** A group that was removed meanwhile, or whose aggregated server is down, counts as empty. */
async function resourceList(client: KubeClient, path: string, signal: AbortSignal): Promise<ResourceList> {
  try {
    return (await client.raw(path, { signal })) as ResourceList
  } catch (error) {
    if (isStatusError(error, 'NotFound') || isStatusError(error, 'ServiceUnavailable')) return {}
    throw error
  }
}
