// CustomResourceDefinitions of ancestors with label kcp.dev/inherit, which the logical clusters below serve without
// storing them. The custom resources themselves are stored in the logical clusters below.
import type { ClusterObjects, Entry } from '#store/watch-cache/index.ts'
import { inheritLabel } from '#crds/index.ts'
import {
  compileCrd,
  isEstablished,
  type CompiledCrd,
  type CustomResourceDefinition,
} from '#virtualapi/catalog/apiextensions/index.ts'
import type { DefinitionSource, SharedDefinition } from '#virtualapi/catalog/sharing/definition-source.ts'
import { decodeObject } from '#virtualapi/kinds/resources/object-bytes.ts'
import type { Ancestors } from './ancestors.ts'

const crdKey = 'customresourcedefinitions.apiextensions.k8s.io'

/** The definitions of ancestors; that of the nearest ancestor is taken. */
export function inheritedDefinitions(ancestors: Ancestors): DefinitionSource {
  return {
    find: (objects, name) => {
      for (const { objects: above } of ancestors.above(objects.cluster)) {
        const found = definitionOf(above.get(crdKey, '', name))
        if (found !== undefined) return found
      }
      return undefined
    },
    all: (objects) => {
      const found = new Map<string, SharedDefinition>()
      for (const { objects: above } of ancestors.above(objects.cluster))
        for (const definition of inheritedOf(above))
          if (!found.has(definition.compiled.name)) found.set(definition.compiled.name, definition)
      return [...found.values()]
    },
    load: (objects, signal) => ancestors.load(objects.cluster, signal),
  }
}

/** The inherited definitions of one ancestor, read again after one of its definitions has changed. */
const lists = new WeakMap<
  ClusterObjects,
  { readonly changes: number; readonly definitions: readonly SharedDefinition[] }
>()

function inheritedOf(objects: ClusterObjects): readonly SharedDefinition[] {
  const changes = objects.changes(crdKey)
  const known = lists.get(objects)
  if (known?.changes === changes) return known.definitions
  const definitions = objects.list({ resource: crdKey }).flatMap((entry) => definitionOf(entry) ?? [])
  lists.set(objects, { changes, definitions })
  return definitions
}

const compiled = new WeakMap<Entry, SharedDefinition | undefined>()

function definitionOf(entry: Entry | undefined): SharedDefinition | undefined {
  if (entry === undefined || entry.facts.labels?.[inheritLabel] !== 'true') return undefined
  if (!compiled.has(entry)) compiled.set(entry, compile(entry))
  return compiled.get(entry)
}

function compile(entry: Entry): SharedDefinition | undefined {
  const read = (): CustomResourceDefinition => decodeObject(entry.bytes) as unknown as CustomResourceDefinition
  const crd = read()
  if (!isEstablished(crd)) return undefined
  // A definition with a conversion webhook is not inherited: the ancestor's webhook is for the ancestor's own objects,
  // and must not get those of the logical clusters below.
  if (crd.spec.conversion?.strategy === 'Webhook') return undefined
  const form: CompiledCrd = compileCrd(crd)
  return { compiled: form, read, isTerminating: crd.metadata.deletionTimestamp !== undefined }
}
