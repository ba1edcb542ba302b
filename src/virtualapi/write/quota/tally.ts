// The total usage of the objects of one resource in one namespace. A tally reads every object once, and later only
// changed objects, so that the cost of a write does not depend on the number of objects.
import type { KubeObject } from '#apimachinery/meta/index.ts'
import type { ClusterObjects, Entry } from '#store/watch-cache/index.ts'
import { decodeObject } from '#virtualapi/kinds/resources/object-bytes.ts'
import { addAmounts, type Amounts, type Quantity } from '#apimachinery/quantity/index.ts'
import { isInScopes, type ScopeRequirement } from './scopes.ts'
import { usageOf } from './usage.ts'

/** The usage of one object, and the sums that include it. */
interface Counted {
  readonly entry: Entry
  readonly usage: Amounts
  readonly sums: readonly Map<string, Quantity>[]
}

interface Sum {
  readonly scopes: readonly ScopeRequirement[]
  readonly amounts: Map<string, Quantity>
}

/** One sum per combination of scopes. Each call names the combinations in use; other sums are dropped. */
class Tally {
  readonly #resource: string
  readonly #namespace: string
  readonly #counted = new Map<string, Counted>()
  #sums = new Map<string, Sum>()
  #changes = 0
  #isRead = false

  constructor(resource: string, namespace: string) {
    this.#resource = resource
    this.#namespace = namespace
  }

  /** The amounts that the objects in these scopes use. `all`: the scopes of all quotas of the namespace. */
  usedIn(
    objects: ClusterObjects,
    scopes: readonly ScopeRequirement[],
    all: readonly (readonly ScopeRequirement[])[],
    now: number,
  ): Amounts {
    this.#follow(all)
    this.#refresh(objects, now)
    return this.#sums.get(JSON.stringify(scopes))?.amounts ?? new Map<string, Quantity>()
  }

  /** Starts counting again if the combinations of scopes in use have changed. */
  #follow(all: readonly (readonly ScopeRequirement[])[]): void {
    const wanted = new Map(all.map((scopes) => [JSON.stringify(scopes), scopes]))
    if (wanted.size === this.#sums.size && [...wanted.keys()].every((key) => this.#sums.has(key))) return
    this.#sums = new Map([...wanted].map(([key, scopes]) => [key, { scopes, amounts: new Map() }]))
    this.#isRead = false
  }

  #refresh(objects: ClusterObjects, now: number): void {
    const [resource, namespace] = [this.#resource, this.#namespace]
    const changes = objects.changes(resource)
    if (this.#isRead && changes === this.#changes) return
    const changed = this.#isRead ? objects.changedNames(resource, this.#changes) : undefined
    if (changed === undefined) this.#readAll(objects, now)
    else
      for (const key of changed)
        if (key.namespace === namespace) this.#count(key.name, objects.get(resource, namespace, key.name), now)
    this.#changes = changes
  }

  #readAll(objects: ClusterObjects, now: number): void {
    this.#counted.clear()
    for (const { amounts } of this.#sums.values()) amounts.clear()
    for (const entry of objects.list({ resource: this.#resource, namespace: this.#namespace }))
      this.#count(entry.key.name, entry, now)
    this.#isRead = true
  }

  #count(name: string, entry: Entry | undefined, now: number): void {
    const before = this.#counted.get(name)
    if (before !== undefined && before.entry === entry) return
    for (const sum of before?.sums ?? []) addAmounts(sum, before?.usage ?? new Map(), -1)
    if (entry === undefined) {
      this.#counted.delete(name)
      return
    }
    const object: KubeObject = decodeObject(entry.bytes)
    const usage = usageOf(this.#resource, object, now)
    const sums = [...this.#sums.values()]
      .filter(({ scopes }) => isInScopes(this.#resource, object, scopes))
      .map(({ amounts }) => amounts)
    for (const sum of sums) addAmounts(sum, usage)
    this.#counted.set(name, { entry, usage, sums })
  }
}

/** The tallies by namespace and resource. They are dropped when the logical cluster is evicted. */
const tallies = new WeakMap<ClusterObjects, Map<string, Tally>>()

/** The amounts that objects of a resource use, by scopes. Reads the objects that changed since the last call. */
export function usedBy(
  objects: ClusterObjects,
  { resource, namespace }: { resource: string; namespace: string },
  { scopes, all }: { scopes: readonly ScopeRequirement[]; all: readonly (readonly ScopeRequirement[])[] },
  now: number,
): Amounts {
  const own = tallies.get(objects) ?? new Map<string, Tally>()
  tallies.set(objects, own)
  const key = `${namespace}/${resource}`
  const tally = own.get(key) ?? new Tally(resource, namespace)
  own.set(key, tally)
  return tally.usedIn(objects, scopes, all, now)
}

/** Drops the tallies of a namespace that no longer has a quota. */
export function dropTallies(objects: ClusterObjects, namespace: string): void {
  const own = tallies.get(objects)
  if (own === undefined) return
  for (const key of own.keys()) if (key.startsWith(`${namespace}/`)) own.delete(key)
}
