import { expect } from 'chai'
import { compareDefinitions } from './compare-definitions.ts'
import type { CrdVersion, CustomResourceDefinition } from './crd-types.ts'

const version = (name: string, more: Partial<CrdVersion> = {}, fields: readonly string[] = ['a']): CrdVersion => ({
  ...{ name, served: true, storage: false },
  schema: {
    openAPIV3Schema: {
      type: 'object',
      properties: {
        spec: { type: 'object', properties: Object.fromEntries(fields.map((field) => [field, { type: 'string' }])) },
      },
    },
  },
  ...more,
})
const widgets = (versions: CrdVersion[], more: object = {}): CustomResourceDefinition => ({
  ...{
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: 'widgets.example.com' },
  },
  spec: { group: 'example.com', scope: 'Namespaced', names: { plural: 'widgets', kind: 'Widget' }, versions, ...more },
})
const texts = (before: CustomResourceDefinition, after: CustomResourceDefinition): string[] =>
  compareDefinitions(before, after).map(
    ({ version: of, path, harm, what }) => `${of === undefined ? '' : `${of} `}${path} ${harm}: ${what}`,
  )

describe('the comparison of two definitions', () => {
  it('finds nothing in a new version beside the old one', () => {
    const before = widgets([version('v1', { storage: true })])
    expect(texts(before, widgets([version('v1', { storage: true }), version('v2', {}, ['a', 'b'])]))).to.deep.equal([])
  })

  it('finds what is not served any more', () => {
    const before = widgets([
      version('v1', {
        storage: true,
        subresources: { status: {}, scale: { specReplicasPath: '.spec.a', statusReplicasPath: '.status.a' } },
        selectableFields: [{ jsonPath: '.spec.a' }],
      }),
      version('v1beta1'),
    ])
    const after = widgets([version('v1', { storage: true, subresources: { status: {} } })], { scope: 'Cluster' })
    expect(texts(before, after)).to.deep.equal([
      'spec.scope refused: is Cluster and was Namespaced',
      'v1 /scale refused: does not exist any more',
      'v1 .spec.a refused: cannot be selected by any more',
      'v1beta1 . refused: is not served any more',
    ])
  })

  it('finds fields of a served version, and those that another storage version loses', () => {
    const before = widgets([version('v1', { storage: true }, ['a', 'b']), version('v2', {}, ['a'])])
    const after = widgets([version('v1', {}, ['a', 'b']), version('v2', { storage: true }, ['a'])])
    const lost = 'v1 stored as v2 .spec.b dropped: does not exist any more'
    expect(texts(before, after)).to.deep.equal([lost])
    const converted = widgets(after.spec.versions, { conversion: { strategy: 'Webhook' } })
    expect(texts(before, converted)).to.deep.equal([])
  })
})
