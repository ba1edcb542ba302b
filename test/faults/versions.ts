// Collects every version of every object from all parts of a history.
import type { Content, Entry, History, Seen } from './history.ts'

export interface Version {
  readonly revision: number
  readonly uid: string
  readonly content: string
  readonly deleted: boolean
}

export interface Observed {
  readonly seen: Seen
  readonly deleted: boolean
  /** The client that saw it, for messages. */
  readonly by: string
}

/** All versions in the history, in no particular order. */
export function* versionsIn({ writes, lists, gets, watches }: History): Generator<Observed> {
  for (const { kind, outcome } of writes)
    if (outcome.is === 'done' && outcome.seen !== undefined)
      yield { seen: outcome.seen, deleted: false, by: `the answer of a ${kind}` }
  for (const { items, revision } of lists)
    for (const seen of items) yield { seen, deleted: false, by: `a list at ${revision}` }
  for (const { seen } of gets) if (seen !== undefined) yield { seen, deleted: false, by: 'a get' }
  for (const { title, epochs } of watches)
    for (const { list, sessions } of epochs) {
      for (const seen of list.items) yield { seen, deleted: false, by: `the list of ${title}` }
      for (const { entries } of sessions)
        for (const entry of entries)
          if (entry.type !== 'BOOKMARK')
            yield { seen: entry.seen, deleted: entry.type === 'DELETED', by: `the watch ${title}` }
    }
}

export const objectKey = ({ cluster, name }: { readonly cluster: string; readonly name: string }): string =>
  `${cluster}/${name}`

/** The same text for the same content, whatever the order of its keys. */
export function contentText({ data }: Content): string {
  return JSON.stringify(Object.entries(data).sort(([a], [b]) => (a < b ? -1 : 1)))
}

export function revisionOf(entry: Entry): number {
  return entry.type === 'BOOKMARK' ? entry.revision : entry.seen.revision
}

/** The versions of every object, oldest first, and contradictions: two versions with one revision. */
export function versionsOf(history: History): {
  readonly byObject: ReadonlyMap<string, readonly Version[]>
  readonly contradictions: readonly string[]
} {
  const byRevision = new Map<number, { readonly key: string; readonly version: Version; readonly by: string }>()
  const contradictions: string[] = []
  for (const { seen, deleted, by } of versionsIn(history)) {
    const key = objectKey(seen)
    const version = { revision: seen.revision, uid: seen.uid, content: contentText(seen.content), deleted }
    const known = byRevision.get(seen.revision)
    if (known === undefined) byRevision.set(seen.revision, { key, version, by })
    else if (known.key !== key || !isSame(known.version, version))
      contradictions.push(
        `revision ${seen.revision} is ${describe(known.key, known.version)} by ${known.by} and ${describe(key, version)} by ${by}`,
      )
  }
  const byObject = new Map<string, Version[]>()
  for (const { key, version } of byRevision.values()) {
    const versions = byObject.get(key)
    if (versions === undefined) byObject.set(key, [version])
    else versions.push(version)
  }
  for (const versions of byObject.values()) versions.sort((a, b) => a.revision - b.revision)
  return { byObject, contradictions }
}

function isSame(a: Version, b: Version): boolean {
  return a.uid === b.uid && a.content === b.content && a.deleted === b.deleted
}

function describe(key: string, { uid, content, deleted }: Version): string {
  return `${key} ${uid}${deleted ? ' deleted' : ''} ${content}`
}
