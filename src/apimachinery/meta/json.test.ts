import { expect } from 'chai'
import { cloneJson } from './json.ts'

describe('cloneJson', () => {
  it('gives an equal value that shares nothing', () => {
    const value = JSON.parse('{"a":[{"b":null},[]],"c":{"d":"x"},"__proto__":{"e":1}}') as Record<string, unknown>
    const copy = cloneJson(value)
    expect(JSON.stringify(copy)).to.equal(JSON.stringify(value))
    expect(Object.getPrototypeOf(copy)).to.equal(Object.prototype)
    for (const key of ['a', 'c', '__proto__']) expect(Object.hasOwn(copy, key) && copy[key]).to.not.equal(value[key])
  })
})
