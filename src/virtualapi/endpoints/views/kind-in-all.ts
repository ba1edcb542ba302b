// The kind of a custom resource in a list or watch over all logical clusters. Clients in Go read no list, and no
// bookmark of a watch, whose kind they do not know.
import { groupResourceText } from '#apimachinery/meta/index.ts'
import type { WatchCache } from '#store/watch-cache/index.ts'
import { decodeObject } from '#virtualapi/kinds/resources/object-bytes.ts'
import type { ResourceDefinition } from '#virtualapi/kinds/resources/resource-definition.ts'
import type { EndpointDependencies } from '#virtualapi/endpoints/call/dependencies.ts'

const definitions = 'customresourcedefinitions.apiextensions.k8s.io'
/** Bound of the kinds that are remembered. */
const maxKinds = 1000
const kindsOf = new WeakMap<Pick<WatchCache, 'listStored'>, Map<string, string>>()

/**
 * The definition with the kind that some logical cluster gives this resource; unchanged if none defines it. Reads the
 * stored CustomResourceDefinitions once for each resource.
 */
export async function withKind(
  { watchCache }: Pick<EndpointDependencies, 'watchCache'>,
  definition: ResourceDefinition,
  signal: AbortSignal,
): Promise<ResourceDefinition> {
  const { info } = definition
  if (info.kind !== '') return definition
  const kinds = kindsOf.get(watchCache) ?? new Map<string, string>()
  kindsOf.set(watchCache, kinds)
  const resource = groupResourceText(info)
  const kind = kinds.get(resource) ?? (await storedKind(watchCache, resource, signal))
  if (kind === undefined) return definition
  if (kinds.size < maxKinds) kinds.set(resource, kind)
  return { ...definition, info: { ...info, kind } }
}

async function storedKind(
  watchCache: Pick<WatchCache, 'listStored'>,
  resource: string,
  signal: AbortSignal,
): Promise<string | undefined> {
  const { entries } = await watchCache.listStored({ resource: definitions }, { signal })
  const found = entries.find(({ key }) => key.name === resource)
  if (found === undefined) return undefined
  const { spec } = decodeObject(found.bytes) as { spec?: { names?: { kind?: string } } }
  return spec?.names?.kind
}
