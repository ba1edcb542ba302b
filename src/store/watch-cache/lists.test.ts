import { expect } from 'chai'
import { compareEntries, mergeByKey } from './lists.ts'
import type { Entry } from './watch-cache.ts'

describe('two sorted lists of entries', () => {
  const entry = (namespace: string, name: string): Entry => ({ key: { namespace, name } }) as unknown as Entry
  const key = ({ key: { namespace, name } }: Entry): string => `${namespace}/${name}`

  it('are merged in the order of keys, whichever is the longer one', () => {
    const all = Array.from({ length: 2000 }, (_, i) => entry(`n-${i % 7}`, `o-${i}`)).sort(compareEntries)
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
