import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { expect } from 'chai'
import { parseFieldSelector, parseLabelSelector } from '#apimachinery/selector/index.ts'
import { longSelector, unitsOfSelector, watchBytes } from './selector-units.ts'

const terms = 6000
setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

describe('the units of a selector', () => {
  it('are none where it is short', () => {
    expect(longSelector(new URLSearchParams({ labelSelector: 'a=b', fieldSelector: 'metadata.name=a' }))).to.equal(
      undefined,
    )
  })

  for (const [title, term, parse] of [
    ['values', (i: number) => `key-${i}=v${i}`, parseLabelSelector],
    ['absent labels', (i: number) => `!key-${i}-with-a-long-name`, parseLabelSelector],
    ['labels', (i: number) => `k${i}`, parseLabelSelector],
    ['sets', (i: number) => `k${i} in (a${i},b${i})`, parseLabelSelector],
    [
      'large sets',
      (i: number) => `k${i} in (${[1, 2, 3, 4, 5, 6, 7, 8, 9].map((n) => `${n}x${i}`).join(',')})`,
      parseLabelSelector,
    ],
    ['fields', (i: number) => `metadata.name!=n${i}`, parseFieldSelector],
  ] as const)
    it(`are at least the memory that it takes: ${title}`, () => {
      const text = (seed: number): string => Array.from({ length: terms }, (_, i) => term(i * 10 + seed)).join(',')
      parse(text(99))
      collect()
      const before = process.memoryUsage().heapUsed
      const held = Array.from({ length: 8 }, (_, i) => parse(text(i)))
      collect()
      const bytes = (process.memoryUsage().heapUsed - before) / held.length
      const selector = longSelector(new URLSearchParams({ labelSelector: text(0) })) ?? ''
      expect(unitsOfSelector(selector) * watchBytes).to.be.at.least(bytes)
    })
})
