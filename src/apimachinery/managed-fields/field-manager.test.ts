import { expect } from 'chai'
import type { KubeObject, ManagedFieldsEntry } from '#apimachinery/meta/index.ts'
import { isStatusError } from '#apimachinery/status/index.ts'
import { deducedType } from './field-type.ts'
import { applyConfiguration, managedFieldsAfterUpdate, type FieldWrite } from './field-manager.ts'
import { managedFieldsFromScale, scaleManagedFields } from './scale-managers.ts'
import { sameBesidesTimes } from './same-besides-times.ts'

const write = (manager: string, now = '2026-11-22T10:00:00Z', subresource = ''): FieldWrite => ({
  ...{ apiVersion: 'v1', kind: 'ConfigMap', subresource, manager, now },
  ...{
    type: deducedType,
    empty: { apiVersion: 'v1', kind: 'Widget' },
    validate: true,
    context: { convert: (object) => object },
  },
})

const object = (data: Record<string, string>, managedFields?: ManagedFieldsEntry[]): KubeObject => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name: 'a', uid: 'u', ...(managedFields === undefined ? {} : { managedFields }) },
  data,
})

const created = managedFieldsAfterUpdate(undefined, object({ a: '1' }), undefined, write('one'))
const entry = {
  ...{ manager: 'one', operation: 'Update', apiVersion: 'v1', time: '2026-11-22T10:00:00Z', fieldsType: 'FieldsV1' },
  fieldsV1: { 'f:data': { '.': {}, 'f:a': {} } },
}

describe('managedFields of an update', () => {
  const after = (
    data: Record<string, string>,
    given: ManagedFieldsEntry[] | undefined,
    by = write('two', '2026-11-22T10:00:09Z'),
  ): ManagedFieldsEntry[] | undefined =>
    managedFieldsAfterUpdate(object({ a: '1' }, created), object(data, created), given, by)

  it('give a new object to who made it, without its identity', () => expect(created).to.deep.equal([entry]))

  it('stay as they are if nothing changed', () => expect(after({ a: '1' }, created)).to.deep.equal([entry]))

  it('take a changed field from who owned it', () =>
    expect(after({ a: '2' }, created)?.map(({ manager, fieldsV1 }) => [manager, fieldsV1])).to.deep.equal([
      ['one', { 'f:data': {} }],
      ['two', { 'f:data': { 'f:a': {} } }],
    ]))

  for (const [title, given] of [
    ['an empty list', []],
    ['one empty entry', [{}]],
  ] as const)
    it(`begin anew after ${title}`, () => {
      const reset = after({ a: '1' }, [...given])
      expect(reset).to.equal(undefined)
    })

  it('ignore entries that are none, and any that come through a subresource', () => {
    expect(after({ a: '1' }, [{ ...entry, operation: 'Huh' }])).to.deep.equal([entry])
    expect(after({ a: '1' }, [{ ...entry, manager: 'x' }], write('two', entry.time, 'status'))).to.deep.equal([entry])
  })

  it('become one for the oldest of more than ten updaters', () => {
    let now: ManagedFieldsEntry[] | undefined = created
    const data: Record<string, string> = { a: '1' }
    for (let i = 10; i < 22; i++) {
      const before = object({ ...data }, now)
      data[`k${i}`] = ''
      now = managedFieldsAfterUpdate(before, object(data, now), now, write(`m${i}`, `2026-11-22T10:01:${i}Z`))
    }
    expect(now?.length).to.equal(10)
    expect(now?.[0]).to.deep.include({ manager: 'ancient-changes', time: '2026-11-22T10:01:12Z' })
  })
})

