import { expect } from 'chai'
import type { JsonObject } from '#apimachinery/meta/index.ts'
import { createdFields, unowned } from './created-fields.ts'
import { difference } from './field-set.ts'
import type { FieldType } from './field-type.ts'
import { sortFields } from './fields-v1.ts'
import { changedFields, type OwnershipContext } from './ownership-rules.ts'

const text: FieldType = { scalar: 'string' }
const texts: FieldType = { map: { atomic: false, fields: new Map(), values: text } }
const fields = (of: Record<string, FieldType>): FieldType => ({
  map: {
    atomic: false,
    fields: new Map(Object.entries(of).map(([name, type]) => [name, { type }])),
    values: undefined,
  },
})
const type = fields({
  apiVersion: text,
  kind: text,
  metadata: fields({ name: text, labels: texts }),
  spec: fields({
    replicas: { scalar: 'numeric' },
    ports: { list: { atomic: false, keys: ['name'], items: fields({ name: text, port: { scalar: 'numeric' } }) } },
    tags: { list: { atomic: false, keys: [], items: text } },
    args: { list: { atomic: true, keys: [], items: text } },
    selector: texts,
  }),
})
const identity = { apiVersion: 'v1', kind: 'Thing' }
const empty: JsonObject = { ...identity, spec: { replicas: 0, ports: null, selector: {} } }
const context: OwnershipContext = { convert: (object) => object }

const specs: readonly JsonObject[] = [
  {},
  { replicas: 0 },
  { replicas: 3 },
  { ports: null },
  { ports: [] },
  { ports: [{ name: 'b', port: 1 }, { name: 'a' }] },
  { ports: [{ name: 'a' }, { name: 'b', port: 1 }] },
  { ports: [{ name: 'a' }, { name: 'a', port: 1 }] },
  { selector: {} },
  { selector: null },
  { selector: { b: '1', a: '2' } },
  { tags: ['y', 'x'] },
  { tags: ['x', 'x'] },
  { args: ['1'] },
  { args: [] },
  { replicas: 1, unknown: 'field' },
]

describe('the fields that a creator owns', () => {
  it('are those that comparing with an empty object finds, whatever was created before', () => {
    for (let round = 0; round < 3; round++)
      for (const [i, spec] of [...specs, ...specs.toReversed()].entries()) {
        const labels = { [`label-${i % 5}`]: String(round) }
        const object = { ...identity, metadata: { name: `n${i}`, labels }, spec }
        const compared = (): string => {
          const changed = changedFields({ value: empty, type }, { value: object, type }, 'v1', context)
          return JSON.stringify(sortFields(difference(changed, unowned)))
        }
        expect(
          outcome(() => JSON.stringify(createdFields(object, { apiVersion: 'v1', type, empty, context }))),
        ).to.equal(outcome(compared), JSON.stringify(spec))
      }
  })

  it('are the same set for objects that differ in values only, which nobody can change', () => {
    const of = (replicas: number) =>
      createdFields({ ...identity, spec: { replicas } }, { apiVersion: 'v1', type, empty, context })
    expect(of(1)).to.equal(of(2))
    expect(of(0)).to.not.equal(of(1))
    expect(Object.isFrozen(of(1)['f:spec'])).to.equal(true)
  })
})

function outcome(work: () => string): string {
  try {
    return work()
  } catch (error) {
    return (error as Error).message
  }
}
