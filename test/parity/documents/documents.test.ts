// Compares the API's self-description: OpenAPI and discovery documents value by value, and the output of kubectl
// explain.
import { expect } from 'chai'
import { isRecord } from '../../integration/json.ts'
import { waitFor } from '../../support/index.ts'
import { kubectl } from '../../support/kubectl.ts'
import { startTwoServers, type Side, type TwoServers } from '../support/two-servers.ts'
import { differences } from './differences.ts'
import { definition, explained } from './explained.ts'

/** Not served in a logical cluster, which cannot aggregate other servers. */
const absent = 'apiregistration.k8s.io'
const aggregated = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList'

/** Every listed difference must occur, or the test fails. */
const known = {
  /** Operations of custom resources have neither an operationId nor descriptions. */
  operations: /\/paths\/\/apis\/documents\.example\.com\//,
  /** Besides custom resources, DeleteOptions are listed only for the groups of built-in kinds. */
  deleteOptions: /v1\.DeleteOptions\/x-kubernetes-group-version-kind: /,
}

describe('the API documents compared with kube-apiserver 1.34.3', function () {
  this.timeout(240_000)
  let servers: TwoServers

  before(async () => {
    servers = await startTwoServers({ name: 'documents' })
    for (const side of [servers.real, servers.ours]) {
      await kubectl(side.kubeconfig, ['create', '-f', '-'], { input: definition })
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
    const resources = real.filter((key) => /^api\/v1$|^apis\/[^/]+\/[^/]+$/.test(key) && !key.includes(absent))
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
    const found = differences(real, ours).filter((line) => !line.includes('apiregistration'))
    expectOnly(found, [known.operations])
  })

  it('discovery has the same groups, versions and resources in the same order', async () => {
    for (const path of ['/api', '/apis']) {
      const [real, ours] = await both(path, { accept: aggregated })
      expect(differences(withoutAbsent(real), withoutAbsent(ours), path)).to.deep.equal([])
    }
    const [real, ours] = await both('/apis')
    expect(differences(withoutAbsent(real), withoutAbsent(ours), '/apis')).to.deep.equal([])
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

/** A list of groups, in either format, without the group that is not served here. */
function withoutAbsent(list: unknown): unknown {
  if (!isRecord(list)) return list
  const without = (value: unknown): unknown =>
    Array.isArray(value) ? value.filter((item) => !JSON.stringify(item).includes(`"${absent}"`)) : value
  return Object.fromEntries(Object.entries(list).map(([key, value]) => [key, without(value)]))
}
