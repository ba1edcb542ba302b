// A tenant that reaches its storage limit: refused with a reason, without effect on others, and working again after
// deletions.
import { expect } from 'chai'
import { startInstance, type KcpInstance, type Tenant } from './kcp-instance.ts'

interface Status {
  readonly kind: string
  readonly reason: string
  readonly message: string
}

describe('a logical cluster at its storage limit', function () {
  this.timeout(60_000)
  let instance: KcpInstance
  let full: Tenant
  let other: Tenant

  before(async function () {
    this.timeout(120_000)
    instance = await startInstance(['--storage-per-cluster', '1'])
    full = await instance.tenant('full')
    other = await instance.tenant('other')
  })
  after(async () => {
    await instance[Symbol.asyncDispose]()
  })

  const path = ({ base }: Tenant): string => `${base}/api/v1/namespaces/default/configmaps`
  const map = (name: string): object => ({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name, finalizers: ['example.com/held'] },
    data: { text: 'x'.repeat(100_000) },
  })
  const fill = async (tenant: Tenant): Promise<{ made: string[]; refusal: Status }> => {
    const made: string[] = []
    for (let n = 0; n < 50; n++) {
      const response = await tenant.http.request('POST', path(tenant), { body: map(`map-${n}`) })
      if (response.status !== 201) {
        expect(response.status).to.equal(403)
        return { made, refusal: JSON.parse(response.text) as Status }
      }
      made.push(`map-${n}`)
    }
    throw new Error('50 objects of 100 KB fit into a mebibyte')
  }

  it('gets an error with the numbers at the limit, and not before', async () => {
    const { made, refusal } = await fill(full)
    expect(made).to.have.length(10)
    expect(refusal).to.include({ kind: 'Status', reason: 'Forbidden' })
    expect(refusal.message).to.match(
      /^configmaps "map-10" is forbidden: exceeded quota: storage of this logical cluster, requested: bytes=\d+, used: bytes=\d+, limited: bytes=1048576$/,
    )
  })

  it('serves reads, and accepts smaller objects, deletion timestamps and deletions', async () => {
    const { status, text } = await full.http.request('GET', path(full))
    expect(status).to.equal(200)
    expect((JSON.parse(text) as { items: unknown[] }).items.length).to.be.at.least(10)
    await full.kubectl(['patch', 'configmap', 'map-0', '-p', '{"data":{"text":"short"}}'])
    await full.kubectl(['delete', 'configmap', 'map-1', '--wait=false'])
    await full.kubectl([
      'patch',
      'configmap',
      'map-1',
      '--type=json',
      '-p',
      '[{"op":"remove","path":"/metadata/finalizers"}]',
    ])
    await full.kubectl(['wait', '--for=delete', 'configmap/map-1', '--timeout=10s'])
    const again = await full.http.request('POST', path(full), { body: map('map-10') })
    expect(again.status).to.equal(201)
  })

  it('cannot be grown by updates either', async () => {
    const responses: number[] = []
    for (let n = 2; n < 10; n++) {
      const options = {
        body: { data: { text: 'y'.repeat(1_000_000) } },
        headers: ['Content-Type', 'application/merge-patch+json'],
      }
      responses.push((await full.http.request('PATCH', `${path(full)}/map-${n}`, options)).status)
    }
    expect(new Set(responses)).to.deep.equal(new Set([403]))
  })

  it('affects neither another tenant nor the installation', async () => {
    expect((await fill(other)).made).to.have.length(10)
    await instance.tenant('third')
  })

  it('is still at its limit after a restart', async () => {
    const statusOf = async (name: string): Promise<number> =>
      (await full.http.request('POST', path(full), { body: map(name) })).status
    expect(await statusOf('last')).to.equal(201)
    expect(await statusOf('one-more')).to.equal(403)
    await instance.process.kill()
    await instance.process.start()
    expect(await statusOf('one-more')).to.equal(403)
    await full.kubectl(['patch', 'configmap', 'last', '-p', '{"data":{"text":"short"}}'])
    expect(await statusOf('one-more')).to.equal(201)
  })
})
