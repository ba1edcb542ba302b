import { expect } from 'chai'
import type { JsonValue } from '#apimachinery/meta/index.ts'
import { tryJsonPath } from './json-path.ts'

const object = {
  a: { b: [10, 20, 30], 'x.y': 1 },
  list: [
    { type: 'Ready', status: 'True', n: 1, deep: { ok: true } },
    { type: 'Synced', status: 'False', n: 2 },
  ],
}

describe('JSONPath of printer columns', () => {
  for (const [path, found] of [
    ['.a.b', [[10, 20, 30]]],
    ['a.b[0]', [10]],
    ['$.a.b[0]', [10]],
    ['{.a.b[0]}', [10]],
    ['.a.b[-1]', [30]],
    ['.a.b[1:]', [20, 30]],
    ['.a.b[:1]', [10]],
    ['.a.b[*]', [10, 20, 30]],
    ['.a.*', [[10, 20, 30], 1]],
    ['.a.x\\.y', [1]],
    [".a['x.y']", [1]],
    ['.a["x.y"]', [1]],
    ['.list[?(@.type=="Ready")].status', ['True']],
    [".list[?(@.type == 'Ready')].status", ['True']],
    ['.list[?(@.type!="Ready")].status', ['False']],
    ['.list[?(@.n>=2)].type', ['Synced']],
    ['.list[?(@.deep.ok==true)].type', ['Ready']],
    ['.list[?(@.deep)].type', ['Ready']],
    ['.list[?(@.type=="a]b")].type', []],
    ['..status', ['True', 'False']],
    ['.missing.x', []],
    ['.a.b[9]', []],
    ['.constructor', []],
  ] as const)
    it(path, () => expect(tryJsonPath(path)?.(object)).to.deep.equal(found))

  for (const path of ['.a[', '.a[?(x)]', '.a[b]', '.a[?(@.x==y)]', '.a[?(@.x =)]', '.a[?(@.x == )]'])
    it(`is invalid: ${path}`, () => expect(tryJsonPath(path)).to.equal(undefined))

  it('parses hostile text in linear time', () => {
    const started = performance.now()
    for (const text of [
      '[?(@' + '.a'.repeat(20_000) + '!',
      '['.repeat(50_000),
      '\\'.repeat(50_000),
      `[?(@${'"'.repeat(10_001)})]`,
      `[?(@${' '.repeat(200_000)}=)]`,
      `${'[?(@'.repeat(50_000)}${')]'.repeat(50_000)}`,
    ])
      tryJsonPath(text)
    expect(performance.now() - started).to.be.lessThan(3000)
  })

  it('bounds the time over hostile objects', () => {
    let deep: JsonValue = 1
    for (let level = 0; level < 90; level++) deep = { a: deep, b: [deep] }
    const started = performance.now()
    tryJsonPath('..a..a..a..a..b')?.(deep)
    tryJsonPath('..b[?(@..a)]..a..missing')?.(deep)
    expect(performance.now() - started).to.be.lessThan(3000)
  })
})
