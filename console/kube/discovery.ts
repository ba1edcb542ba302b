// The resources that a logical cluster serves, from the aggregated discovery documents.
import { clusterPath, parseResource, type ResourceRef } from './paths.ts'
import { requestJson } from './request.ts'

export interface Resource extends ResourceRef {
  readonly kind: string
  readonly namespaced: boolean
  readonly verbs: readonly string[]
  readonly shortNames: readonly string[]
  readonly subresources: readonly string[]
}

interface DiscoveryList {
  readonly items?: readonly {
    readonly metadata?: { readonly name?: string }
    readonly versions?: readonly {
      readonly version: string
      readonly resources?: readonly {
        readonly resource: string
        readonly responseKind?: { readonly kind?: string }
        readonly scope?: string
        readonly verbs?: readonly string[]
        readonly shortNames?: readonly string[]
        readonly subresources?: readonly { readonly subresource: string }[]
      }[]
    }[]
  }[]
}

const accept = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList'
const maxKept = 20
const kept = new Map<string, Promise<readonly Resource[]>>()

/** What the logical cluster serves in its preferred versions; kept for a minute, because definitions change. */
export function resourcesOf(cluster: string): Promise<readonly Resource[]> {
  const known = kept.get(cluster)
  if (known !== undefined) return known
  const found = read(cluster)
  if (kept.size >= maxKept) kept.clear()
  kept.set(cluster, found)
  const forget = (): void => void kept.delete(cluster)
  found.then(() => setTimeout(forget, 60_000), forget)
  return found
}

async function read(cluster: string): Promise<readonly Resource[]> {
  const base = clusterPath(cluster)
  const [core, groups] = await Promise.all(
    ['api', 'apis'].map((part) => requestJson<DiscoveryList>(`${base}/${part}`, { accept })),
  )
  return [...resourcesIn(core), ...resourcesIn(groups)]
}

/**
 * The listable resources of the first, preferred version that has them. An aggregated server writes a part of this
 * document: names that are no names could lead a request to another path of the server, so they are left out.
 */
export function resourcesIn(document: DiscoveryList | undefined): Resource[] {
  const found = new Map<string, Resource>()
  for (const { metadata, versions = [] } of document?.items ?? []) {
    const group = metadata?.name ?? ''
    for (const { version, resources = [] } of versions)
      for (const { resource, responseKind, scope, verbs = [], shortNames = [], subresources = [] } of resources) {
        const key = `${group}/${resource}`
        const ref = parseResource(group === '' ? 'core' : group, version, resource)
        if (ref === undefined || found.has(key) || !verbs.includes('list')) continue
        found.set(key, {
          ...ref,
          kind: responseKind?.kind ?? resource,
          namespaced: scope === 'Namespaced',
          verbs,
          shortNames,
          subresources: subresources.map((one) => one.subresource),
        })
      }
  }
  return [...found.values()]
}

/** The resource of a kind, such as of an owner; undefined if it is not served. */
export function resourceOfKind(
  resources: readonly Resource[],
  { apiVersion, kind }: { readonly apiVersion: string; readonly kind: string },
): Resource | undefined {
  const group = apiVersion.includes('/') ? apiVersion.slice(0, apiVersion.indexOf('/')) : ''
  return resources.find((one) => one.group === group && one.kind === kind)
}

/** The resource of a kind whose group is not known: built-in kinds come first in discovery. */
export function resourceOfKindName(resources: readonly Resource[], kind: string): Resource | undefined {
  return resources.find((one) => one.kind === kind)
}
