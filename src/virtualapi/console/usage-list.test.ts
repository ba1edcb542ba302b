import { expect } from 'chai'
import { newUsageRow, type UsageRow } from '#crds/index.ts'
import type { ClusterId } from '#apimachinery/meta/index.ts'
import { UsageList } from './usage-list.ts'

const hour = '2026-11-27T13:00:00Z'
const cluster = (id: string) => ({ id: id as ClusterId })
const clock = { now: () => Date.parse(hour), monotonic: () => 0 }
const rowsOf = (ids: Iterable<string>): UsageRow[] =>
  [...ids].flatMap((id) => [1, 2].map((requests) => ({ ...newUsageRow({ hour, id, name: id }), requests })))

describe('usage that sessions ask for', () => {
  it('is read of the logical clusters that wait, one read at a time, and kept for the next question', async () => {
    const reads: string[][] = []
    const answers: (() => void)[] = []
    using list = new UsageList({
      clock,
      history: {
        of: async (ids, from) => {
          expect(from).to.equal('2026-11-26T14:00:00Z')
          reads.push([...ids])
          await new Promise<void>((resolve) => answers.push(resolve))
          return rowsOf(ids)
        },
      },
    })
    const asked = ['a', 'b', 'a', 'c'].map((id) => list.of(id, cluster(id)))
    expect(reads, 'the others wait').to.deep.equal([['a']])
    answers[0]?.()
    expect((await asked[0])?.rows.map(({ id, requests }) => [id, requests])).to.deep.equal([['a', 3]])
    while (answers.length < 2) await new Promise(setImmediate)
    answers[1]?.()
    const found = await Promise.all(asked)
    expect(found.map(({ rows }) => rows.map(({ id }) => id))).to.deep.equal([['a'], ['b'], ['a'], ['c']])
    await list.of('a', cluster('a'))
    expect(reads).to.deep.equal([['a'], ['b', 'c']])
  })

  it('is read of no more than 500 logical clusters at once', async () => {
    const reads: number[] = []
    using list = new UsageList({
      clock,
      history: { of: (ids) => Promise.resolve(reads.push(ids.size)).then(() => rowsOf(ids)) },
    })
    await Promise.all(Array.from({ length: 1101 }, (_, i) => list.of(`c-${i}`, cluster(`c-${i}`))))
    expect(reads).to.deep.equal([1, 500, 500, 100])
  })

  it('is refused without the words of the host, and read again the next time', async () => {
    let fails = true
    using list = new UsageList({
      clock,
      history: { of: (ids) => (fails ? Promise.reject(new Error('10.0.0.7 is down')) : Promise.resolve(rowsOf(ids))) },
    })
    const refused = await list.of('a', cluster('a')).catch((error: unknown) => error as Error & { code: number })
    expect(refused).to.include({ code: 503, message: 'the rows of usage cannot be read now' })
    fails = false
    expect((await list.of('a', cluster('a'))).rows).to.have.length(1)
    const other = await list.of('b', undefined).catch((error: unknown) => error as Error & { code: number })
    expect(other).to.include({ code: 403 })
  })

  it('is refused by a server that shuts down, and needs no history', async () => {
    const list = new UsageList({ clock, history: { of: (ids) => Promise.resolve(rowsOf(ids)) } })
    list[Symbol.dispose]()
    expect(await list.of('a', cluster('a')).catch((error: unknown) => error)).to.include({ code: 503 })
    using without = new UsageList({ clock, history: undefined })
    expect((await without.of('a', cluster('a'))).rows).to.deep.equal([])
  })
})
