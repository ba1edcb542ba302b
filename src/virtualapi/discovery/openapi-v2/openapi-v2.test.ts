import { gunzipSync } from 'node:zlib'
import { expect } from 'chai'
import { isJsonObject, type JsonObject, type JsonValue } from '#apimachinery/meta/index.ts'
import { builtInResources } from '#virtualapi/kinds/resources/builtin-resources.ts'
import { swaggerFromTables } from './built-in.ts'
import { schemaForV2, swaggerForCustomResources } from './custom.ts'
import { openApiV2Body, openApiV2Hash } from './document.ts'
import { encodeOpenApiV2 } from './encode-document.ts'
import { customResourceSource, type SwaggerSource } from './fragment.ts'
import { remoteSwagger } from './remote.ts'
import type { SwaggerParts } from './swagger.ts'

/** proto.Marshal of what gnostic-models v0.7.0 parses of the document below. */
const marshalledByGnostic =
  'CgMyLjASBgoBVBIBMUKeARKbAQoCL2ESlAESkQEyEGFwcGxpY2F0aW9uL2pzb25CHAoaEhgaFhIFcXVlcnkiAXEyB2Jvb2xlYW6g' +
  'AQFCEhIQCg4jL3BhcmFtZXRlcnMvcEIlCiMKIRIEYm9keRoEYm9keSABKhEKDyMvZGVmaW5pdGlvbnMvREokCiIKAzIwMBIbChkK' +
  'Ak9LEhMKEQoPIy9kZWZpbml0aW9ucy9ESmUKYwoBRBJemgEBYbIBCAoGb2JqZWN0ygFMCh0KAWESGEkAAAAAAAD4v1isArIBCQoH' +
  'aW50ZWdlcgofCgFiEhqyAQcKBWFycmF5ugENCguyAQgKBnN0cmluZwoKCgFjEgWqAQIQAA=='

/** Paths and definitions of custom resources in one group version. */
function partsOf(resources: Parameters<typeof swaggerForCustomResources>[0]): SwaggerParts {
  const [parts] = [...swaggerForCustomResources(resources, new Set())].filter((part) => part !== undefined)
  return parts!
}

type Swagger = { swagger: string; paths: Record<string, JsonObject>; definitions: Record<string, JsonObject> }

function references(value: JsonValue): string[] {
  if (Array.isArray(value)) return value.flatMap(references)
  if (!isJsonObject(value)) return []
  const own = typeof value['$ref'] === 'string' ? [value['$ref']] : []
  return [...own, ...Object.values(value).flatMap(references)]
}

const [row] = builtInResources()
const info = {
  ...row!,
  group: 'example.dev',
  version: 'v1',
  resource: 'widgets',
  kind: 'Widget',
  namespaced: true,
  verbs: ['delete', 'deletecollection', 'get', 'list', 'patch', 'create', 'update', 'watch'],
  subresources: [],
  builtIn: false,
}

const noTurn = (): undefined => undefined

const widgets = customResourceSource('widgets', () => [{ info, openAPIV3Schema: { type: 'object' } }])

describe('a structural schema in OpenAPI v2', () => {
  const keep = 'x-kubernetes-preserve-unknown-fields'
  for (const { title, schema, expected } of [
    {
      title: 'keeps the keywords of both versions',
      schema: { type: 'string', description: 'A', enum: ['a'], pattern: 'a', default: 'a' },
      expected: { type: 'string', description: 'A', enum: ['a'], pattern: 'a' },
    },
    {
      title: 'drops oneOf, anyOf, allOf and not',
      schema: { type: 'object', oneOf: [{ required: ['a'] }], anyOf: [], allOf: [], not: {} },
      expected: { type: 'object' },
    },
    { title: 'has no type if null is allowed', schema: { type: 'string', nullable: true }, expected: {} },
    {
      title: 'has no properties if unknown fields are preserved',
      schema: { type: 'object', [keep]: true, properties: { a: { type: 'string' } } },
      expected: { [keep]: true },
    },
    {
      title: 'has no list of unknown items',
      schema: { type: 'array', [keep]: true, items: { type: 'string' } },
      expected: { [keep]: true },
    },
    {
      title: 'requires no property that may be null',
      schema: {
        type: 'object',
        required: ['a', 'b'],
        properties: { a: { type: 'string', nullable: true }, b: { type: 'string' } },
      },
      expected: { type: 'object', required: ['b'], properties: { a: {}, b: { type: 'string' } } },
    },
    {
      title: 'is converted at every depth',
      schema: { type: 'array', items: { type: 'object', additionalProperties: { type: 'string', not: {} } } },
      expected: { type: 'array', items: { type: 'object', additionalProperties: { type: 'string' } } },
    },
  ] as { title: string; schema: JsonObject; expected: JsonObject }[])
    it(title, () => expect(schemaForV2(schema)).to.deep.equal(expected))

  it('has the common fields of embedded objects', () => {
    const { required, properties } = schemaForV2({ type: 'object', 'x-kubernetes-embedded-resource': true })
    expect(required).to.have.members(['apiVersion', 'kind'])
    expect(properties).to.have.all.keys('apiVersion', 'kind', 'metadata')
  })
})

