// Compares the API's self-description: OpenAPI and discovery documents value by value, their bytes in
// protobuf, and the output of kubectl explain.
import { expect } from 'chai'
import type { JsonObject } from '#apimachinery/meta/index.ts'
import { encodeProtobuf, protobufWatchEvent } from '#virtualapi/codec/protobuf/index.ts'
import { isRecord } from '#test/integration/json.ts'
import { waitFor } from '#test/support/index.ts'
import { kubectl } from '#test/support/kubectl.ts'
import type { Side } from '#test/parity/support/side.ts'
import { startTwoServers, type TwoServers } from '#test/parity/support/two-servers.ts'
import { differences } from './differences.ts'
import { definition, explained } from './explained.ts'

const aggregated = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList'

const protobufType = 'application/vnd.kubernetes.protobuf'
const discoveryPaths = [
  ...['/api', '/apis', '/api/v1', '/apis/apps', '/apis/apps/v1', '/apis/documents.example.com'],
  ...['/apis/documents.example.com/v1', '/apis/none.example.com'],
]
const discoveryAccepts = [
  protobufType,
  `${protobufType},application/json`,
  `${aggregated.replace('application/json', protobufType)},${aggregated},${protobufType}`,
  `${aggregated},${protobufType}`,
]
const metadataAs = (type: string, kind: string, version: string): string =>
  `${type};as=${kind};g=meta.k8s.io;v=${version}`
const metadataAccepts = ['PartialObjectMetadata', 'PartialObjectMetadataList'].flatMap((kind) =>
  ['v1', 'v1beta1'].map((version) => {
    const json = metadataAs('application/json', kind, version)
    return { kind, json, protobuf: `${metadataAs(protobufType, kind, version)},${json},application/json` }
  }),
)
const labelled = [
  { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'one', namespace: 'kube-public', labels: { a: 'b' } } },
  {
    apiVersion: 'documents.example.com/v1',
    kind: definition.spec.names.kind,
    metadata: { name: 'one', namespace: 'kube-public', annotations: { c: 'd' }, finalizers: ['example.com/kept'] },
  },
]
const namespaced = (path: string): string[] => [path, `${path}/one`, `${path}?watch=1&timeoutSeconds=1`]
const metadataPaths = [
  ...namespaced('/api/v1/namespaces/kube-public/configmaps'),
  '/api/v1/namespaces/kube-public/configmaps/none',
  ...namespaced(`/apis/documents.example.com/v1/namespaces/kube-public/${definition.spec.names.plural}`),
]

/** Every listed difference must occur, or the test fails. */
const known = {
  /**
   * Parameters of operations of custom resources have no descriptions, and are not shared by the operations of a path.
   */
  operations: /\/paths\/\/apis\/documents\.example\.com\/.*\/parameters(\/|: )/,
  /** Besides custom resources, DeleteOptions are listed only for the groups of built-in kinds. */
  deleteOptions: /v1\.DeleteOptions\/x-kubernetes-group-version-kind: /,
}