describe('an applied configuration', () => {
  const config = (data: Record<string, string>) => ({
    ...{ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'a' } },
    data,
  })

  it('is refused where it would change what somebody else owns, unless forced', () => {
    const apply = (force: boolean) =>
      applyConfiguration(object({ a: '1' }, created), config({ a: '2' }), write('three'), { force })
    expect(() => apply(false)).to.throw('Apply failed with 1 conflict: conflict with "one" using v1: .data.a')
    expect(apply(true).object['data']).to.deep.equal({ a: '2' })
  })

  it('takes away what it said before and no longer says', () => {
    const first = applyConfiguration(undefined, config({ a: '1', b: '2' }), write('three'), { force: false })
    const live = { ...first.object, metadata: { ...first.object.metadata, uid: 'u' } }
    if (first.managedFields !== undefined) live.metadata.managedFields = first.managedFields
    const second = applyConfiguration(live, config({ b: '2' }), write('three'), { force: false })
    expect(second.object['data']).to.deep.equal({ b: '2' })
  })

  it('keeps the set of fields and what others set, if it says the same fields with other values', () => {
    const first = applyConfiguration(undefined, config({ a: '1' }), write('three'), { force: false })
    const metadata = { ...first.object.metadata, uid: 'u', managedFields: [...(first.managedFields ?? []), entry] }
    const live = { ...first.object, metadata, data: { a: '1', b: '2' }, spec: { c: {} } }
    const second = applyConfiguration(live, config({ a: '3' }), write('three', '2026-11-22T10:01:00Z'), { force: true })
    expect(second.object).to.deep.include({ data: { a: '3', b: '2' }, spec: { c: {} } })
    expect(second.object['spec']).to.equal(live.spec)
    expect(second.managedFields?.map(({ manager, time }) => [manager, time])).to.deep.equal([
      ['three', '2026-11-22T10:01:00Z'],
      ['one', entry.time],
    ])
    expect(second.managedFields?.[0]?.fieldsV1).to.equal(first.managedFields?.[0]?.fieldsV1)
  })

  it('must be of the kind, and may say nothing of managedFields', () => {
    for (const wrong of [
      { ...config({}), kind: 'Secret' },
      { ...config({}), metadata: { name: 'a', managedFields: [] } },
    ])
      expect(() => applyConfiguration(undefined, wrong, write('x'), { force: false })).to.satisfy(
        (run: () => unknown) => {
          try {
            run()
          } catch (error) {
            return isStatusError(error, 'BadRequest')
          }
          return false
        },
      )
  })
})

describe('the managers of a Scale', () => {
  const pathOf = (): string[] => ['f:spec', 'f:replicas']
  const parent = [{ ...entry, apiVersion: 'apps/v1', fieldsV1: { 'f:spec': { 'f:paused': {}, 'f:replicas': {} } } }]

  it('are those who own the replicas, and take them from the object', () => {
    expect(scaleManagedFields(parent, pathOf)?.map(({ apiVersion, fieldsV1 }) => [apiVersion, fieldsV1])).to.deep.equal(
      [['autoscaling/v1', { 'f:spec': { 'f:replicas': {} } }]],
    )
    const scaler = [
      {
        ...entry,
        manager: 'hpa',
        apiVersion: 'autoscaling/v1',
        subresource: 'scale',
        fieldsV1: { 'f:spec': { 'f:replicas': {} } },
      },
    ]
    const both = managedFieldsFromScale(parent, scaler, { apiVersion: 'apps/v1', pathOf })
    expect(both?.map(({ manager, fieldsV1 }) => [manager, fieldsV1])).to.deep.equal([
      ['hpa', { 'f:spec': { 'f:replicas': {} } }],
      ['one', { 'f:spec': { 'f:paused': {} } }],
    ])
  })
})

it('sameBesidesTimes tells entries that differ in their times from others', () => {
  expect(sameBesidesTimes([entry], [{ ...entry, time: 'x' }])).to.equal(true)
  expect(sameBesidesTimes([entry], [{ ...entry, manager: 'x' }])).to.equal(false)
  expect(sameBesidesTimes([entry], [entry, entry])).to.equal(false)
})
