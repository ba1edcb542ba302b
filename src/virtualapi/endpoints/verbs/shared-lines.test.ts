import { Buffer } from 'node:buffer'
import { expect } from 'chai'
import type { ClusterId, Revision } from '#apimachinery/meta/index.ts'
import { StoredEntry, type CacheEvent } from '#store/watch-cache/index.ts'
import { ClusterCatalog } from '#virtualapi/catalog/cluster-catalog.ts'
import { viewOf, type ObjectView } from '#virtualapi/codec/representations.ts'
import { readFacts } from '#virtualapi/kinds/resources/object-bytes.ts'
import { SharedLines } from './shared-lines.ts'

function viewOfResource(resource: string): ObjectView {
  const definition = new ClusterCatalog().findBuiltIn({ group: '', version: 'v1', resource })
  if (definition === undefined) throw new Error(`${resource} are not built in`)
  return viewOf(definition, { as: 'Object', format: 'json' }, { now: 0 })
}
const view = viewOfResource('configmaps')

function event(at: number): CacheEvent {
  const revision = at as Revision
  const key = { cluster: 'a' as ClusterId, resource: 'configmaps', namespace: 'shop', name: `e${at}` }
  const bytes = Buffer.from('{}')
  const entry = new StoredEntry({ key, revision, createRevision: revision, base: false, bytes }, readFacts)
  return { type: 'ADDED', entry, revision }
}
const parts = (text: string): Buffer[] => [Buffer.from('<'), Buffer.from(text), Buffer.from('>')]

describe('the lines that watches share', () => {
  it('are joined and kept by event and view', () => {
    const lines = new SharedLines()
    const [first, second] = [event(1), event(2)]
    const kept = lines.keepLine(first, view, parts('one'))
    expect(String(kept)).to.equal('<one>')
    expect(lines.line(first, view)).to.equal(kept)
    expect(lines.line(second, view)).to.equal(undefined)
    expect(lines.line(first, viewOfResource('secrets'))).to.equal(undefined)
    expect(String(lines.keepLine(second, view, parts('two')))).to.equal('<two>')
    expect(String(kept)).to.equal('<one>')
  })

  it('are kept by all the events of a batch', () => {
    const lines = new SharedLines()
    const [first, second, third] = [event(1), event(2), event(3)]
    const kept = lines.keepBatch([first, second, third], view, parts('all'))
    expect(lines.batch([first, second, third], view)).to.equal(kept)
    expect(lines.batch([second, third], view)).to.equal(undefined)
    expect(lines.batch([first, third], view)).to.equal(undefined)
    expect(lines.batch([first, second, third], viewOfResource('secrets'))).to.equal(undefined)
  })

  it('are those of the newest events', () => {
    const lines = new SharedLines({ maxBytes: 10_000 })
    const events = Array.from({ length: 1000 }, (_, i) => event(i))
    for (const one of events) lines.keepLine(one, view, parts('x'.repeat(98)))
    const isKept = events.map((one) => lines.line(one, view) !== undefined)
    expect(isKept.filter((kept) => kept).length).to.be.within(100, 202)
    expect(isKept.lastIndexOf(false)).to.be.lessThan(isKept.indexOf(true))
    lines.keepBatch(events, view, parts('x'.repeat(50_000)))
    expect(lines.batch(events, view)?.length).to.equal(50_002)
    expect(lines.line(events[0] as CacheEvent, view)).to.equal(undefined)
  })
})
