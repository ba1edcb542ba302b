// Tests the checker: it accepts a good history and detects every kind of violation.
import { expect } from 'chai'
import { violationsOf } from './checker.ts'
import type { Entry, Epoch, ListRead, Seen, Session, Watch, Write } from './history.ts'

/** A correct server with the records of its clients. Time is a counter: operations never overlap. */
class GoodServer {
  readonly writes: Write[] = []
  readonly lists: ListRead[] = []
  readonly events: Entry[] = []
  #revision = 10
  #time = 0
  #uids = 0
  readonly #objects = new Map<string, Seen>()

  write(kind: 'create' | 'update' | 'patch', cluster: string, name: string, key = 'value'): void {
    const before = this.#objects.get(`${cluster}/${name}`)
    const token = `${cluster}/${kind}.${this.#time}`
    const begun = ++this.#time
    const data = kind === 'patch' ? { ...before?.content.data, [key]: token } : { [key]: token }
    const uid = kind === 'create' ? `uid-${++this.#uids}` : (before?.uid ?? '')
    const seen = { cluster, name, uid, revision: ++this.#revision, content: { data, mirror: data } }
    this.#objects.set(`${cluster}/${name}`, seen)
    this.events.push({ type: kind === 'create' ? 'ADDED' : 'MODIFIED', seen })
    const condition = kind === 'update' ? { ifRevision: before?.revision ?? 0 } : {}
    const outcome = { is: 'done', seen } as const
    this.writes.push({ kind, cluster, name, token, key, ...condition, begun, ended: ++this.#time, outcome })
  }

  delete(cluster: string, name: string): void {
    const begun = ++this.#time
    const before = this.#objects.get(`${cluster}/${name}`)
    if (before === undefined) throw new Error(`no ${name}`)
    this.#objects.delete(`${cluster}/${name}`)
    this.events.push({ type: 'DELETED', seen: { ...before, revision: ++this.#revision } })
    const outcome = { is: 'done', uids: [before.uid] } as const
    this.writes.push({ kind: 'delete', cluster, name, begun, ended: ++this.#time, outcome })
  }

  list(cluster: string): ListRead {
    const begun = ++this.#time
    const items = [...this.#objects.values()].filter((seen) => cluster === '*' || seen.cluster === cluster)
    const list = { cluster, revision: this.#revision, items, begun, ended: ++this.#time, latest: true }
    this.lists.push(list)
    return list
  }

  watch(title: string, list: ListRead, sessions: readonly Session[]): Watch {
    return { title, cluster: list.cluster, epochs: [{ list, sessions: [...sessions] }] }
  }
}

interface Made {
  writes: Write[]
  lists: ListRead[]
  gets: []
  watches: Watch[]
}

function good(): Made {
  const server = new GoodServer()
  const [start, everywhere] = [server.list('a'), server.list('*')]
  const act = (): void => {
    server.write('create', 'a', 'one')
    server.write('create', 'b', 'one')
    server.write('update', 'a', 'one')
    server.write('patch', 'a', 'one', 'other')
    server.list('a')
    server.write('create', 'a', 'two')
    server.delete('a', 'one')
    server.write('create', 'a', 'one')
    server.list('a')
    server.list('b')
  }
  act()
  server.delete('a', 'one')
  server.delete('a', 'two')
  server.delete('b', 'one')
  act()
  const all = server.events
  const inA = all.filter((entry) => entry.type !== 'BOOKMARK' && entry.seen.cluster === 'a')
  const [first, second] = [inA.slice(0, 5), inA.slice(5)]
  const middle = first.at(-1)
  if (middle === undefined || middle.type === 'BOOKMARK') throw new Error('no events')
  const sessions: Session[] = [
    { since: start.revision, entries: first },
    { since: middle.seen.revision, entries: [{ type: 'BOOKMARK', revision: middle.seen.revision }, ...second] },
  ]
  return {
    writes: server.writes,
    lists: server.lists,
    gets: [],
    watches: [
      server.watch('a', start, sessions),
      server.watch('all', everywhere, [{ since: everywhere.revision, entries: [...all] }]),
    ],
  }
}

function isMade(value: unknown): value is Made {
  return typeof value === 'object' && value !== null && 'watches' in value
}

function lastSession(history: Made, watch = 0): Session {
  const session = (history.watches[watch]?.epochs[0] as Epoch).sessions.at(-1)
  if (session === undefined) throw new Error('no session')
  return session
}

function ackOf(history: Made, kind: string, at = 0): Write & { outcome: { is: 'done'; seen: Seen } } {
  const found = history.writes.filter((write) => write.kind === kind && write.cluster === 'a').at(at)
  if (found === undefined) throw new Error(`no ${kind}`)
  return found as Write & { outcome: { is: 'done'; seen: Seen } }
}

function replace<T>(array: T[], old: T, other: T): void {
  array[array.indexOf(old)] = other
}

/** Changes one version everywhere it appears in the history. */
function rewriteVersion(history: Made, revision: number, change: (seen: Seen) => Seen): Made {
  const told = <T>(value: T): T =>
    JSON.parse(JSON.stringify(value), (_, inner: unknown) =>
      typeof inner === 'object' && inner !== null && 'uid' in inner && (inner as unknown as Seen).revision === revision
        ? change(inner as unknown as Seen)
        : inner,
    ) as T
  return told(history)
}

/** `spoil` changes the history in place, or returns another. */
const violations: Readonly<Record<string, { rule: string; spoil: (history: Made) => unknown }>> = {
  'an acknowledged write that is missing': {
    rule: 'lost',
    spoil: (history) => {
      const { seen } = ackOf(history, 'create', -1).outcome
      for (const list of history.lists)
        replace(history.lists, list, { ...list, items: list.items.filter(({ uid }) => uid !== seen.uid) })
    },
  },
  'a list with an older state than was acknowledged before it': {
    rule: 'stale',
    spoil: (history) => {
      const old = ackOf(history, 'create', 0).outcome.seen
      const list = history.lists.find(({ items }) => items.some(({ uid }) => uid === old.uid)) as ListRead
      replace(history.lists, list, { ...list, items: list.items.map((seen) => (seen.uid === old.uid ? old : seen)) })
    },
  },
  'a deleted object that reappears': {
    rule: 'came-back',
    spoil: (history) => {
      const { seen } = ackOf(history, 'create', 0).outcome
      const list = history.lists.at(-2) as ListRead
      replace(history.lists, list, { ...list, items: [...list.items.filter(({ name }) => name !== seen.name), seen] })
    },
  },
  'a partial write': {
    rule: 'half-written',
    spoil: (history) =>
      rewriteVersion(history, ackOf(history, 'update').outcome.seen.revision, (seen) => ({
        ...seen,
        content: { ...seen.content, mirror: {} },
      })),
  },
  'content that nobody wrote': {
    rule: 'never-written',
    spoil: (history) =>
      rewriteVersion(history, ackOf(history, 'update').outcome.seen.revision, (seen) => ({
        ...seen,
        content: { data: { value: 'x' }, mirror: { value: 'x' } },
      })),
  },
  'a refused write that took effect': {
    rule: 'refused-but-there',
    spoil: (history) => {
      const write = ackOf(history, 'update')
      replace<Write>(history.writes, write, { ...write, outcome: { is: 'refused', code: 409 } })
    },
  },
  'content of another logical cluster': {
    rule: 'crossed',
    spoil: (history) => {
      const foreign = history.writes.find(({ cluster }) => cluster === 'b')?.outcome as { seen: Seen }
      return rewriteVersion(history, ackOf(history, 'update').outcome.seen.revision, (seen) => ({
        ...seen,
        content: foreign.seen.content,
      }))
    },
  },
  'an event of another logical cluster': {
    rule: 'crossed',
    spoil: (history) => {
      const all = lastSession(history, 1).entries
      const foreign = all.findLast((entry) => entry.type !== 'BOOKMARK' && entry.seen.cluster === 'b') as Entry
      lastSession(history).entries.push(foreign)
    },
  },
  'one revision for two changes': {
    rule: 'revision-reused',
    spoil: (history) => {
      const first = ackOf(history, 'create', 0)
      const { seen } = first.outcome
      const outcome = { ...first.outcome, seen: { ...seen, uid: 'another' } }
      replace<Write>(history.writes, first, { ...first, outcome })
    },
  },
  'a revision that decreases': {
    rule: 'went-back',
    spoil: (history) => {
      const list = history.lists.at(-1) as ListRead
      replace(history.lists, list, { ...list, revision: 11, items: [] })
    },
  },
  'two updates of the same revision': {
    rule: 'swap-broken',
    spoil: (history) => {
      const write = ackOf(history, 'update', -1)
      replace<Write>(history.writes, write, { ...write, ifRevision: (write.ifRevision ?? 0) - 1 })
    },
  },
  'a create of an existing object': {
    rule: 'created-twice',
    spoil: (history) => {
      const write = ackOf(history, 'update')
      replace<Write>(history.writes, write, { ...write, kind: 'create' })
    },
  },
  'a patch that undoes the write before it': {
    rule: 'update-lost',
    spoil: (history) => {
      const write = ackOf(history, 'patch')
      return rewriteVersion(history, write.outcome.seen.revision, (seen) => {
        const data = { [write.key ?? '']: write.token ?? '' }
        return { ...seen, content: { data, mirror: data } }
      })
    },
  },
  'an answer that differs from the written content': {
    rule: 'not-what-was-written',
    spoil: (history) => {
      const [first, second] = [ackOf(history, 'create', 0), ackOf(history, 'update')]
      return rewriteVersion(history, second.outcome.seen.revision, (seen) => ({
        ...seen,
        content: first.outcome.seen.content,
      }))
    },
  },
  'an event delivered twice after resuming': {
    rule: 'watch-twice',
    spoil: (history) => {
      const [first, second] = (history.watches[0]?.epochs[0] as Epoch).sessions as [Session, Session]
      second.entries.unshift(first.entries.at(-1) as Entry)
    },
  },
  'an event delivered twice in a row': {
    rule: 'watch-twice',
    spoil: (history) => {
      const { entries } = lastSession(history, 1)
      entries.splice(3, 0, entries[2] as Entry)
    },
  },
  'a missing event': {
    rule: 'watch-gap',
    spoil: (history) => lastSession(history).entries.splice(2, 1),
  },
  'a missing deletion': {
    rule: 'watch-gap',
    spoil: (history) => {
      const { entries } = lastSession(history)
      entries.splice(
        entries.findIndex(({ type }) => type === 'DELETED'),
        1,
      )
    },
  },
  'a missing deletion across a restart': {
    rule: 'watch-is-not-list',
    spoil: (history) => {
      const epoch = history.watches[0]?.epochs[0] as Epoch
      const { since, entries } = lastSession(history)
      const at = entries.findLastIndex((entry) => entry.type === 'DELETED')
      const gone = entries[at] as Entry & { seen: Seen }
      entries.splice(at, 1)
      // The server restarted right after the deletion; the object was gone by then.
      const items = ackOf(history, 'create', -2).outcome.seen
      epoch.sessions[1] = { since, restartedAt: gone.seen.revision, entries }
      const before = history.lists.at(-1) as ListRead
      const list = { ...before, cluster: 'a', latest: false, revision: gone.seen.revision, items: [items] }
      history.lists.push(list)
    },
  },
  'events out of order': {
    rule: 'watch-order',
    spoil: (history) => {
      const { entries } = lastSession(history, 1)
      entries.push(...entries.splice(4, 1))
    },
  },
  'a bookmark of an older revision': {
    rule: 'watch-order',
    spoil: (history) => lastSession(history).entries.push({ type: 'BOOKMARK', revision: 11 }),
  },
  'a bookmark ahead of the events it covers': {
    rule: 'watch-order',
    spoil: (history) => {
      const { entries } = lastSession(history, 1)
      const last = entries.at(-1) as Entry & { seen: Seen }
      entries.splice(1, 0, { type: 'BOOKMARK', revision: last.seen.revision })
    },
  },
  'ADDED for an existing object': {
    rule: 'watch-type',
    spoil: (history) => {
      const { entries } = lastSession(history, 1)
      const at = entries.findIndex(({ type }) => type === 'MODIFIED')
      entries[at] = { type: 'ADDED', seen: (entries[at] as Entry & { seen: Seen }).seen }
    },
  },
  'a list that matches no state of the watch': {
    rule: 'watch-is-not-list',
    spoil: (history) => {
      const list = history.lists.at(-2) as ListRead
      replace(history.lists, list, { ...list, items: list.items.slice(1), latest: false })
    },
  },
}

describe('the consistency checker', () => {
  it('accepts a good history', () => {
    expect(violationsOf(good())).to.deep.equal([])
  })

  it('accepts either result of an unknown outcome, and final states across a restart', () => {
    const history = good()
    const write = ackOf(history, 'update')
    replace<Write>(history.writes, write, { ...write, outcome: { is: 'unknown' } })
    const never: Write = { ...write, token: 'a/never', name: 'three', outcome: { is: 'unknown' } }
    history.writes.push(never)
    const epoch = history.watches[1]?.epochs[0] as Epoch
    const [{ since, entries }] = epoch.sessions as [Session]
    const patched = entries.findIndex(({ type }) => type === 'MODIFIED')
    entries.splice(patched, 1)
    const upTo = (entries[patched] as Entry & { seen: Seen }).seen.revision
    epoch.sessions[0] = { since, restartedAt: upTo, entries }
    expect(violationsOf(history)).to.deep.equal([])
  })

  for (const [title, { rule, spoil }] of Object.entries(violations))
    it(`finds ${title}`, () => {
      const history = good()
      const spoiled = spoil(history)
      const bad = isMade(spoiled) ? spoiled : history
      expect(violationsOf(bad).map((violation) => violation.rule)).to.include(rule)
    })
})
