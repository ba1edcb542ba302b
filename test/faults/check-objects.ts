// Consistency rules for objects: no acknowledged write is lost, no unwritten content appears, and all clients see one
// order.
import { isInScope, mayDelete, type History, type Seen, type Write } from './history.ts'
import { contentText, objectKey, versionsIn, versionsOf, type Version } from './versions.ts'

export interface Violation {
  readonly rule: string
  readonly what: string
}

type Report = (rule: string, what: string) => void

/** Checks all rules that do not depend on the order of watches. */
export function checkObjects(history: History, report: Report): void {
  const { byObject, contradictions } = versionsOf(history)
  for (const what of contradictions) report('revision-reused', what)
  checkContents(history, report)
  checkTime(history, report)
  checkReads(history, report)
  checkChains(history, byObject, report)
}

/** Every content was written, completely, in this logical cluster. */
function checkContents(history: History, report: Report): void {
  const writers = new Map<string, Write>()
  for (const write of history.writes) if (write.token !== undefined) writers.set(write.token, write)
  for (const { seen, by } of versionsIn(history)) {
    const { data, mirror } = seen.content
    const where = `${objectKey(seen)} at ${seen.revision}, by ${by}`
    if (contentText({ data, mirror }) !== contentText({ data: mirror, mirror }))
      report('half-written', `${where}: ${JSON.stringify(data)} and ${JSON.stringify(mirror)}`)
    for (const token of Object.values(data)) {
      const write = writers.get(token)
      if (write === undefined) report('never-written', `${where}: "${token}"`)
      else if (write.cluster !== seen.cluster) report('crossed', `${where}: "${token}" was written in ${write.cluster}`)
      else if (write.name !== seen.name) report('never-written', `${where}: "${token}" was written to ${write.name}`)
      else if (write.outcome.is === 'refused')
        report('refused-but-there', `${where}: "${token}" was answered ${write.outcome.code}`)
    }
  }
}

/** An operation that began after another one ended has a later revision. */
function checkTime({ writes, lists }: History, report: Report): void {
  const over: { readonly ended: number; readonly revision: number; readonly what: string }[] = []
  const begun: { readonly begun: number; readonly revision: number; readonly least: number; readonly what: string }[] =
    []
  for (const write of writes) {
    if (write.outcome.is !== 'done' || write.outcome.seen === undefined) continue
    const { revision } = write.outcome.seen
    const what = `${write.kind} ${objectKey(write)} at ${revision}`
    over.push({ ended: write.ended, revision, what })
    begun.push({ begun: write.begun, revision, least: 1, what })
  }
  for (const list of lists) {
    if (!list.latest) continue
    const what = `a list of ${list.cluster} at ${list.revision}`
    over.push({ ended: list.ended, revision: list.revision, what })
    begun.push({ begun: list.begun, revision: list.revision, least: 0, what })
  }
  over.sort((a, b) => a.ended - b.ended)
  begun.sort((a, b) => a.begun - b.begun)
  let next = 0
  let newest = { revision: 0, what: 'the beginning' }
  for (const { begun: at, revision, least, what } of begun) {
    for (let other = over[next]; other !== undefined && other.ended < at; other = over[++next])
      if (other.revision > newest.revision) newest = other
    if (revision < newest.revision + least) report('went-back', `${what} began after ${newest.what} was over`)
  }
}

/**
 * A read of the latest state is no older than the writes acknowledged before it, unless the object may have been
 * deleted.
 */
function checkReads({ writes, lists, gets }: History, report: Report): void {
  const acknowledged = new Map<string, Write[]>()
  const deletions = new Map<string, number>()
  const maybeDeleted: Write[] = []
  for (const write of writes) {
    const { outcome, ended } = write
    // A collection is deleted name by name: an object created under such a name meanwhile is deleted as well.
    const isUnknownDeletion = outcome.is === 'unknown' && write.kind === 'delete'
    if (isUnknownDeletion || (write.kind === 'deletecollection' && outcome.is !== 'refused')) maybeDeleted.push(write)
    if (outcome.is !== 'done') continue
    for (const uid of outcome.uids ?? []) deletions.set(uid, Math.min(deletions.get(uid) ?? Infinity, ended))
    if (outcome.seen === undefined) continue
    const key = objectKey(write)
    const list = acknowledged.get(key)
    if (list === undefined) acknowledged.set(key, [write])
    else list.push(write)
  }
  for (const list of acknowledged.values()) list.sort((a, b) => a.ended - b.ended)
  const beganDeletions = new Map<string, number>()
  for (const { outcome, begun } of writes)
    if (outcome.is === 'done')
      for (const uid of outcome.uids ?? [])
        beganDeletions.set(uid, Math.min(beganDeletions.get(uid) ?? Infinity, begun))

  const mayBeGone = (write: Write, uid: string, readEnded: number): boolean =>
    (beganDeletions.get(uid) ?? Infinity) < readEnded ||
    maybeDeleted.some(
      (deletion) =>
        deletion.cluster === write.cluster &&
        mayDelete(deletion, write.name) &&
        deletion.begun < readEnded &&
        deletion.ended > write.begun,
    )
  const checkOne = (key: string, seen: Seen | undefined, begun: number, ended: number, what: string): void => {
    const before = lastBefore(acknowledged.get(key) ?? [], begun)
    const deletedAt = seen === undefined ? undefined : deletions.get(seen.uid)
    if (seen !== undefined && deletedAt !== undefined && deletedAt < begun) {
      const sinceMs = Math.round(begun - deletedAt)
      report('came-back', `${key}: ${seen.uid} at ${seen.revision} was deleted ${sinceMs} ms before, and is in ${what}`)
    }
    if (before === undefined) return
    const { uid, revision } = before.outcome.seen
    if (seen === undefined) {
      if (!mayBeGone(before.write, uid, ended)) report('lost', `${key}: acknowledged at ${revision}, not in ${what}`)
    } else if (seen.revision < revision)
      report('stale', `${key}: acknowledged at ${revision}, ${seen.revision} in ${what}`)
  }
  for (const list of lists) {
    if (!list.latest) continue
    const items = new Map(list.items.map((seen) => [objectKey(seen), seen]))
    const what = `a list of ${list.cluster} at ${list.revision}`
    for (const key of new Set([...acknowledged.keys(), ...items.keys()]))
      if (isInScope(list.cluster, key.split('/')[0] ?? '')) checkOne(key, items.get(key), list.begun, list.ended, what)
  }
  for (const get of gets) checkOne(objectKey(get), get.seen, get.begun, get.ended, 'a get')
  for (const list of lists)
    for (const { cluster, name } of list.items)
      if (!isInScope(list.cluster, cluster)) report('crossed', `${cluster}/${name} in a list of ${list.cluster}`)
}

