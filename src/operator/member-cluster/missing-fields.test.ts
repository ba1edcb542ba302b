import { expect } from 'chai'
import { missingFields, type OpenApiDocument } from './missing-fields.ts'

const gvk = { group: 'g', version: 'v1', kind: 'Thing' }
const ref = (name: string) => ({ $ref: `#/components/schemas/${name}` })

function document(spec: object, part: object = {}): OpenApiDocument {
  return {
    components: {
      schemas: {
        Thing: {
          'x-kubernetes-group-version-kind': [gvk],
          properties: { spec: { allOf: [ref('Spec')] }, status: ref('Part') },
        },
        Spec: { properties: { parts: { items: ref('Part') }, byName: { additionalProperties: ref('Part') }, ...spec } },
        Part: { properties: { name: {}, inner: ref('Part'), ...part } },
      },
    },
  }
}

describe('the fields that the API of a member lacks', () => {
  for (const { title, ours, theirs, without, expected } of [
    { title: 'are none in equal documents', ours: document({}), theirs: document({}), expected: [] },
    {
      title: 'are not those that only the member has',
      ours: document({}),
      theirs: document({ more: {} }),
      expected: [],
    },
    { title: 'are told by path', ours: document({ more: ref('Part') }), theirs: document({}), expected: ['spec.more'] },
    {
      title: 'are told in lists and maps, once for a definition that contains itself',
      ours: document({}, { rule: {} }),
      theirs: document({}),
      expected: ['spec.parts[*].rule', 'spec.byName{*}.rule'],
    },
    {
      title: 'are not told below paths that are left out',
      ours: document({ more: {} }),
      theirs: document({}),
      without: ['spec.more'],
      expected: [],
    },
    { title: 'are the kind itself if it is not served', ours: document({}), theirs: {}, expected: ['.'] },
  ]) {
    it(title, () => expect(missingFields({ ours, theirs }, gvk, without)).to.deep.equal(expected))
  }
})
