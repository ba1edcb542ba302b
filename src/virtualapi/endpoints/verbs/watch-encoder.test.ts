import { Buffer } from 'node:buffer'
import { expect } from 'chai'
import type { ClusterId, KubeObject, Revision } from '#apimachinery/meta/index.ts'
import { StoredEntry, type Entry, type CacheEvent } from '#store/watch-cache/index.ts'
import { viewOf } from '#virtualapi/codec/representations.ts'
import { ClusterCatalog } from '#virtualapi/catalog/cluster-catalog.ts'
import { encodeObject, readFacts, stampRevision } from '#virtualapi/kinds/resources/object-bytes.ts'
import { selectionOf } from './selection.ts'
import { WatchEncoder } from './watch-encoder.ts'

const definition = new ClusterCatalog().findBuiltIn({ group: '', version: 'v1', resource: 'configmaps' })
if (definition === undefined) throw new Error('configmaps are not built in')

const revision = (value: number): Revision => value as Revision

/** A ConfigMap with a label `color`, as the watch cache has it. */
function entry(name: string, color: string, at: number): Entry {
  const metadata = { name, namespace: 'shop', uid: name, labels: { color } }
  const bytes = stampRevision(encodeObject({ kind: 'ConfigMap', apiVersion: 'v1', metadata }), revision(at))
  const key = { cluster: 'a' as ClusterId, resource: 'configmaps', namespace: 'shop', name }
  return new StoredEntry({ key, revision: revision(at), createRevision: revision(1), base: false, bytes }, readFacts)
}

function encoderFor(query: string, as: 'Object' | 'Table' | 'PartialObjectMetadata' = 'Object'): WatchEncoder {
  if (definition === undefined) throw new Error('unreachable')
  const view = viewOf(definition, { as, format: 'json' }, { now: 0 })
  return new WatchEncoder({ definition, selection: selectionOf(new URLSearchParams(query), definition), view })
}

interface Line {
  readonly type: string
  readonly object: KubeObject & { columnDefinitions?: unknown }
}

const linesOf = (bytes: Uint8Array | undefined): Line[] =>
  Buffer.from(bytes ?? [])
    .toString()
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Line)

const textOf = ({ type, object: { metadata } }: Line): string =>
  `${type} ${metadata.name ?? '-'} ${metadata.labels?.['color'] ?? '-'} ${metadata.resourceVersion ?? '-'}`

const red = entry('a', 'red', 1)
const blue = entry('a', 'blue', 2)

describe('the events of a watch', () => {
  const added: CacheEvent = { type: 'ADDED', entry: red, revision: revision(1) }
  const toBlue: CacheEvent = { type: 'MODIFIED', entry: blue, previous: red, revision: revision(2) }
  const toRed: CacheEvent = { type: 'MODIFIED', entry: entry('a', 'red', 3), previous: blue, revision: revision(3) }
  const afterRestart: CacheEvent = { type: 'MODIFIED', entry: blue, previous: undefined, revision: revision(2) }
  const deleted: CacheEvent = { type: 'DELETED', entry: entry('a', 'blue', 4), previous: blue, revision: revision(4) }

  for (const { title, query, event, expected } of [
    { title: 'are unchanged without selectors', query: '', event: toBlue, expected: ['MODIFIED a blue 2'] },
    { title: 'are added if they match', query: 'labelSelector=color=red', event: added, expected: ['ADDED a red 1'] },
    { title: 'are hidden if they do not match', query: 'labelSelector=color=blue', event: added, expected: [] },
    {
      title: 'are added if they begin to match',
      query: 'labelSelector=color=blue',
      event: toBlue,
      expected: ['ADDED a blue 2'],
    },
    {
      title: 'are deleted, in their previous state at the new revision, if they cease to match',
      query: 'labelSelector=color=blue',
      event: toRed,
      expected: ['DELETED a blue 3'],
    },
    {
      title: 'are deleted if they do not match and the previous state is unknown',
      query: 'labelSelector=color=red',
      event: afterRestart,
      expected: ['DELETED a blue 2'],
    },
    {
      title: 'are deleted if they matched before',
      query: 'labelSelector=color=blue',
      event: deleted,
      expected: ['DELETED a blue 4'],
    },
    { title: 'are hidden if they never matched', query: 'labelSelector=color=red', event: deleted, expected: [] },
  ])
    it(title, () => {
      expect(linesOf(encoderFor(query).batch([event])).map(textOf)).to.deep.equal(expected)
    })

  it('are batched, and the same batch is encoded once for two watches', () => {
    const events = [added, toBlue]
    const first = encoderFor('').batch(events)
    expect(linesOf(first).map(textOf)).to.deep.equal(['ADDED a red 1', 'MODIFIED a blue 2'])
    expect(encoderFor('').batch(events)).to.equal(first)
    expect(encoderFor('').batch([toBlue])).to.not.equal(first)
  })

  it('keep no more memory than their lines have bytes, whatever else is allocated', () => {
    const encoder = encoderFor('')
    const lines = Array.from({ length: 200 }, (_, i) => {
      // What a server allocates between two events comes from Node's pool.
      for (let other = 0; other < 10; other++) Buffer.from('x'.repeat(8000))
      return encoder.batch([{ type: 'ADDED', entry: entry(`e${i}`, 'red', i + 1), revision: revision(i + 1) }])
    })
    const memory = new Set(lines.map((line) => line?.buffer))
    expect([...memory].reduce((sum, buffer) => sum + (buffer?.byteLength ?? 0), 0)).to.be.at.most(2 * 64 * 1024)
  })

  it('have the columns of a Table once', () => {
    const encoder = encoderFor('', 'Table')
    const lines = [added, toBlue].flatMap((event) => linesOf(encoder.batch([event])))
    expect(lines[0]?.object.columnDefinitions).to.be.an('array')
    expect(lines[1]?.object.columnDefinitions).to.equal(null)
  })
})