describe('the OpenAPI v2 document', () => {
  it('generated from the tables has all definitions it refers to', () => {
    const swagger = swaggerFromTables()
    const { definitions } = swagger
    const document = JSON.parse(String(gunzipSync(swagger.gzip('json')))) as Swagger
    expect(document.swagger).to.equal('2.0')
    expect(document.definitions).to.have.all.keys(definitions as string[])
    const names = new Set(definitions.map((name) => `#/definitions/${name}`))
    const missing = references(document as unknown as JsonValue).filter((name) => !names.has(name))
    expect(missing).to.deep.equal([])
  })

  it('has each custom resource once, and a hash that depends on them', async () => {
    const custom = { content: 'widgets', sources: [widgets] }
    const none = { content: '', sources: [] }
    const body = await openApiV2Body(custom, { format: 'json', gzipped: false })
    const { paths, definitions } = JSON.parse(String(body)) as Swagger
    expect(definitions).to.include.keys('dev.example.v1.Widget', 'dev.example.v1.WidgetList', 'io.k8s.api.core.v1.Pod')
    expect(paths).to.include.keys('/apis/example.dev/v1/widgets', '/api/v1/pods')
    const plain = JSON.parse(String(await openApiV2Body(none, { format: 'json', gzipped: false }))) as Swagger
    expect(Object.keys(definitions).length - Object.keys(plain.definitions).length).to.equal(2)
    expect(openApiV2Hash(custom)).to.not.equal(openApiV2Hash(none))
  })

  for (const format of ['json', 'protobuf'] as const)
    it(`in ${format} encodes only the definition that has changed, and has all`, async () => {
      const encoded: string[] = []
      const sourceOf = (kind: string, description: string): SwaggerSource =>
        customResourceSource(`${kind} ${description}`, () => {
          encoded.push(`${kind} ${description}`)
          const own = { ...info, kind, resource: `${kind.toLowerCase()}s` }
          return [{ info: own, openAPIV3Schema: { type: 'object', description } }]
        })
      const bodyOf = async (...sources: SwaggerSource[]): Promise<string> => {
        const content = sources.map((source) => source.content).join()
        return String(await openApiV2Body({ content, sources }, { format, gzipped: false }))
      }
      await bodyOf(sourceOf('Gear', 'one'), sourceOf('Wheel', 'one'))
      const body = await bodyOf(sourceOf('Gear', 'one'), sourceOf('Wheel', 'two'))
      expect(encoded).to.deep.equal(['Gear one', 'Wheel one', 'Wheel two'])
      for (const name of ['dev.example.v1.Gear', 'dev.example.v1.WheelList']) expect(body).to.include(name)
      if (format === 'protobuf') return
      const { paths, definitions } = JSON.parse(body) as Swagger
      expect(paths).to.include.keys('/apis/example.dev/v1/gears', '/apis/example.dev/v1/wheels', '/api/v1/pods')
      expect(definitions['dev.example.v1.Wheel']).to.have.property('description', 'two')
    })

  it('has all definitions that custom resources refer to', async () => {
    const document = await openApiV2Body({ content: '', sources: [] }, { format: 'json', gzipped: false })
    const { definitions } = JSON.parse(String(document)) as Swagger
    const parts = partsOf([{ info, openAPIV3Schema: { type: 'object' } }])
    const names = new Set([...Object.keys(definitions), ...Object.keys(parts.definitions)])
    const missing = references(parts as unknown as JsonValue).filter(
      (name) => !names.has(name.slice('#/definitions/'.length)),
    )
    expect(missing).to.deep.equal([])
  })

  it('has the group version of another server with what it refers to, and nothing else of its document', async () => {
    const reference = (name: string): JsonObject => ({ $ref: `#/definitions/${name}` })
    const operation = (name: string): JsonObject => ({
      get: { parameters: [{ $ref: '#/parameters/own' }], responses: { '200': { schema: reference(name) } } },
    })
    const remote = await remoteSwagger(
      { group: 'shop.test', version: 'v1' },
      {
        parameters: { own: { name: 'own', in: 'query', type: 'string' } },
        paths: {
          '/apis/shop.test/v1/carts': operation('test.Cart'),
          '/apis/shop.test/v2/carts': operation('test.Other'),
          '/api/v1/pods': operation('test.Other'),
        },
        definitions: {
          'test.Cart': { properties: { meta: reference('io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta') } },
          'test.Other': { type: 'object' },
          'io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta': { type: 'string' },
        },
      },
      noTurn,
    )
    expect(remote).to.not.equal(undefined)
    const sources = remote === undefined ? [] : [widgets, remote]
    const body = await openApiV2Body({ content: 'with shop.test', sources }, { format: 'json', gzipped: false })
    const { paths, definitions } = JSON.parse(String(body)) as Swagger
    expect(paths).to.include.keys('/apis/shop.test/v1/carts', '/apis/example.dev/v1/widgets', '/api/v1/pods')
    expect(paths).to.not.have.property('/apis/shop.test/v2/carts')
    expect(paths['/apis/shop.test/v1/carts']).to.have.nested.property('get.parameters[0].name', 'own')
    expect(definitions).to.have.property('test.Cart').and.not.equal(undefined)
    expect(definitions).to.not.have.property('test.Other')
    expect(definitions['io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta']).to.have.property('type', 'object')
    expect(await remoteSwagger({ group: 'none.test', version: 'v1' }, { paths }, noTurn)).to.equal(undefined)
  })

  it('leaves out a server whose paths refer to a large parameter so often that they become too large', async () => {
    const own = { name: 'own', in: 'query', type: 'string', description: 'x'.repeat(20_000) }
    const paths = (count: number): JsonObject =>
      Object.fromEntries(
        Array.from({ length: count }, (_, i) => [
          `/apis/shop.test/v1/carts/${i}`,
          { get: { parameters: [{ $ref: '#/parameters/own' }] } },
        ]),
      )
    const gv = { group: 'shop.test', version: 'v1' }
    const sourceOf = (count: number) => remoteSwagger(gv, { parameters: { own }, paths: paths(count) }, noTurn)
    expect((await sourceOf(100))?.bytes).to.be.within(2_000_000, 2_100_000)
    expect(await sourceOf(20_000)).to.equal(undefined)
  })

  it('has no properties of a custom resource without a schema', () => {
    const { definitions } = partsOf([{ info }])
    expect(definitions['dev.example.v1.Widget']).to.have.all.keys('type', 'x-kubernetes-group-version-kind')
  })

  it('lets others run between the versions of a definition', async () => {
    const versions = Array.from({ length: 50 }, (_, i) => ({ info: { ...info, version: `v${i + 1}` } }))
    const source = customResourceSource('fifty versions', () => versions)
    let passes = 0
    let isDone = false
    const count = (): void => {
      passes++
      if (!isDone) setImmediate(count)
    }
    setImmediate(count)
    const body = await openApiV2Body(
      { content: 'fifty versions', sources: [source] },
      { format: 'json', gzipped: false },
    )
    isDone = true
    expect(passes).to.be.greaterThan(versions.length)
    const { paths } = JSON.parse(String(body)) as Swagger
    for (const { info: one } of versions) expect(paths).to.have.property(`/apis/example.dev/${one.version}/widgets`)
  })

  it('in protobuf is the built-in message followed by another one', async () => {
    const custom = { content: 'widgets', sources: [widgets] }
    const plain = await openApiV2Body({ content: '', sources: [] }, { format: 'protobuf', gzipped: false })
    const whole = gunzipSync(await openApiV2Body(custom, { format: 'protobuf', gzipped: true }))
    expect(whole.subarray(0, plain.length).equals(plain)).to.equal(true)
    expect(String(whole.subarray(plain.length))).to.include('dev.example.v1.Widget')
  })
})

describe('a document encoded as openapi.v2.Document', () => {
  it('has the bytes that gnostic writes', () => {
    const bytes = encodeOpenApiV2({
      swagger: '2.0',
      info: { title: 'T', version: '1' },
      paths: {
        '/a': {
          get: {
            produces: ['application/json'],
            parameters: [
              { name: 'q', in: 'query', type: 'boolean', uniqueItems: true },
              { $ref: '#/parameters/p' },
              { in: 'body', name: 'body', required: true, schema: { $ref: '#/definitions/D' } },
            ],
            responses: { '200': { description: 'OK', schema: { $ref: '#/definitions/D' } } },
          },
        },
      },
      definitions: {
        D: {
          type: 'object',
          required: ['a'],
          properties: {
            a: { type: 'integer', minimum: -1.5, maxLength: 300 },
            b: { type: 'array', items: { type: 'string' } },
            c: { additionalProperties: false },
          },
        },
      },
    })
    expect(bytes.toString('base64')).to.equal(marshalledByGnostic)
  })
})
