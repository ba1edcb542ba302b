import { deepEqual, equal, ok } from 'node:assert/strict'
import { internalDiff } from './internal-diff.ts'

describe('internalDiff', () => {
  const spec = (name: string): object => ({ containers: [{ name, image: 'a' }] })

  it('returns the lines around a change, with Go names', () => {
    const lines = internalDiff('core.PodSpec', spec('a'), spec('b')).split('\n')
    deepEqual(
      lines.filter((line) => /^[-+]/.test(line)).map((line) => line.trim()),
      ['-   "Name": "a",', '+   "Name": "b",'],
    )
    ok(lines.length < 20)
  })

  it('is empty if nothing changed', () => {
    equal(internalDiff('core.PodSpec', spec('a'), spec('a')), '')
  })

  it('is empty for large values', () => {
    const many = { ...spec('a'), volumes: Array.from({ length: 100_000 }, (_, n) => ({ name: `v${n}`, emptyDir: {} })) }
    const start = performance.now()
    equal(internalDiff('core.PodSpec', spec('a'), many), '')
    ok(performance.now() - start < 5000)
  })
})
