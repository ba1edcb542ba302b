// The definition of a resource in the view of an export, for reads over all consumers.
import { groupResourceText } from '#apimachinery/meta/index.ts'
import { pathNotFound } from '#apimachinery/status/index.ts'
import type { EndpointDependencies } from '#virtualapi/endpoints/call/dependencies.ts'
import type { ResourceDefinition } from '#virtualapi/kinds/resources/resource-definition.ts'
import type { Exchange } from '#virtualapi/request/exchange.ts'
import type { ResourceTarget } from '#virtualapi/request/request-info.ts'
import type { RequestView } from '#virtualapi/request/request-view.ts'

/** Rejects with 404 for a resource that the export neither offers nor claims. */
export async function viewDefinition(
  view: RequestView,
  { signal }: Pick<Exchange, 'signal'>,
  { catalog, viewSource }: Pick<EndpointDependencies, 'catalog' | 'viewSource'>,
  request: ResourceTarget,
): Promise<ResourceDefinition> {
  if (!view.concerns(request)) throw pathNotFound()
  const builtIn = catalog.findBuiltIn(request)
  if (builtIn !== undefined) return builtIn
  const shared = await viewSource.definitionFor(view.exportUid, groupResourceText(request), signal)
  const found = shared && catalog.versionOf(shared, request.version)
  if (found === undefined) throw pathNotFound()
  return found
}
