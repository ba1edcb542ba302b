// What an informer knows now, and who wants to hear of changes.
import type { KubeObject } from '../../apimachinery/meta/index.ts'
import type { DeepReadonly } from './deep-readonly.ts'

/** `before` is absent for what is new, `after` for what is gone. */
export interface Change<T extends KubeObject> {
  readonly key: string
  readonly before: DeepReadonly<T> | undefined
  readonly after: DeepReadonly<T> | undefined
}

export type ChangeListener<T extends KubeObject> = (change: Change<T>) => void

/** Objects by key, as the server told them last. */
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

  /** Tells `listener` of everything there is, then of every change. */
  subscribe(listener: ChangeListener<T>): () => void {
    this.#listeners.add(listener)
    for (const [key, after] of this.#objects) this.#tell(listener, { key, before: undefined, after })
    return () => void this.#listeners.delete(listener)
  }

  put(key: string, after: DeepReadonly<T>): void {
    const before = this.#objects.get(key)
    if (before !== undefined && unchanged(before, after)) return
    this.#objects.set(key, after)
    this.#announce({ key, before, after })
  }

  remove(key: string): void {
    const before = this.#objects.get(key)
    if (before === undefined) return
    this.#objects.delete(key)
    this.#announce({ key, before, after: undefined })
  }

  /** The whole truth at once: what is not in `objects` is gone. An object made anew under its name is told as both. */
  replace(objects: ReadonlyMap<string, DeepReadonly<T>>): void {
    for (const key of this.keys()) if (!objects.has(key)) this.remove(key)
    for (const [key, object] of objects) {
      const before = this.#objects.get(key)
      if (before !== undefined && before.metadata.uid !== object.metadata.uid) this.remove(key)
      this.put(key, object)
    }
  }

  #announce(change: Change<T>): void {
    for (const listener of this.#listeners) this.#tell(listener, change)
  }

  #tell(listener: ChangeListener<T>, change: Change<T>): void {
    try {
      listener(change)
    } catch (error) {
      this.#onListenerError(error, change.key)
    }
  }
}

/** A relist and a resumed watch may tell of what we know. */
function unchanged(before: DeepReadonly<KubeObject>, after: DeepReadonly<KubeObject>): boolean {
  const { uid, resourceVersion } = before.metadata
  return uid !== undefined && uid === after.metadata.uid && resourceVersion === after.metadata.resourceVersion
}