/** Of the writes that ended before, the one with the highest revision. */
function lastBefore(
  writes: readonly Write[],
  time: number,
): { readonly write: Write; readonly outcome: { readonly seen: Seen } } | undefined {
  let best: { write: Write; outcome: { seen: Seen } } | undefined
  for (const write of writes) {
    if (write.ended >= time) break
    const seen = write.outcome.is === 'done' ? write.outcome.seen : undefined
    if (seen !== undefined && seen.revision > (best?.outcome.seen.revision ?? 0)) best = { write, outcome: { seen } }
  }
  return best
}

/** Each write of an object follows from the version before it. */
function checkChains(history: History, byObject: ReadonlyMap<string, readonly Version[]>, report: Report): void {
  const unsure = new Map<string, Write[]>()
  for (const write of history.writes)
    if (write.outcome.is === 'unknown' || write.kind === 'deletecollection') {
      const key = write.kind === 'deletecollection' ? write.cluster : objectKey(write)
      unsure.set(key, [...(unsure.get(key) ?? []), write])
    }
  const deletions = history.writes.filter(({ kind, outcome }) => kind.startsWith('delete') && outcome.is !== 'refused')
  for (const write of history.writes) {
    const seen = write.outcome.is === 'done' ? write.outcome.seen : undefined
    if (seen === undefined) continue
    const key = objectKey(write)
    const versions = byObject.get(key) ?? []
    const before = versions[versions.findIndex(({ revision }) => revision === seen.revision) - 1]
    const what = `${write.kind} ${key} at ${seen.revision}`
    const expected = write.kind === 'patch' ? undefined : { [write.key ?? '']: write.token }
    if (seen.content.data[write.key ?? ''] !== write.token || (expected && Object.keys(seen.content.data).length !== 1))
      report('not-what-was-written', `${what}: ${JSON.stringify(seen.content.data)}`)
    if (write.kind === 'update' && write.ifRevision !== undefined && before !== undefined)
      if (before.revision > write.ifRevision)
        report('swap-broken', `${what} was for ${write.ifRevision}, but ${before.revision} was in between`)
    const mayBeDeleted = (uid: string): boolean =>
      deletions.some(
        (deletion) =>
          deletion.cluster === write.cluster &&
          deletion.begun < write.ended &&
          (deletion.outcome.is === 'done' && deletion.kind === 'delete'
            ? deletion.outcome.uids?.includes(uid) === true
            : mayDelete(deletion, write.name)),
      )
    if (write.kind === 'create' && before !== undefined && !before.deleted)
      if (before.uid === seen.uid || !mayBeDeleted(before.uid))
        report('created-twice', `${what}: ${before.uid} was there at ${before.revision}`)
    if (write.kind !== 'create' && before !== undefined && (before.deleted || before.uid !== seen.uid)) {
      const hidden = [...(unsure.get(key) ?? []), ...(unsure.get(write.cluster) ?? [])]
      if (hidden.every(({ begun }) => begun > write.ended))
        report('changed-what-was-gone', `${what}: the version before, ${before.revision}, is not of ${seen.uid}`)
    }
    if (write.kind === 'patch' && before !== undefined && before.uid === seen.uid && !before.deleted) {
      const hidden = (unsure.get(key) ?? []).some(({ begun }) => begun < write.ended)
      const others = (text: string): string =>
        JSON.stringify((JSON.parse(text) as [string, string][]).filter(([name]) => name !== write.key))
      if (!hidden && others(before.content) !== others(contentText(seen.content)))
        report('update-lost', `${what}: ${before.content} became ${contentText(seen.content)}`)
    }
  }
}
