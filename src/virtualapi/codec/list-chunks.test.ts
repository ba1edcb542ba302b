import { expect } from 'chai'
import { listChunks, listItem, textChunks } from './list-chunks.ts'

const bytes = (object: unknown): Uint8Array => Buffer.from(JSON.stringify(object))
const joined = (chunks: Iterable<Uint8Array>): Buffer => Buffer.concat([...chunks])
const item = (name: string, kind = 'ConfigMap', apiVersion = 'v1') => ({ kind, apiVersion, metadata: { name } })

describe('a list of encoded objects', () => {
  for (const { title, items, head, expected } of [
    { title: 'may be empty', items: [], head: '', expected: [] },
    {
      title: 'drops kind and apiVersion of every item of a built-in kind',
      items: [item('a'), item('b')],
      head: '',
      expected: [{ metadata: { name: 'a' } }, { metadata: { name: 'b' } }],
    },
    {
      title: 'drops kind and apiVersion of items stored in several versions',
      items: [
        item('a', 'HPA', 'autoscaling/v2beta1'),
        item('b', 'HPA', 'autoscaling/v2'),
        item('c', 'HPA', 'autoscaling/v1'),
      ],
      head: '"kind":"HPA",',
      expected: ['a', 'b', 'c'].map((name) => ({ kind: 'HPA', metadata: { name } })),
    },
    {
      title: 'finds the metadata of items that contain the text "metadata" elsewhere',
      items: [
        { ...item('a'), data: { '"metadata":{': '{"metadata":{' } },
        { ...item('b'), spec: { metadata: {} } },
      ],
      head: '',
      expected: [
        { metadata: { name: 'a' }, data: { '"metadata":{': '{"metadata":{' } },
        { metadata: { name: 'b' }, spec: { metadata: {} } },
      ],
    },
    {
      title: 'leaves custom resources as they are',
      items: [item('a', 'Widget', 'shop.test/v1')],
      head: undefined,
      expected: [item('a', 'Widget', 'shop.test/v1')],
    },
  ])
    it(title, () => {
      const list = joined(
        listChunks(
          { kind: 'ThingList', apiVersion: 'v1', metadata: { resourceVersion: '7' } },
          items.map((one) => listItem(bytes(one))),
          head,
          (same) => same,
        ),
      )
      const metadata = { resourceVersion: '7' }
      const text = JSON.stringify({ kind: 'ThingList', apiVersion: 'v1', metadata, items: expected })
      expect(list.toString()).to.equal(`${text}\n`)
    })

  it('is sent in chunks if it is long', () => {
    const items = Array.from({ length: 2000 }, (_, i) => item(`item-${i}-${'x'.repeat(50)}`))
    const chunks = [
      ...listChunks(
        { kind: 'ThingList', apiVersion: 'v1', metadata: { resourceVersion: '7' } },
        items.map((one) => listItem(bytes(one))),
        '',
        (same) => same,
      ),
    ]
    expect(chunks.length).to.be.greaterThan(1)
    expect(Math.max(...chunks.map(({ length }) => length))).to.be.below(128 * 1024)
    const list = JSON.parse(joined(chunks).toString()) as { items: unknown[] }
    expect(list.items).to.deep.equal(items.map(({ metadata }) => ({ metadata })))
  })
})

describe('a list of texts', () => {
  for (const count of [0, 1, 2, 3000])
    it(`has ${count} items, and is JSON`, () => {
      const items = Array.from({ length: count }, (_, i) => ({ name: `item-${i}` }))
      const list = joined(textChunks({ kind: 'Table', metadata: {} }, 'rows', items, (row) => JSON.stringify(row)))
      expect(JSON.parse(list.toString())).to.deep.equal({ kind: 'Table', metadata: {}, rows: items })
    })
})
