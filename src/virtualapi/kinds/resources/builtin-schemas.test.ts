import { expect } from 'chai'
import { builtInResource, builtInResourceOfKind, builtInResources } from './builtin-resources.ts'
import { builtInSchema } from './builtin-schemas.ts'

const deployment = { group: 'apps', version: 'v1', kind: 'Deployment' }

describe('schemas of built-in kinds', () => {
  it('describe a Deployment down to the list-map keys of its containers', () => {
    const podSpec = builtInSchema(deployment)?.properties?.['spec']?.properties?.['template']?.properties?.['spec']
    expect(podSpec?.properties?.['containers']).to.include({ type: 'array', listType: 'map', patchMergeKey: 'name' })
    expect(podSpec?.properties?.['containers']?.listMapKeys).to.deep.equal(['name'])
    expect(
      podSpec?.properties?.['containers']?.items?.properties?.['ports']?.items?.properties?.['protocol'],
    ).to.include({
      type: 'string',
      default: 'TCP',
    })
  })

  it('keep the attributes that stand beside a $ref', () => {
    const spec = builtInSchema(deployment)?.properties?.['spec']
    expect(spec?.properties?.['strategy']?.patchStrategy).to.deep.equal(['retainKeys'])
    expect(spec?.properties?.['strategy']?.properties?.['rollingUpdate']?.properties?.['maxSurge']).to.deep.equal({
      intOrString: true,
      goType: 'intstr.IntOrString',
    })
  })

  it('share the nodes of common definitions', () => {
    const pod = builtInSchema({ group: '', version: 'v1', kind: 'Pod' })
    const template = builtInSchema(deployment)?.properties?.['spec']?.properties?.['template']
    expect(template?.properties?.['spec']).to.equal(pod?.properties?.['spec'])
  })

  it('are cyclic where the kind is recursive', () => {
    const crd = builtInSchema({ group: 'apiextensions.k8s.io', version: 'v1', kind: 'CustomResourceDefinition' })
    const props =
      crd?.properties?.['spec']?.properties?.['versions']?.items?.properties?.['schema']?.properties?.[
        'openAPIV3Schema'
      ]
    expect(props?.properties?.['not']).to.equal(props)
    expect(props?.properties?.['default']).to.deep.equal({
      preserveUnknownFields: true,
      goType: 'v1.JSON',
    })
  })

  it('do not take over the zero values of Go as defaults', () => {
    expect(builtInSchema(deployment)?.properties?.['spec']).to.not.have.property('default')
  })

  for (const row of builtInResources())
    it(`exist for ${row.kind} of ${row.group}/${row.version} and its subresources`, () => {
      expect(builtInSchema(row), row.kind).to.have.property('properties')
      for (const sub of row.subresources) {
        // Options of proxy, exec and the like travel in the URL and have no schema.
        if (/Options$/.test(sub.kind) || /Options$/.test(row.kind)) continue
        expect(builtInSchema(sub), `${row.resource}/${sub.name}: ${sub.kind}`).to.have.property('properties')
      }
    })

  it('exist for the kinds that every group has', () => {
    expect(builtInSchema({ group: 'example.dev', version: 'v1', kind: 'DeleteOptions' })?.properties).to.have.property(
      'preconditions',
    )
    expect(builtInSchema({ group: '', version: 'v1', kind: 'Status' })?.properties).to.have.property('reason')
  })

  it('do not exist for names that JavaScript objects inherit, such as "constructor"', () => {
    expect(builtInSchema({ group: 'x', version: 'v1', kind: 'constructor' })).to.equal(undefined)
  })
})

describe('built-in resources', () => {
  it('are found by resource and by kind', () => {
    const row = builtInResource({ group: 'apps', version: 'v1', resource: 'deployments' })
    expect(row).to.deep.include({
      kind: 'Deployment',
      singular: 'deployment',
      shortNames: ['deploy'],
      categories: ['all'],
    })
    expect(builtInResourceOfKind(deployment)).to.equal(row)
    expect(row?.subresources.map(({ name, group, kind }) => [name, group, kind])).to.deep.equal([
      ['scale', 'autoscaling', 'Scale'],
      ['status', 'apps', 'Deployment'],
    ])
  })

  it('list the preferred version first', () => {
    const versions = builtInResources().filter(({ resource }) => resource === 'horizontalpodautoscalers')
    expect(versions.map(({ version }) => version)).to.deep.equal(['v2', 'v1'])
  })
})
