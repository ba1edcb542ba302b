import { expect } from 'chai'
import fc from 'fast-check'
import { replacingPatch } from './replacing-patch.ts'

const { object: values } = fc.letrec<{ value: unknown; object: Record<string, unknown> }>((tie) => ({
  value: fc.oneof({ maxDepth: 3 }, fc.integer(), fc.string(), fc.array(fc.integer()), tie('object')),
  object: fc.dictionary(fc.constantFrom('a', 'b', 'c'), tie('value')),
}))

/** RFC 7396. */
function merged(target: unknown, patch: unknown): unknown {
  if (typeof patch !== 'object' || patch === null || Array.isArray(patch)) return patch
  const isObject = typeof target === 'object' && target !== null && !Array.isArray(target)
  const result: Record<string, unknown> = isObject ? { ...target } : {}
  for (const [field, value] of Object.entries(patch)) {
    if (value === null) Reflect.deleteProperty(result, field)
    else result[field] = merged(result[field], value)
  }
  return result
}

describe('a patch that replaces an object', () => {
  it('leaves nothing of the old one, at any depth', () => {
    fc.assert(
      fc.property(values, values, (was, is) => {
        expect(merged(was, replacingPatch(was, is))).to.deep.equal(is)
      }),
    )
  })
})
