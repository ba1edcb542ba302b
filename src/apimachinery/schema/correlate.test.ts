import { expect } from 'chai'
import { itemBefore } from './correlate.ts'

const byKeys = (...listMapKeys: string[]) => ({ listType: 'map', listMapKeys }) as const

describe('itemBefore', () => {
  for (const { title, old, item, expected } of [
    {
      title: 'finds the item with the same keys',
      old: [
        { a: 1, b: 'x' },
        { a: 1, b: 'y' },
      ],
      item: { a: 1, b: 'y', c: 2 },
      expected: 1,
    },
    {
      title: 'takes the first of several',
      old: [
        { a: 1, b: 'x' },
        { a: 1, b: 'x', c: 1 },
      ],
      item: { a: 1, b: 'x' },
      expected: 0,
    },
    {
      title: 'matches an item that lacks a key only with items that lack it',
      old: [{ a: 1, b: null }, { a: 1 }],
      item: { a: 1 },
      expected: 1,
    },
    { title: 'does not match a number with a text', old: [{ a: '1', b: 'x' }], item: { a: 1, b: 'x' }, expected: -1 },
  ])
    it(title, () => {
      expect(itemBefore(item, old, byKeys('a', 'b'))).to.equal(old[expected])
    })

  it('finds nothing in a list of another type', () => {
    expect(itemBefore({ a: 1 }, [{ a: 1 }], { listType: 'atomic', listMapKeys: ['a'] })).to.equal(undefined)
  })

  it('reads the keys of a list once, however many items are looked for', () => {
    const count = 2000
    let reads = 0
    const old = Array.from({ length: count }, (_, i) =>
      Object.defineProperty({ a: '' }, 'a', {
        get: () => {
          reads++
          return `n${i}`
        },
      }),
    )
    for (let i = 0; i < count; i++) expect(itemBefore({ a: `n${i}` }, old, byKeys('a'))).to.equal(old[i])
    expect(reads).to.equal(count)
  })
})
