// The members whose syncers run in this process.
import type { KubeClient } from '#client/index.ts'
import type { MemberAccess } from '#operator/index.ts'

export class SyncedMembers {
  readonly #members = new Map<string, MemberAccess>()
  readonly #listeners = new Set<(member: string) => void>()

  get(name: string): MemberAccess | undefined {
    return this.#members.get(name)
  }

  /** Called when a syncer has started. */
  add(name: string, access: MemberAccess): void {
    this.#members.set(name, access)
    for (const listener of this.#listeners) listener(name)
  }

  /** Called when the syncer with this client has ended. Another one may have taken its place. */
  remove(name: string, client: KubeClient): void {
    if (this.#members.get(name)?.client === client) this.#members.delete(name)
  }

  /** Calls the listener with the name of each member that is added. Returns the function that ends this. */
  onAdded(listener: (member: string) => void): () => void {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }
}