describe('the API documents compared with kube-apiserver 1.34.3', function () {
  this.timeout(240_000)
  let servers: TwoServers

  before(async () => {
    servers = await startTwoServers({ name: 'documents', untouched: true })
    for (const side of [servers.real, servers.ours]) {
      await kubectl(side.kubeconfig, ['create', '-f', '-'], { input: definition })
      for (const object of labelled) await createWhenServed(side, object)
      await waitFor(async () => (await indexOf(side)).includes('apis/documents.example.com/v1'), {
        what: 'a document of the new group',
        deadlineMs: 30_000,
      })
    }
  })
  after(() => servers[Symbol.asyncDispose]())

  const both = async (path: string, headers: Record<string, string> = {}): Promise<[unknown, unknown]> => [
    await json(servers.real, path, headers),
    await json(servers.ours, path, headers),
  ]

  it('OpenAPI v3 lists the same group versions', async () => {
    const [real, ours] = [await indexOf(servers.real), await indexOf(servers.ours)]
    expect(ours.filter((key) => !real.includes(key))).to.deep.equal([])
    // Documents without resources: groups and versions, keys, the version.
    const resources = real.filter((key) => /^api\/v1$|^apis\/[^/]+\/[^/]+$/.test(key))
    expect(ours).to.deep.equal(resources)
  })

  it('OpenAPI v3 has the same documents', async () => {
    const found: string[] = []
    for (const key of await indexOf(servers.ours))
      found.push(...differences(...(await both(`/openapi/v3/${key}`)), key))
    expectOnly(found, [known.operations, known.deleteOptions])
  })

  it('OpenAPI v2 is the same document', async () => {
    const [real, ours] = await both('/openapi/v2')
    const found = differences(real, ours)
    expectOnly(found, [known.operations])
  })

  it('discovery has the same groups, versions and resources in the same order', async () => {
    for (const path of ['/api', '/apis']) {
      const [real, ours] = await both(path, { accept: aggregated })
      expect(differences(real, ours, path)).to.deep.equal([])
    }
    const [real, ours] = await both('/apis')
    expect(differences(real, ours, '/apis')).to.deep.equal([])
  })

  for (const path of discoveryPaths)
    it(`discovery has the same bytes as protobuf: ${path}`, async () => {
      for (const accept of discoveryAccepts) {
        const [real, ours] = [await asked(servers.real, path, accept), await asked(servers.ours, path, accept)]
        expect(ours.form, accept).to.deep.equal(real.form)
        // The core group's list of versions has the address of the server.
        if (path !== '/api' || accept.includes('apidiscovery'))
          expect(ours.body.equals(real.body), accept).to.equal(true)
      }
    })

  for (const path of metadataPaths)
    it(`metadata is answered as protobuf in the same places: ${path}`, async () => {
      for (const { kind, json: asJson, protobuf } of metadataAccepts) {
        // Of what is not there, and of custom resources, a real server tells something else than the wrong number.
        if (kind.endsWith('List') && /none|gadgets\/one/.test(path)) continue
        // A watch takes a second each time.
        if (path.includes('watch=') && !asJson.endsWith('as=PartialObjectMetadata;g=meta.k8s.io;v=v1')) continue
        const [real, ours] = [await asked(servers.real, path, protobuf), await asked(servers.ours, path, protobuf)]
        expect(ours.form, protobuf).to.deep.equal(real.form)
        if (real.form.status !== 200) continue
        // Revisions of lists change between two requests, and a watch may end before its first event.
        for (const side of [servers.real, servers.ours])
          await waitFor(
            async () => {
              const { body } = await asked(side, path, protobuf)
              const { text } = await side.request('GET', path, { headers: { accept: asJson } })
              return text !== '' && body.equals(inProtobuf(text, path.includes('watch=')))
            },
            { what: `the same as JSON and as ${protobuf}`, deadlineMs: 30_000 },
          )
      }
    })

  for (const args of explained)
    it(`kubectl explain ${args.join(' ')}`, async () => {
      const of = async ({ kubeconfig }: Side): Promise<unknown> => {
        const { code, stdout, stderr } = await kubectl(kubeconfig, ['explain', ...args], { expectCode: 'any' })
        return { code, stdout: stdout.split('\n'), stderr }
      }
      expect(await of(servers.ours)).to.deep.equal(await of(servers.real))
    })
})

async function createWhenServed(side: Side, object: { apiVersion: string; kind: string }): Promise<void> {
  await waitFor(
    async () => (await kubectl(side.kubeconfig, ['apply', '-f', '-'], { input: object, expectCode: 'any' })).code === 0,
    { what: `a ${object.kind}`, deadlineMs: 30_000 },
  )
}

/** Status and type of an answer, and its bytes. */
async function asked(
  side: Side,
  path: string,
  accept: string,
): Promise<{ form: { status: number; type: unknown }; body: Buffer }> {
  const { status, headers, body } = await side.request('GET', path, { headers: { accept } })
  return { form: { status, type: headers['content-type'] }, body }
}

/** An answer of JSON, or the events of a watch, as protobuf. */
function inProtobuf(text: string, isWatch: boolean): Buffer {
  const encoded = (object: JsonObject): Buffer => encodeProtobuf(object) ?? Buffer.alloc(0)
  if (!isWatch) return encoded(JSON.parse(text) as JsonObject)
  const events = text.trim().split('\n')
  return Buffer.concat(
    events.map((line) => {
      const { type, object } = JSON.parse(line) as { type: string; object: JsonObject }
      return protobufWatchEvent(type, encoded(object))
    }),
  )
}

function expectOnly(found: readonly string[], reasons: readonly RegExp[]): void {
  expect(found.filter((line) => !reasons.some((reason) => reason.test(line)))).to.deep.equal([])
  expect(reasons.filter((reason) => !found.some((line) => reason.test(line)))).to.deep.equal([])
}

async function json(side: Side, path: string, headers: Record<string, string> = {}): Promise<unknown> {
  const { status, text } = await side.request('GET', path, { headers })
  expect(status, `${path}: ${text.slice(0, 300)}`).to.equal(200)
  return JSON.parse(text)
}

async function indexOf(side: Side): Promise<string[]> {
  const index = await json(side, '/openapi/v3')
  return isRecord(index) && isRecord(index['paths']) ? Object.keys(index['paths']).sort() : []
}
