// A watch of resource `members`. Its objects are not stored, so there is no history: a revision is a hash of the
// objects shown, and a watch goes on only from the current revision.
import { createHash } from 'node:crypto'
import type { ClusterId, Revision } from '#apimachinery/meta/index.ts'
import {
  StoredEntry,
  type Entry,
  type CacheEvent,
  type CacheWatch,
  type WatchReader,
} from '#store/watch-cache/index.ts'
import { readFacts, stampRevision } from '#virtualapi/kinds/resources/object-bytes.ts'

/** The objects that a logical cluster shows at one time: bytes without a revision, by name, in the order shown. */
export interface ShownMembers {
  readonly revision: Revision
  readonly byName: ReadonlyMap<string, Uint8Array>
}

const scopeOf = (cluster: ClusterId) => ({ cluster, resource: 'members.kcp.dev', namespace: '' })

export function shownMembers(byName: ReadonlyMap<string, Uint8Array>): ShownMembers {
  return { byName, revision: revisionOf(byName) }
}

/** The objects as entries of the watch cache, for selectors and views. */
export function entriesOf({ byName, revision }: ShownMembers, cluster: ClusterId): Entry[] {
  return [...byName].map(([name, bytes]) => entryOf({ cluster, name, bytes, revision }))
}

export class MembersWatch implements CacheWatch {
  readonly #cluster: ClusterId
  readonly #look: () => ShownMembers | undefined
  readonly #unfollow: () => void
  #known: ShownMembers
  #reader: WatchReader | undefined
  #isDue = false

  /**
   * `known`: the objects that the client has. `look`: returns the objects shown now; undefined if the logical cluster
   * is gone. `follow`: calls `changed` whenever the result of `look` may have changed, until the returned function is
   * called.
   */
  constructor({
    cluster,
    known,
    look,
    follow,
  }: {
    readonly cluster: ClusterId
    readonly known: ShownMembers
    readonly look: () => ShownMembers | undefined
    readonly follow: (changed: () => void) => () => void
  }) {
    this.#cluster = cluster
    this.#known = known
    this.#look = look
    this.#unfollow = follow(() => {
      this.#isDue = true
      this.#reader?.ready()
    })
  }

  get waits(): boolean {
    return this.#isDue
  }

  read(reader: WatchReader): void {
    this.#reader = reader
    if (this.#isDue) reader.ready()
  }

  take(): readonly CacheEvent[] | undefined {
    this.#isDue = false
    const now = this.#look()
    if (now === undefined) return undefined
    if (now.revision === this.#known.revision) return []
    const events = eventsBetween(this.#known, now, this.#cluster)
    this.#known = now
    return events
  }

  progress(): Revision {
    return this.#known.revision
  }

  [Symbol.dispose](): void {
    this.#reader = undefined
    this.#unfollow()
  }
}

/**
 * The events from one state to the next. Each event has the revision of the state after it and all events before it: a
 * client that has not read all events cannot go on from its revision.
 */
function eventsBetween(before: ShownMembers, after: ShownMembers, cluster: ClusterId): CacheEvent[] {
  const state = new Map(before.byName)
  const events: CacheEvent[] = []
  for (const name of new Set([...before.byName.keys(), ...after.byName.keys()])) {
    const [old, bytes] = [before.byName.get(name), after.byName.get(name)]
    if (bytes === undefined) state.delete(name)
    else if (old === undefined || Buffer.compare(old, bytes) !== 0) state.set(name, bytes)
    else continue
    const revision = revisionOf(state)
    const previous = old && entryOf({ cluster, name, bytes: old, revision })
    const entry = bytes === undefined ? previous : entryOf({ cluster, name, bytes, revision })
    if (entry === undefined) continue
    const type = bytes === undefined ? 'DELETED' : old === undefined ? 'ADDED' : 'MODIFIED'
    events.push({ type, entry, revision, previous })
  }
  return events
}

function entryOf({
  cluster,
  name,
  bytes,
  revision,
}: {
  cluster: ClusterId
  name: string
  bytes: Uint8Array
  revision: Revision
}): Entry {
  const key = { ...scopeOf(cluster), name }
  const stamped = stampRevision(bytes, revision)
  return new StoredEntry({ key, revision, createRevision: revision, bytes: stamped, base: false }, readFacts)
}

/** The revision of a state: 52 bits of a hash, above 0, which JavaScript and clients hold exactly. */
function revisionOf(byName: ReadonlyMap<string, Uint8Array>): Revision {
  const hash = createHash('sha256')
  for (const [name, bytes] of [...byName].sort(([a], [b]) => (a < b ? -1 : 1)))
    hash.update(`${name} ${bytes.length} `).update(bytes)
  return (parseInt(hash.digest('hex').slice(0, 13), 16) || 1) as Revision
}
