import { expect } from 'chai'
import { ensurePrograms, kubectlEnvironment, runCommand } from '#test/support/index.ts'
import { at } from './json.ts'
import { startInstance, type KcpInstance, type Tenant } from './kcp-instance.ts'

/** A field of a protobuf message: number, then text or bytes (length-delimited) or a whole number (varint). */
function field(number: number, value: string | Uint8Array | number): Buffer {
  if (typeof value === 'number') return Buffer.from([number * 8, ...varint(value)])
  const bytes = Buffer.from(value)
  return Buffer.concat([Buffer.from([number * 8 + 2, ...varint(bytes.length)]), bytes])
}

function varint(value: number): number[] {
  return value < 128 ? [value] : [(value % 128) | 128, ...varint(Math.floor(value / 128))]
}

/** Kubernetes' envelope of a message: `k8s\0`, the kind, the message. */
function envelope(apiVersion: string, kind: string, message: Uint8Array): Buffer {
  const type = Buffer.concat([field(1, apiVersion), field(2, kind)])
  return Buffer.concat([Buffer.from('k8s\0'), field(1, type), field(2, message)])
}

const contentType = 'application/vnd.kubernetes.protobuf'
const headers = ['Content-Type', contentType, 'Accept', 'application/json']

describe('clients that send protobuf', () => {
  let kcp: KcpInstance
  let acme: Tenant
  before(async () => {
    kcp = await startInstance()
    acme = await kcp.tenant('acme')
  })
  after(() => kcp[Symbol.asyncDispose]())

  it('create a ConfigMap and get JSON back if they accept JSON alone', async () => {
    const entry = Buffer.concat([field(1, 'colour'), field(2, 'green')])
    const body = envelope('v1', 'ConfigMap', Buffer.concat([field(1, field(1, 'pb')), field(2, entry)]))
    const path = `${acme.base}/api/v1/namespaces/default/configmaps`
    const response = await acme.http.request('POST', path, { body, headers })
    expect(response.status, response.text).to.equal(201)
    expect(response.headers['content-type']).to.equal('application/json')
    expect(response.json()).to.deep.include({ kind: 'ConfigMap', apiVersion: 'v1', data: { colour: 'green' } })
    expect((await acme.kubectl(['get', 'cm', 'pb', '-o', 'jsonpath={.data.colour}'])).stdout).to.equal('green')
  })

  it('create and renew a Lease, and only with its current revision', async () => {
    const base = `${acme.base}/apis/coordination.k8s.io/v1/namespaces/default/leases`
    const lease = (revision: string, seconds: number): Buffer => {
      const meta = Buffer.concat([
        field(1, 'leader'),
        field(3, 'default'),
        ...(revision === '' ? [] : [field(6, revision)]),
      ])
      const time = field(1, 1_700_000_000 + seconds)
      const spec = Buffer.concat([field(1, 'me'), field(2, 15), field(3, time), field(4, time)])
      return envelope('coordination.k8s.io/v1', 'Lease', Buffer.concat([field(1, meta), field(2, spec)]))
    }
    const created = await acme.http.request('POST', base, { body: lease('', 0), headers })
    expect(created.status, created.text).to.equal(201)
    expect(at(created.json(), 'spec')).to.deep.equal({
      holderIdentity: 'me',
      leaseDurationSeconds: 15,
      acquireTime: '2023-11-14T22:13:20.000000Z',
      renewTime: '2023-11-14T22:13:20.000000Z',
    })
    const revision = String(at(created.json(), 'metadata.resourceVersion'))
    const renewed = await acme.http.request('PUT', `${base}/leader`, { body: lease(revision, 10), headers })
    expect(renewed.status, renewed.text).to.equal(200)
    expect(at(renewed.json(), 'spec.renewTime')).to.equal('2023-11-14T22:13:30.000000Z')
    const stale = await acme.http.request('PUT', `${base}/leader`, { body: lease(revision, 20), headers })
    expect(stale.status).to.equal(409)
  })

  it('delete with DeleteOptions', async () => {
    const path = `${acme.base}/api/v1/namespaces/default/configmaps`
    await acme.http.request('POST', path, { body: { metadata: { name: 'doomed' } } })
    const preconditions = field(2, field(1, 'another-uid'))
    const refused = await acme.http.request('DELETE', `${path}/doomed`, {
      body: envelope('v1', 'DeleteOptions', preconditions),
      headers,
    })
    expect(refused.status, refused.text).to.equal(409)
    const done = await acme.http.request('DELETE', `${path}/doomed`, {
      body: envelope('v1', 'DeleteOptions', field(4, 'Background')),
      headers,
    })
    expect(done.status, done.text).to.equal(200)
  })

  it('get 415 with the alternative JSON for a kind without protobuf', async () => {
    const body = envelope('shop.test/v1', 'Widget', Buffer.alloc(0))
    const path = `${acme.base}/api/v1/namespaces/default/configmaps`
    const response = await acme.http.request('POST', path, { body, headers })
    expect(response.status).to.be.oneOf([400, 415])
    expect(response.json()).to.have.property('kind', 'Status')
  })

  it('get 406 if they accept nothing that is written', async () => {
    const only = ['Accept', 'application/cbor']
    const response = await acme.http.request('GET', `${acme.base}/api/v1/namespaces/default/configmaps`, {
      headers: only,
    })
    expect(response.status).to.equal(406)
    expect(response.json()).to.deep.include({ kind: 'Status', reason: 'NotAcceptable' })
  })

  it('include kubectl with its typed calls: auth can-i and whoami', async () => {
    const { kubectl } = await ensurePrograms(['kubectl'])
    const args = ['--kubeconfig', acme.kubeconfig, 'auth', 'can-i', 'get', 'pods', '-v=8']
    const { stdout, stderr } = await runCommand(kubectl, args, { env: kubectlEnvironment(acme.kubeconfig) })
    expect(stdout.trim()).to.equal('yes')
    expect(stderr).to.include(contentType)
    expect((await acme.kubectl(['auth', 'can-i', '--list', '-n', 'default'])).stdout).to.include('*.*')
    expect((await acme.kubectl(['auth', 'whoami'])).stdout).to.match(/Username +admin/)
  })
})