describe('the initial state of a watch', () => {
  const entries = [red, entry('b', 'blue', 2)]
  const state = (query: string, endsAt?: Revision): Line[] =>
    [...encoderFor(query).initial(entries, endsAt)].flatMap(linesOf)

  it('is ADDED events of what matches', () => {
    expect(state('labelSelector=color=blue').map(textOf)).to.deep.equal(['ADDED b blue 2'])
  })
  it('ends with a bookmark if asked for', () => {
    const lines = state('', revision(7))
    expect(lines.map(textOf)).to.deep.equal(['ADDED a red 1', 'ADDED b blue 2', 'BOOKMARK - - 7'])
    expect(lines.at(-1)?.object.metadata.annotations).to.deep.equal({ 'k8s.io/initial-events-end': 'true' })
  })
  it('is nothing without objects', () => {
    expect([...encoderFor('').initial([], undefined)]).to.deep.equal([])
  })

  it('is the same bytes for watches that begin at once, until an object changes', () => {
    const many = Array.from({ length: 1000 }, (_, i) => entry(`e${i}`, 'red', i + 1))
    const first = [...encoderFor('').initial(many, undefined)]
    const second = [...encoderFor('').initial(many, undefined)]
    expect(first.length).to.be.greaterThan(1)
    expect(second.every((chunk, i) => chunk === first[i])).to.equal(true)
    const changed = many.with(999, entry('e999', 'blue', 1001))
    const third = [...encoderFor('').initial(changed, undefined)]
    expect(third[0]).to.equal(first[0])
    expect(third.flatMap(linesOf).map(textOf)).to.deep.equal(
      changed.map(({ key, revision: at }) => `ADDED ${key.name} ${key.name === 'e999' ? 'blue' : 'red'} ${at}`),
    )
  })

  it('pauses among objects that do not match', () => {
    const many = Array.from({ length: 1000 }, (_, i) => entry(`e${i}`, 'red', 1))
    const chunks = [...encoderFor('labelSelector=color=blue').initial([...many, blue], undefined)]
    expect(chunks.filter(({ length }) => length === 0).length).to.be.within(10, 20)
    expect(chunks.flatMap(linesOf).map(textOf)).to.deep.equal(['ADDED a blue 2'])
    expect([...encoderFor('').initial(many, undefined)].every(({ length }) => length > 0)).to.equal(true)
  })
})

describe('a bookmark', () => {
  it('has the kind of the resource and the revision', () => {
    expect(linesOf(encoderFor('').bookmark(revision(9)))).to.deep.equal([
      {
        type: 'BOOKMARK',
        object: { kind: 'ConfigMap', apiVersion: 'v1', metadata: { resourceVersion: '9' } },
      },
    ])
  })
  it('has the form of the other events', () => {
    const [line] = linesOf(encoderFor('', 'PartialObjectMetadata').bookmark(revision(9)))
    expect(line?.object.kind).to.equal('PartialObjectMetadata')
  })
})
