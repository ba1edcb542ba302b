// Compares APIServices of a real kube-apiserver and of a logical cluster: the objects, what is refused, conditions,
// discovery.
import { expect } from 'chai'
import type { JsonObject } from '#apimachinery/meta/index.ts'
import { hostService } from '#test/support/host-service.ts'
import { freePort } from '#test/support/free-port.ts'
import { kubectl } from '#test/support/kubectl.ts'
import { ownAddress } from '#test/support/sample-api-server.ts'
import { waitFor } from '#test/support/index.ts'
import type { Side } from '#test/parity/support/side.ts'
import { startTwoServers, type TwoServers } from '#test/parity/support/two-servers.ts'

const path = '/apis/apiregistration.k8s.io/v1/apiservices'
const group = 'far.example.com'
/** The kinds that a logical cluster serves are those of stable versions. */
const unstable = /(alpha|beta)\d+\./
/** Differs between two servers. */
const variable = /"(uid|resourceVersion|creationTimestamp|lastTransitionTime|time)":"[^"]*"/g

const apiService = (name: string, spec: JsonObject, more: JsonObject = {}): JsonObject => ({
  ...{ apiVersion: 'apiregistration.k8s.io/v1', kind: 'APIService', metadata: { name } },
  spec,
  ...more,
})
const local = { group, version: 'v1', groupPriorityMinimum: 100, versionPriority: 10 }
const remote = { ...local, service: { namespace: 'default', name: 'missing' } }

const refused: Record<string, JsonObject> = {
  'a name of another group version': apiService('v2.other', local),
  'nothing set': apiService('v1.', {}),
  'the core group in another version': apiService('v2.', { ...local, group: '', version: 'v2' }),
  'an invalid group and version': apiService('V1.A_b', { ...local, group: 'A_b', version: 'V1' }),
  'priorities out of range': apiService(`v1.${group}`, {
    ...local,
    groupPriorityMinimum: 20001,
    versionPriority: 1001,
  }),
  'negative priorities': apiService(`v1.${group}`, { ...local, groupPriorityMinimum: -1, versionPriority: -1 }),
  'a local one with what only remote ones have': apiService(`v1.${group}`, {
    ...local,
    caBundle: Buffer.from('x').toString('base64'),
    insecureSkipTLSVerify: true,
  }),
  'an empty reference': apiService(`v1.${group}`, { ...local, service: { port: 0 } }),
  'a port out of range': apiService(`v1.${group}`, { ...remote, service: { namespace: 'a', name: 'b', port: 65536 } }),
  'a caBundle that is not used': apiService(`v1.${group}`, {
    ...remote,
    caBundle: Buffer.from('x').toString('base64'),
    insecureSkipTLSVerify: true,
  }),
}

