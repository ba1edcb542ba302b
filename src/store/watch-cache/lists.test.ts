import { expect } from 'chai'
import fc from 'fast-check'
import type { ClusterId, Revision } from '#apimachinery/meta/index.ts'
import { compareEntries, mergeByKey, rewind } from './lists.ts'
import { StoredEntry } from './stored-entry.ts'
import type { CacheEvent, Entry } from './watch-cache.ts'

const facts = { uid: 'u', labels: undefined, ownerUids: [], blockedUids: [] }

function entryOf(namespace: string, name: string, revision: number): Entry {
  const key = { cluster: 'a' as ClusterId, resource: 'things', namespace, name }
  const at = revision as Revision
  return new StoredEntry({ key, revision: at, createRevision: at, bytes: new Uint8Array(1), base: false }, () => facts)
}

/** Plays writes and deletions of ten objects; returns the events, and the list after each number of them. */
function play(steps: readonly { readonly object: number; readonly isDeletion: boolean }[]) {
  const objects = new Map<number, Entry>()
  const listNow = (): readonly Entry[] => [...objects.values()].sort(compareEntries)
  const lists = [listNow()]
  const events: CacheEvent[] = []
  for (const { object, isDeletion } of steps) {
    const previous = objects.get(object)
    const revision = (events.length + 1) as Revision
    if (isDeletion && previous === undefined) continue
    const entry = entryOf(`ns-${object % 3}`, `n-${object}`, revision)
    if (isDeletion) objects.delete(object)
    else objects.set(object, entry)
    const type = isDeletion ? 'DELETED' : 'MODIFIED'
    events.push(previous === undefined ? { type: 'ADDED', entry, revision } : { type, entry, previous, revision })
    lists.push(listNow())
  }
  return { events, lists }
}

describe('a list of the past', () => {
  const steps = fc.array(fc.record({ object: fc.nat(9), isDeletion: fc.boolean() }), { maxLength: 40 })

  it('is the list before the events, of all namespaces and of one', () => {
    fc.assert(
      fc.property(steps, fc.nat(), (writes, cut) => {
        const { events, lists } = play(writes)
        const then = cut % lists.length
        const current = lists.at(-1) ?? []
        const since = events.slice(then)
        expect(rewind(current, since, { resource: 'things' })).to.deep.equal(lists[then])
        const scope = { resource: 'things', namespace: 'ns-1' }
        const inScope = (list: readonly Entry[] = []) => list.filter(({ key }) => key.namespace === 'ns-1')
        expect(rewind(inScope(current), since, scope)).to.deep.equal(inScope(lists[then]))
      }),
    )
  })

  it('compares a few entries for a few events, however long the list is', () => {
    const current = Array.from({ length: 100_000 }, (_, i) => entryOf('', String(i).padStart(6, '0'), 1))
    let reads = 0
    const counted = current.map((entry) => ({
      ...entry,
      get key() {
        reads++
        return entry.key
      },
    }))
    const entry = entryOf('', '050000', 2)
    const events: CacheEvent[] = [{ type: 'ADDED', entry, revision: 2 as Revision }]
    expect(rewind(counted, events, { resource: 'things' })).to.have.length(99_999)
    expect(reads).to.be.at.most(50)
  })
})

describe('two sorted lists of entries', () => {
  const key = ({ key: { namespace, name } }: Entry): string => `${namespace}/${name}`

  it('are merged in the order of keys, whichever is the longer one', () => {
    const all = Array.from({ length: 2000 }, (_, i) => entryOf(`n-${i % 7}`, `o-${i}`, 1)).sort(compareEntries)
    const places = [0, 1, 5, 500, 501, 1000, 1998, 1999]
    for (const taken of [places, [0], [1999], all.map((_, i) => i).filter((i) => i % 2 === 0), []]) {
      const few = taken.map((i) => all[i] as Entry)
      const chosen = new Set(taken)
      const others = all.filter((_, i) => !chosen.has(i))
      for (const merged of [mergeByKey(others, few), mergeByKey(few, others)])
        expect(merged.map(key)).to.deep.equal(all.map(key))
    }
  })
})
