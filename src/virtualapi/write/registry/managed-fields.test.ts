import { expect } from 'chai'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { ClusterCatalog } from '#virtualapi/catalog/cluster-catalog.ts'
import type { RequestContext } from '#virtualapi/kinds/resources/resource-definition.ts'
import { managedFieldsOf } from './managed-fields.ts'

describe('managedFieldsOf', () => {
  const definition = new ClusterCatalog().findBuiltIn({ group: '', version: 'v1', resource: 'configmaps' })
  const entriesOf = (name: string, data: Record<string, string>): unknown => {
    if (definition === undefined) throw new Error('ConfigMaps are not built in')
    const context = { fieldManager: 'kubectl', now: 0 } as RequestContext
    const object: KubeObject = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, namespace: 'default' }, data }
    return managedFieldsOf({ definition, context, subresource: '' }, object, undefined, undefined)?.[0]?.fieldsV1
  }

  it('gives objects with the same fields the same set of fields, so that it is computed and kept once', () => {
    const first = entriesOf('first', { a: '1' })
    expect(first).to.deep.equal({ 'f:data': { '.': {}, 'f:a': {} } })
    expect(entriesOf('second', { a: '2' })).to.equal(first)
    expect(entriesOf('third', { b: '1' })).to.not.equal(first)
  })
})