describe("APIServices equal a real server's", function () {
  this.timeout(240_000)
  const address = ownAddress()
  let servers: TwoServers

  before(async () => {
    servers = await startTwoServers({
      name: 'aggregate',
      flags: ['--enable-aggregator-routing=true'],
      ourFlags: ['--egress-allow', `${address}/32`],
    })
  })
  after(() => servers[Symbol.asyncDispose]())

  /** Asks both and expects the same status and document, times and uids apart. */
  async function same(
    method: string,
    at: string,
    body?: unknown,
    headers: Record<string, string> = {},
  ): Promise<string> {
    const [real, ours] = await Promise.all(
      [servers.real, servers.ours].map(async (side) => {
        const response = await side.request(method, at, { headers, ...(body === undefined ? {} : { body }) })
        return { status: response.status, body: JSON.parse(response.text.replace(variable, '"$1":"*"')) as JsonObject }
      }),
    )
    expect(ours).to.deep.equal(real)
    return JSON.stringify(real?.body)
  }
  const both = <T>(ask: (side: Side) => Promise<T>): Promise<T[]> =>
    Promise.all([servers.real, servers.ours].map((side) => ask(side)))
  /** The condition Available once it has this reason. */
  async function condition(side: Side, name: string, reason: string): Promise<JsonObject> {
    let found: JsonObject | undefined
    await waitFor(
      async () => {
        const { text } = await side.request('GET', `${path}/${name}`)
        const { status } = JSON.parse(text) as { status?: { conditions?: JsonObject[] } }
        found = status?.conditions?.find(({ type }) => type === 'Available')
        return found?.['reason'] === reason
      },
      { what: `reason ${reason}`, deadlineMs: 30_000 },
    )
    return { ...found, lastTransitionTime: '*' }
  }
  async function sameCondition(name: string, reason: string): Promise<void> {
    const [real, ours] = await both((side) => condition(side, name, reason))
    expect(ours).to.deep.equal(real)
  }

  it('are registered for all built-in group versions', async () => {
    const [real, ours] = await both(async (side) => {
      const { text } = await side.request('GET', path)
      const { items } = JSON.parse(text.replace(variable, '"$1":"*"')) as {
        items: { metadata: { name: string; labels: object }; spec: object; status: object }[]
      }
      return items
        .filter(({ metadata }) => !unstable.test(metadata.name))
        .map(({ metadata: { name, labels }, spec, status }) => ({ name, labels, spec, status }))
    })
    expect(ours).to.deep.equal(real)
    expect(real).to.have.length.above(20)
  })

  for (const [title, body] of Object.entries(refused))
    it(`are refused: ${title}`, async () => {
      expect(await same('POST', path, body)).to.contain('"reason":"Invalid"')
    })

  it('are created, updated, patched and deleted alike', async () => {
    const name = `v1.${group}`
    await same('POST', path, apiService(name, local, { status: { conditions: [] } }))
    await same('GET', `${path}/${name}`)
    const merge = { 'content-type': 'application/merge-patch+json' }
    await same('PATCH', `${path}/${name}`, { metadata: { labels: { a: 'b' } } }, merge)
    await same('PATCH', `${path}/${name}`, { spec: { versionPriority: 0 } }, merge)
    await same('PATCH', `${path}/${name}/status`, { status: { conditions: [{ type: 'A', status: 'Maybe' }] } }, merge)
    await same('PUT', `${path}/${name}`, apiService(name, local))
    await same('DELETE', `${path}/${name}`)
  })

  it('are printed alike', async () => {
    const table = { accept: 'application/json;as=Table;v=v1;g=meta.k8s.io' }
    const [real, ours] = await both(async (side) => {
      const { text } = await side.request('GET', `${path}/v1.apps`, { headers: table })
      const { columnDefinitions, rows } = JSON.parse(text) as {
        columnDefinitions: JsonObject[]
        rows: { cells: unknown[] }[]
      }
      // The aggregator describes its columns itself.
      for (const column of columnDefinitions) delete column['description']
      return { columnDefinitions, cells: rows[0]?.cells.slice(0, 3) }
    })
    expect(ours).to.deep.equal(real)
  })

  it('have the same conditions while their Service cannot be reached', async () => {
    const name = `v1.${group}`
    const port = await freePort(address)
    const { items } = hostService({ name: 'missing', namespace: 'default', address, port }) as { items: JsonObject[] }
    const [service, slice] = items
    const services = '/api/v1/namespaces/default/services'
    const slices = '/apis/discovery.k8s.io/v1/namespaces/default/endpointslices'
    const merge = { headers: { 'content-type': 'application/merge-patch+json' } }
    await both((side) => side.request('POST', path, { body: apiService(name, remote) }))
    await sameCondition(name, 'ServiceNotFound')
    await both((side) => side.request('POST', services, { body: { ...service, spec: { ports: [{ port: 80 }] } } }))
    await sameCondition(name, 'ServicePortError')
    const spec = { ports: [{ name: 'https', port: 443 }] }
    await both((side) => side.request('PATCH', `${services}/missing`, { body: { spec }, ...merge }))
    await sameCondition(name, 'EndpointsNotFound')
    const unready = [{ addresses: [address], conditions: { ready: false } }]
    await both((side) => side.request('POST', slices, { body: { ...slice, endpoints: unready } }))
    await sameCondition(name, 'MissingEndpoints')
    const endpoints = [{ addresses: [address], conditions: { ready: true } }]
    await both((side) => side.request('PATCH', `${slices}/missing-host`, { body: { endpoints }, ...merge }))
    await sameCondition(name, 'FailedDiscoveryCheck')
  })

  it('of other servers are in discovery', async () => {
    for (const [version, versionPriority] of [['v2beta1', 10] as const, ['v2', 5] as const]) {
      const spec = { ...remote, version, versionPriority, groupPriorityMinimum: 19000 }
      await both((side) => side.request('POST', path, { body: apiService(`${version}.${group}`, spec) }))
    }
    const [real, ours] = await both(async (side) => {
      let groups: { name: string }[] = []
      await waitFor(
        async () => {
          const { text } = await side.request('GET', '/apis')
          const all = (JSON.parse(text) as { groups: { name: string }[] }).groups
          // Placements, which every logical cluster has.
          groups = all.filter(({ name }) => name !== 'kcp.dev')
          return JSON.stringify(groups).includes(`${group}/v2"`)
        },
        { what: 'the group in discovery', deadlineMs: 30_000 },
      )
      return groups
    })
    expect(ours).to.deep.equal(real)
    await same('GET', `/apis/${group}`)
  })

  it('of CustomResourceDefinitions come and go with them', async () => {
    const crds = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'
    const schema = { openAPIV3Schema: { type: 'object' } }
    const definition = {
      ...{ apiVersion: 'apiextensions.k8s.io/v1', kind: 'CustomResourceDefinition' },
      metadata: { name: 'near.near.example.com' },
      spec: {
        ...{ group: 'near.example.com', scope: 'Cluster', names: { plural: 'near', kind: 'Near' } },
        versions: [
          { name: 'v1', served: true, storage: true, schema },
          { name: 'v1beta1', served: true, storage: false, schema },
        ],
      },
    }
    const untilGone = (version: string) =>
      both((side) =>
        waitFor(async () => (await side.request('GET', `${path}/${version}.near.example.com`)).status === 404, {
          what: `the APIService of ${version} to be deleted`,
          deadlineMs: 30_000,
        }),
      )
    await both((side) => side.request('POST', crds, { body: definition }))
    const [real, ours] = await both(async (side) => {
      const found = await condition(side, 'v1.near.example.com', 'Local')
      const { text } = await side.request('GET', `${path}/v1.near.example.com`)
      const { metadata, spec } = JSON.parse(text) as { metadata: { labels: object }; spec: object }
      return { found, labels: metadata.labels, spec }
    })
    expect(ours).to.deep.equal(real)
    await sameCondition('v1beta1.near.example.com', 'Local')
    const headers = { 'content-type': 'application/json-patch+json' }
    const body = [{ op: 'remove', path: '/spec/versions/1' }]
    await both((side) => side.request('PATCH', `${crds}/near.near.example.com`, { headers, body }))
    await untilGone('v1beta1')
    await same('GET', '/apis/near.example.com')
    await both((side) => side.request('DELETE', `${crds}/near.near.example.com`))
    await untilGone('v1')
  })

  it('are printed by kubectl', async () => {
    const [real, ours] = await both(async ({ kubeconfig }) => {
      const { stdout } = await kubectl(kubeconfig, ['get', 'apiservices', 'v1.apps', `v1.${group}`, '--no-headers'])
      return stdout.replace(/\S+$/gm, '')
    })
    expect(ours).to.deep.equal(real)
  })
})
