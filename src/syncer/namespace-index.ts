// The objects of an informer by namespace, so that one namespace is looked at without walking over all.
import type { KubeObject } from '../apimachinery/meta/index.ts'
import { parseKey, type DeepReadonly, type Informer } from '../client/index.ts'
import type { ResourceName } from './synced-kinds.ts'

type Kept = DeepReadonly<KubeObject>

export class NamespaceIndex implements Disposable {
  readonly #spaces = new Map<string, Map<string, Kept>>()
  readonly #end: () => void

  /** Namespaces are named `CLUSTER|NAMESPACE` where the informer sees many logical clusters, else `NAMESPACE`. */
  constructor(informer: Informer<KubeObject>) {
    this.#end = informer.onChange(({ key, after }) => {
      const { cluster, namespace = '' } = parseKey(key)
      const space = cluster === undefined ? namespace : `${cluster}|${namespace}`
      const objects = this.#spaces.get(space) ?? new Map<string, Kept>()
      if (after === undefined) objects.delete(key)
      else objects.set(key, after)
      if (objects.size === 0) this.#spaces.delete(space)
      else this.#spaces.set(space, objects)
    })
  }

  of(space: string): Iterable<Kept> {
    return this.#spaces.get(space)?.values() ?? []
  }

  spaces(): IterableIterator<string> {
    return this.#spaces.keys()
  }

  [Symbol.dispose](): void {
    this.#end()
  }
}

/** An index of each informer's objects. */
export function indexesOf(
  informers: Readonly<Record<ResourceName, Informer<KubeObject>>>,
): Record<ResourceName, NamespaceIndex> {
  return Object.fromEntries(
    Object.entries(informers).map(([resource, informer]) => [resource, new NamespaceIndex(informer)]),
  ) as Record<ResourceName, NamespaceIndex>
}
