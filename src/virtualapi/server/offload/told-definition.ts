// Definitions that other logical clusters share, as the main thread sends them to the worker.
import { LRUCache } from 'lru-cache'
import type { ClusterId } from '#apimachinery/meta/index.ts'
import type { ClusterObjects } from '#store/watch-cache/index.ts'
import { compileCrd, type CustomResourceDefinition } from '#virtualapi/catalog/apiextensions/index.ts'
import type { Catalog } from '#virtualapi/catalog/catalog.ts'
import type { DefinitionSource, SharedDefinition } from '#virtualapi/catalog/sharing/definition-source.ts'

/** A definition; without its source if the worker has this hash. */
export interface ToldDefinition {
  readonly hash: string
  readonly isTerminating: boolean
  readonly source: CustomResourceDefinition | undefined
}

/** The definition of `PLURAL.GROUP` for a worker that has `known`. */
export function tellDefinition(
  catalog: Pick<Catalog, 'sharedDefinition'>,
  objects: ClusterObjects,
  { name, known }: { readonly name: string; readonly known: string | undefined },
): ToldDefinition | undefined {
  const found = catalog.sharedDefinition(objects, name)
  if (found === undefined) return undefined
  const { compiled, isTerminating, read } = found
  return { hash: compiled.hash, isTerminating, source: compiled.hash === known ? undefined : read() }
}

const maxKept = 200

/** The definitions that the main thread has for a logical cluster. */
export function heardDefinitions(
  ask: (cluster: ClusterId, name: string, known: string | undefined) => ToldDefinition | undefined,
): DefinitionSource {
  const kept = new LRUCache<string, Pick<SharedDefinition, 'compiled' | 'read'> & { readonly hash: string }>({
    max: maxKept,
  })
  return {
    find({ cluster }, name) {
      const key = `${cluster}/${name}`
      const before = kept.get(key)
      const told = ask(cluster, name, before?.hash)
      if (told === undefined) return undefined
      const { source, hash, isTerminating } = told
      const now = source === undefined ? before : { compiled: compileCrd(source), read: () => source, hash }
      if (now === undefined) return undefined
      kept.set(key, now)
      return { compiled: now.compiled, read: now.read, isTerminating }
    },
    // Only discovery asks for all of them, and the main thread answers discovery.
    all: () => [],
    load: () => undefined,
  }
}
