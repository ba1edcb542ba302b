// The resources in the view of an export, for discovery and OpenAPI documents.
import type { Catalog } from '#virtualapi/catalog/catalog.ts'
import type { ViewResources } from '#virtualapi/catalog/sharing/view-source.ts'
import { groupResourceText } from '#apimachinery/meta/index.ts'

/** The catalog, which lists just the resources of a view. */
export function viewCatalog(catalog: Catalog, { definitions, builtIn }: ViewResources): Catalog {
  const names = builtIn.map((info) => `${groupResourceText(info)}/${info.version}`).sort()
  return {
    find: (objects, gvr) => catalog.find(objects, gvr),
    findBuiltIn: (gvr) => catalog.findBuiltIn(gvr),
    findOurs: (gvr) => catalog.findOurs(gvr),
    equivalents: (objects, definition) => catalog.equivalents(objects, definition),
    load: (objects, signal) => catalog.load(objects, signal),
    versionOf: (shared, version) => catalog.versionOf(shared, version),
    sharedDefinition: (objects, name) => catalog.sharedDefinition(objects, name),
    shared: () => definitions,
    crds: () => [],
    documented: () => definitions,
    all: () => [...builtIn, ...definitions.flatMap(({ compiled }) => compiled.resourceInfos)],
    variant: () => `view of ${names.join()}`,
    compileInTurns: () => Promise.resolve(),
  }
}
