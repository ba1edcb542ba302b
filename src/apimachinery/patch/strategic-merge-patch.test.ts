import { expect } from 'chai'
import fc from 'fast-check'
import { readFileSync } from 'node:fs'
import type { JsonObject } from '#apimachinery/meta/index.ts'
import { isStatusError } from '#apimachinery/status/index.ts'
import type { SchemaNode } from '#apimachinery/schema/index.ts'
import { applyMergePatch } from './merge-patch.ts'
import { applyStrategicMergePatch } from './strategic-merge-patch.ts'

interface Vector {
  title: string
  kind: string
  original: JsonObject
  patch: JsonObject
  result?: JsonObject
  error?: string
}

const string: SchemaNode = { type: 'string' }
const listOf = (patchMergeKey: string, items: SchemaNode = { type: 'object' }): SchemaNode => {
  return { type: 'array', items, patchStrategy: ['merge'], patchMergeKey }
}
const object = (properties: Record<string, SchemaNode>): SchemaNode => ({ type: 'object', properties })
const container = object({
  env: listOf('name'),
  ports: listOf('containerPort'),
  args: { type: 'array', items: string },
})
const volume = {
  type: 'array',
  items: object({}),
  patchStrategy: ['merge', 'retainKeys'],
  patchMergeKey: 'name',
} as const
const podSpec = object({
  containers: listOf('name', container),
  volumes: { ...volume, patchStrategy: [...volume.patchStrategy] },
  tolerations: { type: 'array', items: object({}) },
})
const metadata = object({
  finalizers: { type: 'array', items: string, patchStrategy: ['merge'] },
  ownerReferences: listOf('uid'),
  labels: { type: 'object', additionalProperties: string },
})
const schemas: Record<string, SchemaNode> = {
  Pod: object({ metadata, spec: podSpec, status: object({ conditions: listOf('type') }) }),
  Deployment: object({
    metadata,
    spec: object({ strategy: { type: 'object', patchStrategy: ['retainKeys'] }, template: object({ spec: podSpec }) }),
  }),
  Service: object({ spec: object({ ports: listOf('port') }) }),
  ServiceAccount: object({ secrets: listOf('name') }),
  ConfigMap: object({ data: { type: 'object', additionalProperties: string } }),
}

const file = new URL('../../../test/vectors/strategic-merge-patch.json', import.meta.url)
const vectors = JSON.parse(readFileSync(file, 'utf8')) as Vector[]

describe('strategic merge patch', () => {
  for (const { title, kind, original, patch, result, error } of vectors) {
    it(`gives the result of apimachinery: ${title}`, () => {
      const schema = schemas[kind] ?? {}
      const before = JSON.stringify([original, patch])
      if (error !== undefined) {
        expect(() => applyStrategicMergePatch(original, patch, schema)).to.throw(error)
      } else {
        expect(applyStrategicMergePatch(original, patch, schema)).to.deep.equal(result)
      }
      expect(JSON.stringify([original, patch])).to.equal(before)
    })
  }

  const value = fc.jsonValue({ maxDepth: 4 })
  const noDirectives = fc
    .dictionary(fc.string(), value)
    .map((object) => JSON.parse(JSON.stringify(object).replaceAll('$', '_')) as JsonObject)

  it('equals a merge patch where the schema says nothing, except in lists', () => {
    const withoutLists = noDirectives.filter((object) => !JSON.stringify(object).includes('['))
    fc.assert(
      fc.property(withoutLists, withoutLists, (original, patch) => {
        expect(applyStrategicMergePatch(original, patch, {})).to.deep.equal(applyMergePatch(original, patch))
      }),
    )
  })

  it('never changes its arguments, and throws only StatusErrors', () => {
    const keys = fc.constantFrom(
      'a',
      '$patch',
      '$retainKeys',
      '$setElementOrder/a',
      '$deleteFromPrimitiveList/a',
      'name',
    )
    const leaf = fc.oneof(
      fc.constantFrom('replace', 'delete', 'merge', 'a', 'b'),
      fc.integer({ max: 3, min: 0 }),
      fc.constant(null),
    )
    const { hostile } = fc.letrec((tie) => ({
      hostile: fc.oneof(
        { depthSize: 'small' },
        leaf,
        fc.array(tie('hostile'), { maxLength: 3 }),
        fc.dictionary(keys, tie('hostile')),
      ),
    }))
    const schema: SchemaNode = { properties: {} }
    schema.properties = { a: listOf('name', schema) }
    const asObject = fc.dictionary(keys, hostile) as fc.Arbitrary<JsonObject>
    fc.assert(
      fc.property(asObject, asObject, (original, patch) => {
        const before = JSON.stringify([original, patch])
        try {
          applyStrategicMergePatch(original, patch, schema)
        } catch (error) {
          expect(isStatusError(error), String(error)).to.equal(true)
        }
        expect(JSON.stringify([original, patch])).to.equal(before)
      }),
      { numRuns: 500 },
    )
  })
})
