// Indexes the owners of objects within one logical cluster. Built on first use, because few clusters need it.
import type { ObjectKey } from '#store/store.ts'
import type { Entry } from './watch-cache.ts'

interface Blockers extends Pick<ObjectKey, 'resource' | 'namespace'> {
  count: number
}

export class Dependents {
  readonly #byOwner = new Map<string, Set<Entry>>()
  /** Dependents with blockOwnerDeletion, counted by `resource/namespace`. */
  readonly #blockers = new Map<string, Map<string, Blockers>>()

  add(entry: Entry): void {
    for (const uid of entry.facts.ownerUids) {
      let entries = this.#byOwner.get(uid)
      if (!entries) this.#byOwner.set(uid, (entries = new Set()))
      entries.add(entry)
    }
    for (const uid of new Set(entry.facts.blockedUids)) this.#block(uid, entry, 1)
  }

  remove(entry: Entry): void {
    for (const uid of entry.facts.ownerUids) {
      const entries = this.#byOwner.get(uid)
      if (!entries?.delete(entry)) continue
      if (entries.size === 0) this.#byOwner.delete(uid)
    }
    for (const uid of new Set(entry.facts.blockedUids)) this.#block(uid, entry, -1)
  }

  of(ownerUid: string): readonly Entry[] {
    return [...(this.#byOwner.get(ownerUid) ?? [])]
  }

  blockersOf(ownerUid: string): Iterable<Pick<ObjectKey, 'resource' | 'namespace'>> {
    return this.#blockers.get(ownerUid)?.values() ?? []
  }

  #block(uid: string, { key: { resource, namespace } }: Entry, change: 1 | -1): void {
    const places = this.#blockers.get(uid) ?? new Map<string, Blockers>()
    const place = `${resource}/${namespace}`
    const known = places.get(place) ?? { resource, namespace, count: 0 }
    known.count += change
    if (known.count > 0) places.set(place, known)
    else places.delete(place)
    if (places.size > 0) this.#blockers.set(uid, places)
    else this.#blockers.delete(uid)
  }
}
