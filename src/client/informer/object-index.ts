// The objects of an informer grouped by values that are computed from each object, as client-go's Indexer does. So one
// namespace, logical cluster or member is read without walking over all objects.
import type { DeepReadonly, KubeObject } from '#apimachinery/meta/index.ts'
import type { Informer } from './informer.ts'

export class ObjectIndex<T extends KubeObject = KubeObject> implements Disposable {
  readonly #groups = new Map<string, Map<string, DeepReadonly<T>>>()
  readonly #unsubscribe: () => void

  /**
   * `valuesOf` returns the groups of an object and must depend on its arguments only. Create the index before adding
   * listeners that use it: listeners are called in the order in which they were added.
   */
  constructor(
    informer: Pick<Informer<T>, 'onChange'>,
    valuesOf: (key: string, object: DeepReadonly<T>) => Iterable<string>,
  ) {
    this.#unsubscribe = informer.onChange(({ key, before, after }) => {
      const values = new Set(after === undefined ? [] : valuesOf(key, after))
      for (const value of before === undefined ? [] : valuesOf(key, before))
        if (!values.has(value)) this.#remove(value, key)
      if (after !== undefined) for (const value of values) this.#put(value, key, after)
    })
  }

  /** The objects of a group. */
  of(value: string): Iterable<DeepReadonly<T>> {
    return this.#groups.get(value)?.values() ?? []
  }

  /** The informer's keys of the objects of a group. */
  keysOf(value: string): Iterable<string> {
    return this.#groups.get(value)?.keys() ?? []
  }

  [Symbol.dispose](): void {
    this.#unsubscribe()
  }

  #put(value: string, key: string, object: DeepReadonly<T>): void {
    const group = this.#groups.get(value) ?? new Map<string, DeepReadonly<T>>()
    this.#groups.set(value, group.set(key, object))
  }

  #remove(value: string, key: string): void {
    const group = this.#groups.get(value)
    group?.delete(key)
    if (group?.size === 0) this.#groups.delete(value)
  }
}
