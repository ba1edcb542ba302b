// Consistency rules for watches: events in order, none twice, none missing, and the replayed state equals every list.
import { isInScope, type Epoch, type History, type ListRead, type Seen, type Watch } from './history.ts'
import { objectKey, revisionOf, versionsOf, type Version } from './versions.ts'

type Report = (rule: string, what: string) => void

/** Revisions (after, upTo] for which a watch may deliver only final states. */
interface Zone {
  readonly after: number
  readonly upTo: number
}

export function checkWatches(history: History, report: Report): void {
  const { byObject } = versionsOf(history)
  const lists = history.lists.concat(history.watches.flatMap(({ epochs }) => epochs.map(({ list }) => list)))
  for (const watch of history.watches)
    for (const epoch of watch.epochs) {
      checkOrder(watch, epoch, report)
      checkGaps(watch, epoch, byObject, report)
      checkStates(watch, epoch, lists, report)
    }
}

function checkOrder({ title }: Watch, { list, sessions }: Epoch, report: Report): void {
  let last = list.revision
  const delivered = new Set<number>()
  for (const { since, entries } of sessions) {
    if (since > last) report('watch-resumed-ahead', `${title}: at ${since}, but ${last} was the last it was delivered`)
    for (const entry of entries) {
      const revision = revisionOf(entry)
      if (entry.type === 'BOOKMARK') {
        if (revision < last) report('watch-order', `${title}: bookmark ${revision} after ${last}`)
      } else {
        const what = `${title}: ${entry.type} ${objectKey(entry.seen)} at ${revision}`
        if (delivered.has(revision)) report('watch-twice', what)
        else if (revision <= last) report('watch-order', `${what} after ${last}`)
        delivered.add(revision)
      }
      last = Math.max(last, revision)
    }
  }
}

function zonesOf({ sessions }: Epoch): readonly Zone[] {
  return sessions.flatMap(({ since, restartedAt }) =>
    restartedAt === undefined || restartedAt <= since ? [] : [{ after: since, upTo: restartedAt }],
  )
}

function lastSeen({ list, sessions }: Epoch): number {
  const revisions = sessions.flatMap(({ since, entries }) => [since, ...entries.map(revisionOf)])
  return Math.max(list.revision, ...revisions.slice(-1), ...sessions.slice(-1).map(({ since }) => since))
}

function checkGaps(
  { title, cluster }: Watch,
  epoch: Epoch,
  byObject: ReadonlyMap<string, readonly Version[]>,
  report: Report,
): void {
  const delivered = new Set<number>()
  for (const { entries } of epoch.sessions) for (const entry of entries) delivered.add(revisionOf(entry))
  const zones = zonesOf(epoch)
  const last = lastSeen(epoch)
  for (const [key, versions] of byObject) {
    if (!isInScope(cluster, key.split('/')[0] ?? '')) continue
    for (const { revision, deleted } of versions) {
      if (revision <= epoch.list.revision || revision > last || delivered.has(revision)) continue
      if (zones.some(({ after, upTo }) => after < revision && revision <= upTo)) continue
      report('watch-gap', `${title}: was not delivered of ${key} ${deleted ? 'deleted ' : ''}at ${revision}`)
    }
  }
}

/** Replays the events onto the list and compares with every list at a revision on the way. */
function checkStates({ title, cluster }: Watch, epoch: Epoch, lists: readonly ListRead[], report: Report): void {
  const zones = zonesOf(epoch)
  const inside = (revision: number): boolean => zones.some(({ after, upTo }) => after < revision && revision < upTo)
  const touched = (revision: number): boolean => zones.some(({ after, upTo }) => after < revision && revision <= upTo)
  const last = lastSeen(epoch)
  const due = lists
    .filter((list) => list !== epoch.list && (cluster === '*' || list.cluster === cluster))
    .filter(({ revision }) => revision >= epoch.list.revision && revision <= last && !inside(revision))
    .sort((a, b) => a.revision - b.revision)
  const state = new Map<string, Seen>()
  for (const seen of epoch.list.items) state.set(objectKey(seen), seen)
  let next = 0
  const compareUntil = (revision: number): void => {
    for (let list = due[next]; list !== undefined && list.revision < revision; list = due[++next])
      compare(title, list, state, report)
  }
  for (const { entries } of epoch.sessions)
    for (const entry of entries) {
      if (entry.type === 'BOOKMARK') continue
      const { type, seen } = entry
      compareUntil(seen.revision)
      const key = objectKey(seen)
      const known = state.get(key)
      const what = `${title}: ${type} ${key} ${seen.uid} at ${seen.revision}`
      if (!isInScope(cluster, seen.cluster)) report('crossed', what)
      if (type === 'ADDED' ? known !== undefined : known === undefined || known.uid !== seen.uid) {
        // An object created and deleted while nobody watched may be reported as deleted.
        const unknownGone = type === 'DELETED' && known === undefined && touched(seen.revision)
        if (!unknownGone) report('watch-type', `${what}; known: ${known === undefined ? 'nothing' : known.uid}`)
      }
      if (type === 'DELETED') state.delete(key)
      else state.set(key, seen)
    }
  compareUntil(Infinity)
}

function compare(title: string, list: ListRead, state: ReadonlyMap<string, Seen>, report: Report): void {
  const text = (items: Iterable<Seen>): string[] =>
    [...items]
      .filter(({ cluster }) => isInScope(list.cluster, cluster))
      .map((seen) => `${objectKey(seen)} ${seen.uid} at ${seen.revision}`)
      .sort()
  const [listed, played] = [text(list.items), text(state.values())]
  const missing = listed.filter((item) => !played.includes(item))
  const extra = played.filter((item) => !listed.includes(item))
  if (missing.length + extra.length > 0)
    report(
      'watch-is-not-list',
      `${title} at ${list.revision}: not delivered of ${missing.slice(0, 3).join(', ') || 'nothing'}; left: ${extra.slice(0, 3).join(', ') || 'nothing'}`,
    )
}
