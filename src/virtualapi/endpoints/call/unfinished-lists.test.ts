import { setTimeout as delay } from 'node:timers/promises'
import { expect } from 'chai'
import type { Entry } from '#store/watch-cache/index.ts'
import { UnfinishedLists } from './unfinished-lists.ts'

const entries = (count: number): Entry[] => Array.from({ length: count }, () => ({ size: 100 }) as Entry)

describe('lists over all logical clusters that are read in pages', () => {
  it('are kept until the next page is asked for', () => {
    using lists = new UnfinishedLists()
    const rest = entries(3)
    lists.keep('a', rest)
    expect(lists.take('b')).to.equal(undefined)
    expect(lists.take('a')).to.equal(rest)
    expect(lists.take('a')).to.equal(undefined)
  })
  it('are not kept beyond the limit of all together', () => {
    using lists = new UnfinishedLists({ maxBytes: 1000 })
    lists.keep('large', entries(11))
    expect(lists.take('large')).to.equal(undefined)
    lists.keep('a', entries(6))
    lists.keep('b', entries(6))
    expect(lists.take('b')).to.equal(undefined)
    expect(lists.take('a')).to.have.length(6)
    lists.keep('b', entries(6))
    lists.keep('b', entries(10))
    expect(lists.take('b')).to.have.length(10)
  })
  it('are forgotten when nobody asks for the next page', async () => {
    using lists = new UnfinishedLists({ maxBytes: 1000, idleMs: 1 })
    lists.keep('a', entries(10))
    const hasRoom = (): boolean => {
      lists.keep('b', entries(1))
      return lists.take('b') !== undefined
    }
    while (!hasRoom()) await delay(5)
    expect(lists.take('a')).to.equal(undefined)
  })
})
