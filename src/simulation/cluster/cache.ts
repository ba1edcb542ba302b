// The objects of one resource as a controller knows them: from a watch, and from its own writes at once. So a
// reconcile sees what the reconcile before it wrote, and needs no expectations.
import { LRUCache } from 'lru-cache'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { controllerOf, keyOf } from './objects.ts'

type Listener<T> = (after: T | undefined, before: T | undefined) => void

/** How many deleted objects are remembered, so that the late answer to a write does not bring one back. */
const rememberedDeletions = 2000

/** Returns the value by which `withValue` finds an object; undefined: it does not. */
export type IndexedValue<T> = (object: T) => string | undefined

export class Cache<T extends KubeObject> {
  readonly #valueOf: IndexedValue<T>
  readonly #byValue = new Map<string, Map<string, T>>()
  readonly #objects = new Map<string, T>()
  readonly #byNamespace = new Map<string, Map<string, T>>()
  readonly #byController = new Map<string, Map<string, T>>()
  readonly #deleted = new LRUCache<string, true>({ max: rememberedDeletions })
  readonly #listeners = new Set<Listener<T>>()

  constructor(valueOf: IndexedValue<T> = () => undefined) {
    this.#valueOf = valueOf
  }

  get size(): number {
    return this.#objects.size
  }
  /** By `namespace/name`. */
  get(key: string): T | undefined {
    return this.#objects.get(key)
  }
  all(): T[] {
    return [...this.#objects.values()]
  }
  inNamespace(namespace: string): T[] {
    return [...(this.#byNamespace.get(namespace)?.values() ?? [])]
  }
  /** The objects whose controller has this uid. */
  controlledBy(uid: string): T[] {
    return [...(this.#byController.get(uid)?.values() ?? [])]
  }

  /** The objects with this value of the index. */
  withValue(value: string): T[] {
    return [...(this.#byValue.get(value)?.values() ?? [])]
  }

  /** Calls the listener for every object, then for every change. */
  onChange(listener: Listener<T>): void {
    this.#listeners.add(listener)
    for (const object of this.#objects.values()) listener(object, undefined)
  }

  /** Takes an object from the watch or from the answer to a write; an older version is ignored. */
  put(object: T): void {
    const { uid = '', resourceVersion = '0' } = object.metadata
    if (this.#deleted.has(uid)) return
    const key = keyOf(object)
    const before = this.#objects.get(key)
    const isSame = before?.metadata.uid === uid
    if (isSame && Number(before.metadata.resourceVersion) >= Number(resourceVersion)) return
    if (before !== undefined) this.#unindex(key, before)
    this.#objects.set(key, object)
    add(this.#byNamespace, object.metadata.namespace, key, object)
    add(this.#byController, controllerOf(object)?.uid, key, object)
    add(this.#byValue, this.#valueOf(object), key, object)
    this.#notify(object, before)
  }

  /** Takes a deletion from the watch. */
  remove(object: KubeObject): void {
    const { uid = '' } = object.metadata
    const key = keyOf(object)
    this.#deleted.set(uid, true)
    const before = this.#objects.get(key)
    if (before === undefined || before.metadata.uid !== uid) return
    this.#objects.delete(key)
    this.#unindex(key, before)
    this.#notify(undefined, before)
  }

  #unindex(key: string, object: T): void {
    drop(this.#byNamespace, object.metadata.namespace, key)
    drop(this.#byController, controllerOf(object)?.uid, key)
    drop(this.#byValue, this.#valueOf(object), key)
  }

  #notify(after: T | undefined, before: T | undefined): void {
    for (const listener of this.#listeners) listener(after, before)
  }
}

type Index<T> = Map<string, Map<string, T>>

function add<T>(index: Index<T>, value: string | undefined, key: string, object: T): void {
  if (value === undefined) return
  const known = index.get(value) ?? new Map<string, T>()
  index.set(value, known.set(key, object))
}

function drop<T>(index: Index<T>, value: string | undefined, key: string): void {
  if (value === undefined) return
  const known = index.get(value)
  known?.delete(key)
  if (known?.size === 0) index.delete(value)
}
