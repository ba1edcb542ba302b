import { expect } from 'chai'
import { validateSelectableFields } from './validate-crd-schema.ts'

describe('the selectable fields of a CRD', () => {
  it('are each looked up by name, however many fields the schema has', () => {
    const count = 1000
    const names = Array.from({ length: count }, (_, i) => `f${i}`)
    let reads = 0
    const properties = Object.fromEntries(names.map((name) => [name, {}]))
    for (const name of names)
      Object.defineProperty(properties, name, {
        enumerable: true,
        get: () => {
          reads++
          return { type: 'string' }
        },
      })
    const fields = names.map((name) => ({ jsonPath: `.${name}` }))
    const causes = validateSelectableFields(fields, { type: 'object', properties }, 'spec.selectableFields')
    expect(causes.map(({ reason }) => reason)).to.deep.equal(['FieldValueTooMany'])
    expect(reads).to.be.within(count, 5 * count)
  })
})
