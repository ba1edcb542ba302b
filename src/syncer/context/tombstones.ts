// The objects whose deletion a watch has reported, as opposed to objects that a list only lacks.
import type { KubeObject } from '#apimachinery/meta/index.ts'
import type { Informer } from '#client/index.ts'
import type { ResourceName } from './resources.ts'

/** How many deletions are remembered. For an older deletion, the API server upstream is asked instead. */
const maxTombstones = 10_000

export class Tombstones {
  readonly #keys = new Set<string>()

  constructor(informers: Readonly<Record<ResourceName, Pick<Informer<KubeObject>, 'onChange'>>>) {
    for (const [resource, informer] of Object.entries(informers))
      informer.onChange(({ key, before, after, isUnlisted = false }) => {
        // A change of an object that is there: nothing to remember, and the usual case.
        if (before !== undefined && after !== undefined) return
        const tombstone = `${resource} ${key}`
        this.#keys.delete(tombstone)
        if (after === undefined && !isUnlisted) this.#add(tombstone)
      })
  }

  /**
   * Whether a watch has reported that the object with this key (`keyFor`) was deleted, and no list or watch has shown
   * it again since.
   */
  has(resource: ResourceName, key: string): boolean {
    return this.#keys.has(`${resource} ${key}`)
  }

  #add(tombstone: string): void {
    this.#keys.add(tombstone)
    for (const oldest of this.#keys) {
      if (this.#keys.size <= maxTombstones) break
      this.#keys.delete(oldest)
    }
  }
}
