import { Buffer } from 'node:buffer'
import { expect } from 'chai'
import { listItem } from './list-chunks.ts'
import { ListSegments, type ListItem } from './list-segments.ts'

const head = '{"kind":"ConfigMap","apiVersion":"v1",'
const body = (name: string): string => `"metadata":{"name":"${name}"},"data":{"text":"${'x'.repeat(1000)}"}}`
const item = (name: string): ListItem => listItem(Buffer.from(head + body(name)))
const names = Array.from({ length: 300 }, (_, i) => `item-${String(i).padStart(3, '0')}`)

/** An item that counts how often its bytes are read. */
function counted(name: string, reads: Map<string, number>): ListItem {
  const { bytes, size, beginning } = item(name)
  return {
    get bytes() {
      reads.set(name, (reads.get(name) ?? 0) + 1)
      return bytes
    },
    size,
    beginning,
  }
}

function joined(segments: ListSegments, items: readonly ListItem[], lead: string | undefined): string {
  const divided = segments.divide(items, lead)
  const bytes = divided.map((segment) => segments.bytesOf(items, segment, lead))
  expect(bytes.map(({ length }) => length)).to.deep.equal(divided.map(({ length }) => length))
  return Buffer.concat(bytes).toString()
}

describe('the segments of a list', () => {
  it('replace what is before metadata, or leave it', () => {
    const items = names.map(item)
    for (const [lead, start] of [
      ['{', '{'],
      ['{"kind":"Other",', '{"kind":"Other",'],
      [undefined, head],
    ] as const)
      expect(joined(new ListSegments(), items, lead)).to.equal(names.map((name) => `,${start}${body(name)}`).join(''))
  })

  it('are made once for lists of the same objects, and not mixed with those of other leads', () => {
    const reads = new Map<string, number>()
    const items = names.map((name) => counted(name, reads))
    const segments = new ListSegments()
    const first = joined(segments, items, '{')
    expect(joined(segments, [...items], '{')).to.equal(first)
    expect(new Set(reads.values())).to.deep.equal(new Set([1]))
    expect(joined(segments, items, undefined)).to.contain(head)
    expect(joined(segments, items, '{')).to.equal(first)
  })

  for (const { title, change } of [
    { title: 'changed', change: (items: ListItem[], other: ListItem) => items.with(150, other) },
    { title: 'was created', change: (items: ListItem[], other: ListItem) => items.toSpliced(150, 0, other) },
    { title: 'was deleted', change: (items: ListItem[]) => items.toSpliced(150, 1) },
  ])
    it(`are made again only where an object ${title}`, () => {
      const reads = new Map<string, number>()
      const items = names.map((name) => counted(name, reads))
      const segments = new ListSegments()
      joined(segments, items, '{')
      const next = change(items, item('other'))
      expect(joined(segments, next, '{')).to.equal(joined(new ListSegments(), next, '{'))
      reads.clear()
      const after = change(next, item('another'))
      expect(joined(segments, after, '{')).to.have.length.greaterThan(0)
      expect(reads.size).to.be.within(1, 130)
    })

  it('of one small list are not kept', () => {
    const reads = new Map<string, number>()
    const items = names.slice(0, 5).map((name) => counted(name, reads))
    const segments = new ListSegments()
    for (let i = 0; i < 3; i++) joined(segments, items, '{')
    expect(reads.get('item-000')).to.equal(3)
  })

  it('are dropped when others take their room', () => {
    const reads = new Map<string, number>()
    const items = names.map((name) => counted(name, reads))
    const segments = new ListSegments({ maxBytes: 400_000 })
    joined(segments, items, '{')
    for (const prefix of ['a', 'b', 'c'])
      joined(
        segments,
        names.map((name) => item(prefix + name)),
        '{',
      )
    joined(segments, items, '{')
    expect(reads.get('item-000')).to.equal(2)
  })
})
