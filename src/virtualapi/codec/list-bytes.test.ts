import { expect } from 'chai'
import { listBytes } from './representations.ts'

const bytes = (object: unknown): Uint8Array => Buffer.from(JSON.stringify(object))
const item = (name: string, kind = 'ConfigMap', apiVersion = 'v1') => ({ kind, apiVersion, metadata: { name } })

describe('a list as bytes', () => {
  for (const { title, items, head, expected } of [
    { title: 'of nothing', items: [], head: '', expected: [] },
    {
      title: 'drops kind and apiVersion of every item of a built-in kind',
      items: [item('a'), item('b')],
      head: '',
      expected: [{ metadata: { name: 'a' } }, { metadata: { name: 'b' } }],
    },
    {
      title: 'whose items begin differently, stored in several versions',
      items: [
        item('a', 'HPA', 'autoscaling/v2beta1'),
        item('b', 'HPA', 'autoscaling/v2'),
        item('c', 'HPA', 'autoscaling/v1'),
      ],
      head: '"kind":"HPA",',
      expected: ['a', 'b', 'c'].map((name) => ({ kind: 'HPA', metadata: { name } })),
    },
    {
      title: 'whose items speak of metadata inside',
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
      const list = listBytes('ThingList', 'v1', { resourceVersion: '7' }, items.map(bytes), head, (same) => same)
      const metadata = { resourceVersion: '7' }
      const text = JSON.stringify({ kind: 'ThingList', apiVersion: 'v1', metadata, items: expected })
      expect(Buffer.from(list).toString()).to.equal(`${text}\n`)
    })
})
