import { Buffer } from 'node:buffer'
import { expect } from 'chai'
import type { ClusterId, Revision } from '#apimachinery/meta/index.ts'
import { isStatusError } from '#apimachinery/status/index.ts'
import { StoredEntry } from '#store/watch-cache/index.ts'
import { ClusterCatalog } from '#virtualapi/catalog/cluster-catalog.ts'
import { encodeObject, readFacts } from '#virtualapi/kinds/resources/object-bytes.ts'
import { selectionOf } from './selection.ts'

const catalog = new ClusterCatalog()

function definitionOf(resource: string) {
  const definition = catalog.findBuiltIn({ group: '', version: 'v1', resource })
  if (definition === undefined) throw new Error(`${resource} is not built in`)
  return definition
}

function selectionFor(query: Record<string, string>, resource = 'pods', name?: string) {
  return selectionOf(new URLSearchParams(query), definitionOf(resource), name === undefined ? {} : { name })
}

const pod = new StoredEntry(
  {
    key: { cluster: 'a' as ClusterId, resource: 'pods', namespace: 'shop', name: 'web' },
    revision: 1 as Revision,
    createRevision: 1 as Revision,
    base: false,
    bytes: Buffer.from(
      encodeObject({
        kind: 'Pod',
        apiVersion: 'v1',
        metadata: { name: 'web', namespace: 'shop', uid: 'u', labels: { app: 'web' } },
        spec: { nodeName: 'n1' },
        status: { phase: 'Running' },
      }),
    ),
  },
  readFacts,
)

describe('the selectors of a list', () => {
  for (const { query, matches } of [
    { query: {}, matches: true },
    { query: { labelSelector: 'app=web' }, matches: true },
    { query: { labelSelector: 'app!=web' }, matches: false },
    { query: { labelSelector: 'app in (db,web),!canary' }, matches: true },
    { query: { fieldSelector: 'metadata.name=web' }, matches: true },
    { query: { fieldSelector: 'metadata.name!=web' }, matches: false },
    { query: { fieldSelector: 'metadata.namespace=other' }, matches: false },
    { query: { fieldSelector: 'spec.nodeName=n1' }, matches: true },
    { query: { fieldSelector: 'status.phase=Pending' }, matches: false },
    { query: { labelSelector: 'app=web', fieldSelector: 'spec.nodeName=n2' }, matches: false },
  ] as { query: Record<string, string>; matches: boolean }[])
    it(`${matches ? 'match' : 'do not match'} with ${JSON.stringify(query)}`, () => {
      expect(selectionFor(query).matches(pod)).to.equal(matches)
    })

  it('know whether they match everything, and a single name', () => {
    expect(selectionFor({})).to.include({ everything: true, name: undefined })
    expect(selectionFor({ fieldSelector: 'metadata.name=web' })).to.include({ everything: false, name: 'web' })
    expect(selectionFor({ fieldSelector: 'spec.nodeName=n1' })).to.include({ everything: false, name: undefined })
  })

  it('match one name of the path only', () => {
    expect(selectionFor({}, 'pods', 'web').matches(pod)).to.equal(true)
    expect(selectionFor({}, 'pods', 'db').matches(pod)).to.equal(false)
  })

  for (const { resource, fieldSelector } of [
    { resource: 'pods', fieldSelector: 'spec.image=x' },
    { resource: 'configmaps', fieldSelector: 'data.a=1' },
    { resource: 'pods', fieldSelector: 'metadata.name' },
  ])
    it(`are refused for ${resource}: ${fieldSelector}`, () => {
      let refused: unknown
      try {
        selectionFor({ fieldSelector }, resource)
      } catch (error) {
        refused = error
      }
      expect(isStatusError(refused, 'BadRequest'), String(refused)).to.equal(true)
    })
})
