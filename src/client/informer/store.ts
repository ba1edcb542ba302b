// The objects of an informer, and the listeners for changes.
import type { DeepReadonly, KubeObject } from '#apimachinery/meta/index.ts'

/** `before` is undefined for a new object, `after` for a deleted one. */
export interface Change<T extends KubeObject> {
  readonly key: string
  readonly before: DeepReadonly<T> | undefined
  readonly after: DeepReadonly<T> | undefined
  /** The object is gone because a list lacks it: no deletion was seen. */
  readonly isUnlisted?: true
}

export type ChangeListener<T extends KubeObject> = (change: Change<T>) => void

/** Objects by key, as the server sent them last. */
export interface ObjectCache<T extends KubeObject> {
  readonly size: number
  get(key: string): DeepReadonly<T> | undefined
  list(): DeepReadonly<T>[]
  keys(): string[]
}

export class CacheStore<T extends KubeObject> implements ObjectCache<T> {
  readonly #objects = new Map<string, DeepReadonly<T>>()
  readonly #listeners = new Set<ChangeListener<T>>()
  readonly #onListenerError: (error: unknown, key: string) => void

  constructor(onListenerError: (error: unknown, key: string) => void) {
    this.#onListenerError = onListenerError
  }

  get size(): number {
    return this.#objects.size
  }
  get(key: string): DeepReadonly<T> | undefined {
    return this.#objects.get(key)
  }
  list(): DeepReadonly<T>[] {
    return [...this.#objects.values()]
  }
  keys(): string[] {
    return [...this.#objects.keys()]
  }

  /** Calls the listener for every object, then for every change. */
  subscribe(listener: ChangeListener<T>): () => void {
    this.#listeners.add(listener)
    for (const [key, after] of this.#objects) this.#notify(listener, { key, before: undefined, after })
    return () => void this.#listeners.delete(listener)
  }

  put(key: string, after: DeepReadonly<T>): void {
    const before = this.#objects.get(key)
    if (before !== undefined && unchanged(before, after)) return
    this.#objects.set(key, after)
    this.#notifyAll({ key, before, after })
  }

  remove(key: string, how: Pick<Change<T>, 'isUnlisted'> = {}): void {
    const before = this.#objects.get(key)
    if (before === undefined) return
    this.#objects.delete(key)
    this.#notifyAll({ key, before, after: undefined, ...how })
  }

  /** Replaces all objects. An object with a new uid under the same key is reported as deleted, then as new. */
  replace(objects: ReadonlyMap<string, DeepReadonly<T>>): void {
    for (const key of this.keys()) if (!objects.has(key)) this.remove(key, { isUnlisted: true })
    for (const [key, object] of objects) {
      const before = this.#objects.get(key)
      if (before !== undefined && before.metadata.uid !== object.metadata.uid) this.remove(key)
      this.put(key, object)
    }
  }

  #notifyAll(change: Change<T>): void {
    for (const listener of this.#listeners) this.#notify(listener, change)
  }

  #notify(listener: ChangeListener<T>, change: Change<T>): void {
    try {
      listener(change)
    } catch (error) {
      this.#onListenerError(error, change.key)
    }
  }
}

/** Whether the object is the known version: a new list and a resumed watch repeat known objects. */
function unchanged(before: DeepReadonly<KubeObject>, after: DeepReadonly<KubeObject>): boolean {
  const { uid, resourceVersion } = before.metadata
  return uid !== undefined && uid === after.metadata.uid && resourceVersion === after.metadata.resourceVersion
}
