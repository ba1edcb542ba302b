// Keys of objects of all logical clusters by logical cluster and by namespace, so that one is looked at without walking over
// all.
import { parseKey } from '../../client/index.ts'

/** `CLUSTER|NAMESPACE` of an object's key; `CLUSTER|` where it is in no namespace. */
export function spaceOf(key: string): string {
  const slash = key.lastIndexOf('/')
  return key.slice(0, slash < 0 ? key.indexOf('|') + 1 : slash)
}

export class KeyIndex {
  readonly #clusters = new Map<string, Map<string, Set<string>>>()

  /** `isThere`: whether there is an object of this key now. */
  set(key: string, isThere: boolean): void {
    const { cluster = '' } = parseKey(key)
    const space = spaceOf(key)
    const spaces = this.#clusters.get(cluster) ?? new Map<string, Set<string>>()
    const keys = spaces.get(space) ?? new Set<string>()
    if (isThere) keys.add(key)
    else keys.delete(key)
    if (keys.size === 0) spaces.delete(space)
    else spaces.set(space, keys)
    if (spaces.size === 0) this.#clusters.delete(cluster)
    else this.#clusters.set(cluster, spaces)
  }

  inSpace(space: string): Iterable<string> {
    const { cluster = '' } = parseKey(space)
    return this.#clusters.get(cluster)?.get(space) ?? []
  }

  *inCluster(cluster: string): Generator<string> {
    for (const keys of this.#clusters.get(cluster)?.values() ?? []) yield* keys
  }
}
