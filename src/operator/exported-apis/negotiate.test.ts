import { expect } from 'chai'
import type { JsonObject, KubeObject } from '#apimachinery/meta/index.ts'
import { exportedByAnnotation, heldChangeAnnotation } from '#crds/index.ts'
import { apiReports } from './api-reports.ts'
import { cutOf } from './cut.ts'
import { negotiate, type ApiCandidate, type Negotiated } from './negotiate.ts'

const name = 'widgets.example.com'
const size: JsonObject = { size: { type: 'integer' } }
const both: JsonObject = { ...size, colour: { type: 'string' } }
const spec = (properties: JsonObject, more: JsonObject = {}): JsonObject => ({
  group: 'example.com',
  scope: 'Namespaced',
  names: { plural: 'widgets', kind: 'Widget' },
  versions: [
    {
      ...{ name: 'v1', served: true, storage: true },
      schema: { openAPIV3Schema: { type: 'object', properties: { spec: { type: 'object', properties } } } },
    },
  ],
  ...more,
})
const widget = (fields: JsonObject): KubeObject => ({
  apiVersion: 'example.com/v1',
  kind: 'Widget',
  metadata: { name: 'w' },
  spec: fields,
})
const member = (of: string, definition: JsonObject | undefined): ApiCandidate => ({
  name: of,
  definition: definition && { spec: definition },
})
const found = (
  candidates: readonly ApiCandidate[],
  shown?: KubeObject,
  objects: readonly KubeObject[] = [],
): Negotiated => {
  const cut = (next: JsonObject) => cutOf(objects, (shown?.['spec'] ?? {}) as JsonObject, next)
  return negotiate({ name, candidates, shown, cut })
}
const fieldsOf = ({ definition }: Negotiated): string => {
  const { versions } = definition?.['spec'] as { versions: { schema: { openAPIV3Schema: object } }[] }
  const { properties } = versions[0]?.schema.openAPIV3Schema as {
    properties: { spec: { properties: object } }
  }
  return Object.keys(properties.spec.properties).sort().join()
}

describe('the negotiation of an API', () => {
  const east = member('east', spec(both))
  const west = member('west', spec(size))

  it('shows what all members have, and names them and what they lack', () => {
    const shown = found([east, west])
    expect(fieldsOf(shown)).to.equal('size')
    expect(shown.definition?.metadata.annotations).to.include({ [exportedByAnnotation]: 'east,west' })
    expect(shown.dropped).to.deep.equal([{ version: 'v1', path: '.spec.colour', members: ['west'] }])
  })

  it('holds a change that cuts objects, without the member that needs it', () => {
    const shown = found([east]).definition
    const held = found([east, west], shown, [widget({ size: 1, colour: 'red' }), widget({ size: 2 })])
    expect(fieldsOf(held)).to.equal('colour,size')
    expect(held.members).to.deep.equal(['east'])
    expect(held.incompatible.get('west')).to.match(/^v1 \.spec\.colour .*1 stored object would lose spec\.colour$/)
    expect(held.definition?.metadata.annotations).to.have.property(heldChangeAnnotation)
    expect(found([east, west], held.definition, [widget({ size: 2 })]).members).to.deep.equal(['east', 'west'])
  })

  it('holds the upgrade of a member that drops a version in which objects are stored', () => {
    const shown = found([east]).definition
    const versions = [{ ...(spec(both)['versions'] as JsonObject[])[0], name: 'v2' }]
    const held = found([member('east', spec(both, { versions }))], shown, [widget({ size: 1 })])
    expect(held.held).to.include('version v1')
    expect(held.members).to.deep.equal([])
  })

  it('does not become wider while a member is away, but does when it is removed', () => {
    const shown = found([east, west]).definition
    const away = found([east, member('west', undefined)], shown)
    expect(fieldsOf(away)).to.equal('size')
    expect(away.members).to.deep.equal(['east', 'west'])
    expect(fieldsOf(found([east], shown))).to.equal('colour,size')
    expect(found([member('east', undefined), member('west', undefined)], shown).definition?.['spec']).to.deep.equal(
      shown?.['spec'],
    )
  })

  for (const { title, hostile, why } of [
    { title: 'another scope', hostile: spec(size, { scope: 'Cluster' }), why: /spec\.scope is/ },
    { title: 'no version in common', hostile: spec(size, { versions: [] }), why: /no version|not served/ },
    { title: 'more than 1 MiB', hostile: spec({ x: { type: 'string', pattern: 'x'.repeat(1 << 20) } }), why: /1 MiB/ },
    { title: 'a schema that is nested too deeply', hostile: spec({ deep: nested(200) }), why: /nested too deeply/ },
    {
      title: 'a schema that is nested beyond any stack',
      hostile: spec({ deep: nested(30_000) }),
      why: /nested too deeply/,
    },
  ])
    it(`leaves out a member with ${title}, and goes on with the others`, () => {
      const seen = found([member('east', spec({ ...both, deep: nested(20) })), member('evil', hostile)])
      expect(seen.members).to.deep.equal(['east'])
      expect(seen.incompatible.get('evil')).to.match(why)
    })

  it('takes bounded time for schemas of the largest size', () => {
    const wide = (prefix: string) => {
      const fields = Array.from({ length: 8000 }, (_, i) => [`${prefix}${i}`, { type: 'string', maxLength: i + 1 }])
      return spec(Object.fromEntries(fields) as JsonObject)
    }
    const started = performance.now()
    const seen = found([member('east', spec(both)), member('evil', wide('a')), member('mean', wide('b'))])
    expect(seen.members).to.include('east')
    expect(performance.now() - started).to.be.lessThan(10_000)
  })

  it('is reported by member: where it is offered, what is lost, and why a member is not used', () => {
    const outcome = { ...found([east, member('evil', spec(size, { scope: 'Cluster' }))]), cluster: 'acme', name }
    const reports = apiReports([outcome, { ...outcome, cluster: 'bob' }])
    expect(reports.get('east')?.apis).to.deep.equal([
      { group: 'example.com', resource: 'widgets', logicalClusters: 2, droppedFields: [] },
    ])
    expect(reports.get('evil')?.apis[0]?.incompatible).to.match(/^in logical cluster "acme": it has no common/)
  })
})

function nested(depth: number): JsonObject {
  let schema: JsonObject = { type: 'string' }
  for (let i = 0; i < depth; i++) schema = { type: 'object', properties: { p: schema } }
  return schema
}
