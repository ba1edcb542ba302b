// Who names whom as an owner, within one logical cluster. Made on first use: few are ever asked.
import type { Entry } from './hub.ts'

export class Dependents {
  readonly #byOwner = new Map<string, Set<Entry>>()

  add(entry: Entry): void {
    for (const uid of entry.facts.ownerUids) {
      let entries = this.#byOwner.get(uid)
      if (!entries) this.#byOwner.set(uid, (entries = new Set()))
      entries.add(entry)
    }
  }

  remove(entry: Entry): void {
    for (const uid of entry.facts.ownerUids) {
      const entries = this.#byOwner.get(uid)
      if (!entries?.delete(entry)) continue
      if (entries.size === 0) this.#byOwner.delete(uid)
    }
  }

  of(ownerUid: string): readonly Entry[] {
    return [...(this.#byOwner.get(ownerUid) ?? [])]
  }
}
