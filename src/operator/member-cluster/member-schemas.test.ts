import { expect } from 'chai'
import type { KubeClient } from '#client/index.ts'
import { silentLogger } from '#telemetry/index.ts'
import { MemberSchemas, missingFields, type OpenApiDocument } from './member-schemas.ts'

const group = { group: 'apps', version: 'v1', kind: 'Deployment' }
const path = 'apis/apps/v1'

/** A client of an API with one OpenAPI document, whose hash is what its server says. */
function api(hash: string, fields: readonly string[]): KubeClient {
  const properties = { spec: { properties: Object.fromEntries(fields.map((field) => [field, {}])) } }
  const schemas = { Deployment: { 'x-kubernetes-group-version-kind': [group], properties } }
  const responses: Record<string, unknown> = {
    '/openapi/v3': { paths: { [path]: { serverRelativeURL: `/openapi/v3/${path}?hash=${hash}` } } },
    [`/openapi/v3/${path}?hash=${hash}`]: { components: { schemas } },
  }
  return { raw: async (asked: string) => Promise.resolve(responses[asked]) } as unknown as KubeClient
}

describe('the fields that a member does not know', () => {
  it('are those of its own documents, also if another member has told the same hash with other content', async () => {
    const ours = api('OURS', ['replicas', 'paused'])
    const told = new Map<string, PromiseWithResolvers<true>>()
    const schemas = new MemberSchemas({
      ours: () => ours,
      log: silentLogger,
      signal: new AbortController().signal,
      changed: (name) => told.get(name)?.resolve(true),
    })
    const unsupportedBy = async (name: string, client: KubeClient) => {
      const known = Promise.withResolvers<true>()
      told.set(name, known)
      expect(schemas.unsupportedBy(name, client, 'v1.34.0')).to.equal(undefined)
      await known.promise
      return schemas.unsupportedBy(name, client, 'v1.34.0')?.find(({ kind }) => kind === 'Deployment')?.paths
    }
    expect(await unsupportedBy('hostile', api('SAME', []))).to.deep.equal(['spec.replicas', 'spec.paused'])
    expect(await unsupportedBy('honest', api('SAME', ['replicas']))).to.deep.equal(['spec.paused'])
  })
})

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
