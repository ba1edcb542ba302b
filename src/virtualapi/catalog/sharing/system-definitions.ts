// The definitions of group apis.kcp.io, which every logical cluster serves.
import { sharedApiCrds, sharedApisGroup } from '#crds/index.ts'
import type { DefinitionSource, SharedDefinition } from '#virtualapi/catalog/sharing/definition-source.ts'
import { compileCrd, defaultCrd, type CustomResourceDefinition } from '#virtualapi/catalog/apiextensions/index.ts'

let definitions: ReadonlyMap<string, SharedDefinition> | undefined

function loaded(): ReadonlyMap<string, SharedDefinition> {
  definitions ??= new Map(
    sharedApiCrds().map((source) => {
      const crd = source as unknown as CustomResourceDefinition
      defaultCrd(crd)
      return [crd.metadata.name ?? '', { compiled: compileCrd(crd), read: () => crd, isTerminating: false }]
    }),
  )
  return definitions
}

/** True for a resource name `PLURAL.GROUP` of this group, whose definition no tenant may replace. */
export function isSystemDefinition(name: string): boolean {
  return name.endsWith(`.${sharedApisGroup}`)
}

/** The definition of `PLURAL.GROUP`, which needs no objects of a logical cluster. */
export function systemDefinition(name: string): SharedDefinition | undefined {
  return loaded().get(name)
}

export const systemDefinitions: DefinitionSource = {
  find: (_objects, name) => (isSystemDefinition(name) ? loaded().get(name) : undefined),
  all: () => [...loaded().values()],
  load: () => undefined,
}
