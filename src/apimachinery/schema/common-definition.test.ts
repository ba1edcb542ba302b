import { expect } from 'chai'
import type { JsonObject } from '#apimachinery/meta/index.ts'
import { commonDefinition } from './index.ts'

const version = (name: string, properties: JsonObject, more: JsonObject = {}): JsonObject => ({
  name,
  served: true,
  storage: false,
  schema: { openAPIV3Schema: { type: 'object', properties: { spec: { type: 'object', properties } } } },
  ...more,
})
const definition = (versions: JsonObject[], more: JsonObject = {}): JsonObject => ({
  group: 'example.com',
  scope: 'Namespaced',
  names: { plural: 'widgets', kind: 'Widget', shortNames: ['w', 'wd'] },
  versions: versions.map((one, index) => ({ ...one, storage: index === 0 })),
  ...more,
})
const size = { size: { type: 'integer' } }
const combined = (...specs: JsonObject[]) =>
  commonDefinition(specs.map((spec, index) => ({ member: ['east', 'west', 'north'][index] ?? '', spec })))

describe('the common definition of several members', () => {
  it('has the versions that all serve, stored in the most mature one where members differ', () => {
    const old = definition([version('v1beta1', size), version('v1alpha1', size)])
    const found = combined(
      definition([version('v1', size), version('v1beta1', { ...size, colour: { type: 'string' } })]),
      old,
    )
    expect(found).to.have.property('storage', 'v1beta1')
    expect(found).to.deep.nested.include({ 'spec.versions': [{ ...version('v1beta1', size), storage: true }] })
    expect(
      'losses' in found && found.losses.map(({ version, path, members }) => `${version} ${path} ${members.join()}`),
    ).to.deep.equal(['v1 . west', 'v1beta1 .spec.colour west', 'v1alpha1 . east'])
  })

  it('has the names, subresources, columns and selectable fields that all have', () => {
    const column = { name: 'Size', type: 'integer', jsonPath: '.spec.size' }
    const more = {
      subresources: { status: {}, scale: { specReplicasPath: '.spec.size' } },
      additionalPrinterColumns: [column],
      selectableFields: [{ jsonPath: '.spec.size' }],
    }
    const one = definition([version('v1', size, more)])
    const two = definition([version('v1', size, { ...more, subresources: { status: {} } })], {
      names: { plural: 'widgets', kind: 'Widget', shortNames: ['w'] },
    })
    const found = combined(one, two)
    expect(found).to.deep.nested.include({
      'spec.names': { plural: 'widgets', kind: 'Widget', shortNames: ['w'] },
      'spec.versions': [{ ...version('v1', size, { ...more, subresources: { status: {} } }), storage: true }],
    })
    expect('losses' in found && found.losses.map(({ path }) => path)).to.deep.equal(['/scale'])
  })

  it('has one version where a member converts by a webhook', () => {
    const versions = [version('v1', size), version('v1beta1', size)]
    const found = combined(definition(versions, { conversion: { strategy: 'Webhook' } }), definition(versions))
    expect(found).to.have.nested.property('spec.versions').with.lengthOf(1)
  })

  for (const { title, west, told } of [
    { title: 'scopes differ', west: { scope: 'Cluster' }, told: 'spec.scope is Namespaced in east, Cluster in west' },
    {
      title: 'kinds differ',
      west: { names: { plural: 'widgets', kind: 'Gadget' } },
      told: 'spec.names.kind is Widget in east, Gadget in west',
    },
    { title: 'no version is served by all', west: { versions: [version('v2', size)] }, told: '. is not served' },
  ])
    it(`does not exist if ${title}`, () => {
      const found = combined(definition([version('v1', size)]), definition([version('v1', size)], west))
      expect('conflict' in found && `${found.conflict.path} ${found.conflict.what}`).to.equal(told)
    })
})
