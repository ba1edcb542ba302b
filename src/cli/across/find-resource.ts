// Finds the resource that a person means by a kind, a plural, a singular or a short name, as kubectl does.
import type { GroupVersionResource, KubeObject } from '#apimachinery/meta/index.ts'
import { UsageError } from '#cli/process/exit-error.ts'
import { allClusters, type Direct } from './direct.ts'

export interface FoundResource {
  readonly gvr: GroupVersionResource
  readonly kind: string
  readonly namespaced: boolean
  /** A custom resource: its columns and its very existence differ between logical clusters. */
  readonly isCustom: boolean
}

interface Discovery {
  readonly items?: readonly {
    readonly metadata?: { readonly name?: string }
    readonly versions?: readonly {
      readonly version: string
      readonly resources?: readonly DiscoveredResource[]
    }[]
  }[]
}
interface DiscoveredResource {
  readonly resource: string
  readonly responseKind?: { readonly kind?: string }
  readonly scope?: string
  readonly singularResource?: string
  readonly shortNames?: readonly string[]
}

const accept = 'application/json;v=v2;g=apidiscovery.k8s.io;as=APIGroupDiscoveryList'

/** All resources that a logical cluster serves, in the order of discovery. */
export async function resourcesIn(
  direct: Direct,
  cluster: string,
): Promise<readonly (FoundResource & { readonly names: readonly string[] })[]> {
  const client = direct.client(cluster)
  const read = async (path: string): Promise<Discovery> =>
    (await client.raw(path, { accept, signal: direct.signal })) as Discovery
  const documents = await Promise.all([read('/api'), read('/apis')])
  return documents.flatMap(({ items = [] }) =>
    items.flatMap(({ metadata, versions = [] }) =>
      versions.flatMap(({ version, resources = [] }) =>
        resources.map((one) => foundOf({ group: metadata?.name ?? '', version }, one)),
      ),
    ),
  )
}

function foundOf(
  { group, version }: { readonly group: string; readonly version: string },
  { resource, responseKind, scope, singularResource = '', shortNames = [] }: DiscoveredResource,
): FoundResource & { readonly names: readonly string[] } {
  const kind = responseKind?.kind ?? resource
  const names = [resource, kind.toLowerCase(), singularResource, ...shortNames].filter((name) => name !== '')
  const isCustom = group.includes('.') && !group.endsWith('.k8s.io')
  return { gvr: { group, version, resource }, kind, namespaced: scope === 'Namespaced', isCustom, names }
}

interface Definition extends KubeObject {
  spec?: {
    group: string
    scope?: string
    names: { plural: string; singular?: string; kind: string; shortNames?: string[] }
    versions: { name: string; served?: boolean; storage?: boolean }[]
  }
}

const definitions = { group: 'apiextensions.k8s.io', version: 'v1', resource: 'customresourcedefinitions' } as const

/**
 * The resource called `text` (`NAME`, `NAME.GROUP` or `NAME.VERSION.GROUP`) in a logical cluster, else in any. Rejects
 * with UsageError if none serves it.
 */
export async function findResource(direct: Direct, text: string, cluster: string | undefined): Promise<FoundResource> {
  const [wanted = '', ...group] = text.toLowerCase().split('.')
  const suffix = group.join('.')
  const matches = ({ gvr, names }: { gvr: GroupVersionResource; names: readonly string[] }): boolean =>
    names.includes(wanted) && (suffix === '' || suffix === gvr.group || suffix === `${gvr.version}.${gvr.group}`)
  if (cluster !== undefined) {
    const found = (await resourcesIn(direct, cluster)).find(matches)
    if (found !== undefined) return found
  }
  const found = await inDefinitions(direct, matches)
  if (found !== undefined) return found
  throw new UsageError(`no logical cluster serves a kind "${text}"; kubectl api-resources lists the kinds of one`)
}

/** Looks in the CustomResourceDefinitions of all logical clusters, page by page. */
async function inDefinitions(
  { client, signal }: Direct,
  matches: (one: { gvr: GroupVersionResource; names: readonly string[] }) => boolean,
): Promise<FoundResource | undefined> {
  let next: string | undefined
  do {
    const page = { limit: 500, storedOnly: true, signal, ...(next !== undefined && { continue: next }) }
    const { items, metadata } = await client(allClusters).list<Definition>(definitions, page)
    for (const { spec } of items) {
      if (spec === undefined) continue
      const { plural, singular = '', kind, shortNames = [] } = spec.names
      const names = [plural, kind.toLowerCase(), singular, ...shortNames].filter((name) => name !== '')
      const version = spec.versions.find(({ served, storage }) => served !== false && storage === true)?.name
      const gvr = { group: spec.group, version: version ?? spec.versions[0]?.name ?? '', resource: plural }
      if (matches({ gvr, names })) return { gvr, kind, namespaced: spec.scope !== 'Cluster', isCustom: true }
    }
    next = metadata.continue === '' ? undefined : metadata.continue
  } while (next !== undefined)
  return undefined
}
