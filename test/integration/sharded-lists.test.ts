// shardSelector (KEP-5866): consumers that divide a collection among them, in one logical cluster and over all. The
// hash and the syntax are compared with upstream's in src/apimachinery/sharding.
import { expect } from 'chai'
import type { KubeList, KubeObject } from '#apimachinery/meta/index.ts'
import type { WatchEvent } from '#client/index.ts'
import { shardRange, type ShardField } from '#apimachinery/sharding/index.ts'
import { startInstance, type KcpInstance, type Tenant } from './kcp-instance.ts'

const shards = 3
const perTenant = 12

describe('shards of a collection', function () {
  this.timeout(60_000)
  let instance: KcpInstance
  let acme: Tenant

  before(async () => {
    instance = await startInstance()
    acme = await instance.tenant('acme')
    for (const { http, base } of [acme, await instance.tenant('bob')])
      for (let i = 0; i < perTenant; i++)
        expect((await http.request('POST', `${base}${plain}`, of(`c${i}`))).status).to.equal(201)
  })
  after(async () => {
    await instance[Symbol.asyncDispose]()
  })

  const plain = '/api/v1/namespaces/default/configmaps'
  const of = (name: string): { body: object } => ({
    body: { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, labels: { sharded: 'yes' } } },
  })
  const query = (index: number, by: ShardField = 'uid', count = shards): string =>
    `?labelSelector=sharded&shardSelector=${encodeURIComponent(shardRange(by, { index, of: count }))}`
  const list = async (path: string): Promise<KubeList> => {
    const { status, text } = await instance.admin.http.request('GET', path)
    expect(status, text).to.equal(200)
    return JSON.parse(text) as KubeList
  }
  const uids = ({ items }: KubeList): string[] => items.map(({ metadata }) => metadata.uid ?? '')
  const each = async (path: string, by?: ShardField): Promise<KubeList[]> =>
    await Promise.all(Array.from({ length: shards }, (_, index) => list(`${path}${query(index, by)}`)))

  it('have each object once, in one logical cluster and over all', async () => {
    for (const path of [`/clusters/acme${plain}`, '/clusters/*/api/v1/configmaps', '/clusters/%2A/api/v1/configmaps']) {
      const whole = await list(`${path}?labelSelector=sharded`)
      expect(whole.metadata).not.to.have.property('shardInfo')
      const parts = await each(path)
      expect(parts.flatMap(uids).sort()).to.deep.equal(uids(whole).sort())
      expect(parts.every(({ items }) => items.length < whole.items.length)).to.equal(true)
      expect(parts[1]?.metadata.shardInfo).to.deep.equal({ selector: shardRange('uid', { index: 1, of: shards }) })
    }
  })

  it('have all objects of a logical cluster together if they are divided so', async () => {
    const parts = await each('/clusters/*/api/v1/configmaps', 'logicalCluster')
    for (const { items } of parts) expect([0, perTenant, 2 * perTenant]).to.include(items.length)
    expect(parts.flatMap(uids)).to.have.length(2 * perTenant)
    const namespaced = await each('/clusters/*/api/v1/configmaps', 'namespace')
    expect(namespaced.map(({ items }) => items.length).sort()).to.deep.equal([0, 0, 2 * perTenant])
  })

  it('come in pages, which keep their selector apart', async () => {
    for (const path of [`/clusters/acme${plain}`, '/clusters/*/api/v1/configmaps']) {
      const found: string[] = []
      for (let token = ''; ;) {
        const page = await list(`${path}${query(0)}&limit=2${token}`)
        expect(page.metadata.shardInfo?.selector).to.equal(shardRange('uid', { index: 0, of: shards }))
        found.push(...uids(page))
        if (page.metadata.continue === undefined) break
        token = `&continue=${encodeURIComponent(page.metadata.continue)}`
      }
      expect(found).to.deep.equal(uids(await list(`${path}${query(0)}`)))
    }
  })

  it('say in protobuf and in tables which shard they are', async () => {
    const selector = shardRange('uid', { index: 2, of: shards })
    for (const accept of ['application/vnd.kubernetes.protobuf', 'application/json;as=Table;g=meta.k8s.io;v=v1']) {
      const { text } = await acme.http.request('GET', `/clusters/acme${plain}${query(2)}`, {
        headers: ['accept', accept],
      })
      expect(text).to.include(selector)
    }
  })

  it('are watched: no event of other shards is sent', async () => {
    const paths = [`/clusters/acme${plain}`, '/clusters/*/api/v1/configmaps']
    const { metadata } = await list(`/clusters/acme${plain}${query(0)}`)
    const names = Array.from({ length: 8 }, (_, i) => `w${i}`)
    for (const name of names) await acme.http.request('POST', `/clusters/acme${plain}`, of(name))
    for (const name of names) await acme.http.request('DELETE', `/clusters/acme${plain}/${name}`)
    const watched = `&watch=true&timeoutSeconds=1&resourceVersion=${metadata.resourceVersion ?? ''}`
    const seenBy = async (path: string, index: number): Promise<string[]> => {
      const { text } = await instance.admin.http.request('GET', `${path}${query(index)}${watched}`)
      const events = text.split('\n').filter(Boolean)
      return events.map((line) => JSON.parse(line) as WatchEvent<KubeObject>).map(textOf)
    }
    const textOf = ({ type, object }: WatchEvent<KubeObject>): string => `${type} ${object.metadata.name}`
    const expected = names.flatMap((name) => [`ADDED ${name}`, `DELETED ${name}`]).sort()
    const seen = await Promise.all(paths.map((path) => Promise.all([0, 1, 2].map((index) => seenBy(path, index)))))
    for (const parts of seen) expect(parts.flat().sort()).to.deep.equal(expected)
    expect(seen[1]).to.deep.equal(seen[0])
  })

  it('are deleted alone by deletecollection', async () => {
    const before = await each(`/clusters/acme${plain}`)
    const { status } = await acme.http.request('DELETE', `/clusters/acme${plain}${query(0)}`)
    expect(status).to.equal(200)
    const left = uids(await list(`/clusters/acme${plain}?labelSelector=sharded`)).sort()
    expect(left).to.deep.equal(before.slice(1).flatMap(uids).sort())
  })

  it('are refused with 400 where the selector is none', async () => {
    for (const wrong of ['true', "shardRange(object.metadata.uid, '0x0', '0x8')", '('.repeat(5000)])
      for (const path of [
        `/clusters/acme${plain}`,
        '/clusters/*/api/v1/configmaps',
        `/clusters/acme${plain}?watch=true`,
      ]) {
        const mark = path.includes('?') ? '&' : '?'
        const url = `${path}${mark}shardSelector=${encodeURIComponent(wrong)}`
        const { status, text } = await instance.admin.http.request('GET', url)
        expect(status, text).to.equal(400)
        expect(text).to.include('invalid shard selector')
      }
  })
})
