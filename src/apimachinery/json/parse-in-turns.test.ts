import { expect } from 'chai'
import { isStatusError } from '#apimachinery/status/index.ts'
import { parseJsonInTurns, type TurnOptions } from './parse-in-turns.ts'

const read = (text: string, options: Partial<TurnOptions> = {}) =>
  parseJsonInTurns(Buffer.from(text), { maxBytes: 64 << 20, maxValues: 4_000_000, turn: () => undefined, ...options })

/** A generator of numbers that gives the same ones each time. */
function numbers(seed: number): (below: number) => number {
  let state = seed
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return Math.floor((state / 2 ** 32) * below)
  }
}

function someValue(random: (below: number) => number, depth: number): unknown {
  const kind = random(depth > 4 ? 5 : 8)
  if (kind === 0) return random(1_000_000) / 8
  if (kind === 1) return null
  if (kind < 4) return `${'"\\ü,]}{[:'.repeat(random(4))}${'x'.repeat(random(3) === 0 ? 20_000 : 10)}`
  if (kind === 4) return '\\'.repeat(random(5))
  const length = random(depth === 0 ? 40 : 10)
  if (kind < 6) return Array.from({ length }, () => someValue(random, depth + 1))
  return Object.fromEntries(
    Array.from({ length }, (_, i) => [`k${i}${'"}'.repeat(random(2))}`, someValue(random, depth + 1)]),
  )
}

describe('a JSON document that is parsed in turns', () => {
  it('is what JSON.parse makes of it, for 100 generated documents', async () => {
    for (let seed = 0; seed < 100; seed++) {
      const random = numbers(seed)
      const value = { first: someValue(random, 0), second: someValue(random, 0) }
      const text = JSON.stringify(value, undefined, random(3))
      expect(JSON.stringify(await read(text)) === JSON.stringify(value), `seed ${seed}`).to.equal(true)
    }
  })

  it('is refused exactly where JSON.parse refuses it', async () => {
    const long = JSON.stringify(Array.from({ length: 4000 }, (_, i) => `some text ${i}`))
    const cases = [`[${long},${long}]`, `{"a":${long},"b":${long}}`].flatMap((text) =>
      ['', ',', ':', '[', ']', '{', '}', '"', '1', ' '].flatMap((mark) =>
        [
          0,
          1,
          2,
          5,
          long.length + 1,
          long.length + 2,
          long.length + 5,
          long.length + 6,
          text.length - 1,
          text.length,
        ].map((at) => text.slice(0, at) + mark + text.slice(mark === '' ? at + 1 : at)),
      ),
    )
    for (const text of cases) {
      let expected: unknown
      try {
        expected = JSON.parse(text)
      } catch {
        expected = 'refused'
      }
      const got = await read(text).catch((error: unknown) => (isStatusError(error, 'BadRequest') ? 'refused' : error))
      expect(got, `${text.slice(0, 20)} ... ${text.slice(-20)}`).to.deep.equal(expected)
    }
  })

  it('lets others run between its pieces, however it is nested', async () => {
    for (const text of [
      `{"a":{"b":[${'{"c":1},'.repeat(100_000)}0]}}`,
      `[${'[1],'.repeat(200_000)}0]`,
      `{"a":{${Array.from({ length: 30_000 }, (_, i) => `"${i}":[{}]`).join(',')}}}`,
    ]) {
      let turns = 0
      const turn = (): undefined => {
        turns++
        return undefined
      }
      await read(text, { turn })
      expect(turns).to.be.greaterThan(10)
    }
  })

  it('keeps only the members that are asked for', async () => {
    const large = Array.from({ length: 20_000 }, (_, i) => i)
    const text = JSON.stringify({ a: large, b: 1, c: { large }, d: 2 })
    expect(await read(text, { only: new Set(['b', 'c']) })).to.deep.equal({ b: 1, c: { large } })
  })

  for (const { title, text, reason } of [
    { title: 'too many bytes', text: `[${'1,'.repeat(600_000)}1]`, reason: 'RequestEntityTooLarge' },
    { title: 'too many values', text: `[${'[],'.repeat(20_000)}1]`, reason: 'RequestEntityTooLarge' },
    { title: 'too many levels', text: '['.repeat(1001) + ']'.repeat(1001), reason: 'BadRequest' },
  ])
    it(`is refused for ${title}`, async () => {
      const error: unknown = await read(text, { maxBytes: 1 << 20, maxValues: 30_000 }).catch((why: unknown) => why)
      expect(isStatusError(error, reason)).to.equal(true)
    })
})
