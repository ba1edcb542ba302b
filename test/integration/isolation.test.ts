import { expect } from 'chai'
import { at } from './json.ts'
import { startInstance, type KcpInstance, type Tenant } from './kcp-instance.ts'
import { openRawClient, type RawClient } from './raw-client.ts'

describe('between logical clusters', () => {
  let kcp: KcpInstance
  let acme: Tenant
  let bob: Tenant
  let nobody: RawClient
  const secrets = (tenant: string): string => `/clusters/${tenant}/api/v1/namespaces/default/secrets`

  before(async () => {
    kcp = await startInstance()
    acme = await kcp.tenant('acme')
    bob = await kcp.tenant('bob')
    nobody = openRawClient({ port: kcp.port })
    for (const { http, name } of [acme, bob]) {
      const body = { metadata: { name: 'mine' }, stringData: { of: `${name}-treasure` } }
      expect((await http.request('POST', secrets(name), { body })).status).to.equal(201)
    }
  })
  after(async () => {
    await nobody[Symbol.asyncDispose]()
    await kcp[Symbol.asyncDispose]()
  })

  /** Expects a refusal that reveals neither the Secret's content nor whether it exists. */
  async function expectRefused(
    client: RawClient,
    method: string,
    path: string,
    options: object = {},
    codes = [401, 403],
  ) {
    const response = await client.request(method, path, options)
    expect(response.status, `${method} ${path}: ${response.text}`).to.be.oneOf(codes)
    expect(response.text).not.to.match(/treasure|items/)
    expect(response.json()).to.deep.include({ kind: 'Status', status: 'Failure', code: response.status })
    return response
  }

  it('objects of the same name are distinct, with different uids', async () => {
    const seen = new Map<unknown, string>()
    for (const { http, name, base } of [acme, bob, kcp.admin])
      for (const resource of ['namespaces', 'secrets', 'services', 'serviceaccounts', 'configmaps']) {
        const { items } = (await http.request('GET', `${base}/api/v1/${resource}`)).json() as { items: object[] }
        for (const item of items) {
          const uid = at(item, 'metadata.uid')
          expect(seen.get(uid), `uid ${String(uid)} of ${name} ${resource}`).to.equal(undefined)
          seen.set(uid, `${name} ${resource}`)
        }
      }
    expect(seen.size).to.be.greaterThan(12)
    const mine = await acme.kubectl(['get', 'secret', 'mine', '-o', 'jsonpath={.data.of}'])
    expect(Buffer.from(mine.stdout, 'base64').toString()).to.equal('acme-treasure')
  })

  it('the kubeconfig of one is refused on the paths of another, of root, and of all', async () => {
    for (const path of [
      secrets('bob'),
      `${secrets('bob')}/mine`,
      '/clusters/bob/api',
      '/clusters/bob/openapi/v3',
      '/clusters/root/apis/kcp.dev/v1alpha1/logicalclusters',
      '/clusters/root/apis/kcp.dev/v1alpha1/logicalclusters/acme',
      '/clusters/*/api/v1/secrets',
      '/clusters/*/api/v1/secrets?watch=true',
      '/clusters/*/apis/apps/v1/deployments',
      '/clusters/bob/metrics',
    ])
      await expectRefused(acme.http, 'GET', path)
    await expectRefused(acme.http, 'POST', secrets('bob'), { body: { metadata: { name: 'planted' } } })
    await expectRefused(acme.http, 'DELETE', `${secrets('bob')}/mine`)
    await expectRefused(acme.http, 'PATCH', '/clusters/root/apis/kcp.dev/v1alpha1/logicalclusters/acme', {
      body: '{"spec":{"owners":[]}}',
      headers: ['Content-Type', 'application/merge-patch+json'],
    })
    expect((await bob.http.request('GET', `${secrets('bob')}/mine`)).status).to.equal(200)
  })

  it('an existing and a missing logical cluster give a tenant the same answer', async () => {
    const there = await expectRefused(acme.http, 'GET', secrets('bob'))
    const notThere = await expectRefused(acme.http, 'GET', secrets('bub'))
    expect(notThere.status).to.equal(there.status)
    expect(notThere.text.replaceAll('bub', 'bob')).to.equal(there.text)
    await expectRefused(nobody, 'GET', secrets('bob'))
    await expectRefused(nobody, 'GET', secrets('bub'))
    const known = await kcp.admin.http.request('GET', secrets('bub'))
    expect(known.status, known.text).to.equal(404)
  })

  describe('identity headers on the direct listener', () => {
    const forged = [
      ['X-Remote-User', 'kcp-admin', 'X-Remote-Group', 'system:masters'],
      ['x-remote-user', 'admin', 'x-remote-group', 'system:masters', 'X-Remote-Extra-Realm', 'installation'],
      ['X-Remote-User', 'alice', 'X-Remote-Group', 'dev, system:masters'],
      ['X-Remote-Uid', '0', 'X-Remote-User', 'system:kcp', 'X-Remote-Group', 'kcp:system'],
      ['X_Remote_User', 'admin', 'X_Remote_Group', 'system:masters'],
      ['X-Forwarded-User', 'admin', 'X-Forwarded-Client-Cert', 'Subject="O=system:masters"'],
    ]
    for (const headers of forged)
      it(`are ignored: ${headers.join(' ')}`, async () => {
        for (const path of [
          secrets('acme'),
          secrets('root'),
          '/clusters/*/api/v1/secrets',
          '/apis/virtual.kcp.dev/v1alpha1/logicalclusters/acme/proxy/api/v1/secrets',
        ])
          await expectRefused(nobody, 'GET', path, { headers }, [401, 403])
        await expectRefused(bob.http, 'GET', secrets('acme'), { headers })
        // They neither extend nor restrict the identity of the certificate.
        const self = await acme.http.request(
          'POST',
          '/clusters/acme/apis/authentication.k8s.io/v1/selfsubjectreviews',
          { body: {}, headers },
        )
        expect(at(self.json(), 'status.userInfo.username')).to.equal('admin')
        expect(at(self.json(), 'status.userInfo.groups')).to.deep.equal(['system:masters', 'system:authenticated'])
      })
  })

  describe('impersonation', () => {
    const as = (...headers: string[]) => ({ headers })
    it("can reduce an admin's rights, but never reaches another logical cluster", async () => {
      const eve = as('Impersonate-User', 'eve')
      await expectRefused(acme.http, 'GET', secrets('acme'), eve, [403])
      await expectRefused(
        acme.http,
        'GET',
        secrets('bob'),
        as('Impersonate-User', 'admin', 'Impersonate-Group', 'system:masters'),
      )
      await expectRefused(
        acme.http,
        'GET',
        secrets('root'),
        as('Impersonate-User', 'kcp-admin', 'Impersonate-Group', 'system:masters'),
      )
      await expectRefused(
        nobody,
        'GET',
        secrets('acme'),
        as('Impersonate-User', 'admin', 'Impersonate-Group', 'system:masters'),
      )
      await expectRefused(
        acme.http,
        'GET',
        '/clusters/*/api/v1/secrets',
        as('Impersonate-Group', 'kcp:wildcard-readers'),
        [400, 401, 403],
      )
    })
  })

  describe('paths that try to leave the logical cluster', () => {
    for (const path of [
      '/clusters/acme/../bob/api/v1/secrets',
      '/clusters/acme/./../bob/api/v1/secrets',
      '/clusters/acme/%2e%2e/bob/api/v1/secrets',
      '/clusters/acme/%2E./bob/api/v1/secrets',
      '/clusters/acme/.%2e/bob/api/v1/secrets',
      '/clusters/acme/%252e%252e/bob/api/v1/secrets',
      '/clusters/acme/..%2fbob/api/v1/secrets',
      '/clusters/acme/..%5cbob/api/v1/secrets',
      '/clusters/acme/..\\bob/api/v1/secrets',
      '/clusters/acme/api/v1/namespaces/../../../../bob/api/v1/secrets',
      '/clusters/acme/api/v1/namespaces/default/secrets/../../../../../../bob/api/v1/secrets',
      '/clusters/acme/clusters/bob/api/v1/secrets',
      '/clusters/acme/clusters/*/api/v1/secrets',
      '/clusters/acme//clusters/bob/api/v1/secrets',
      '//clusters/bob/api/v1/secrets',
      '/clusters//bob/api/v1/secrets',
      '/clusters/bob%2fapi/v1/secrets',
      '/clusters/acme%00/api/v1/secrets',
      '/clusters/acme,bob/api/v1/secrets',
      '/clusters/bo%62/api/v1/secrets',
      '/clusters/%2a/api/v1/secrets',
      '/clusters/**/api/v1/secrets',
      '/CLUSTERS/bob/api/v1/secrets',
      '/clusters/BOB/api/v1/secrets',
      '/clusters',
      '/clusters/',
      '/services/syncer/bob',
      '/apis/virtual.kcp.dev/v1alpha1/logicalclusters/acme/proxy/../../bob/proxy/api/v1/secrets',
      '/apis/virtual.kcp.dev/v1alpha1/logicalclusters/acme/proxy/%2e%2e/%2e%2e/bob/proxy/api/v1/secrets',
    ])
      it(path, async () => {
        const response = await acme.http.request('GET', path)
        expect(response.status, response.text).to.be.oneOf([400, 401, 403, 404])
        expect(response.text).not.to.match(/treasure|items|"uid"/)
        expect(response.headers.location).to.equal(undefined)
        // The installation's admin may read everything, so for this user the path must be invalid, not lead to an
        // object.
        const admin = await kcp.admin.http.request('GET', path)
        expect(admin.status, admin.text).to.be.oneOf([400, 404])
      })
  })

  describe('an unauthenticated client', () => {
    for (const path of [
      '/livez',
      '/readyz',
      '/healthz',
      '/version',
      '/clusters/acme/version',
      '/clusters/acme/livez',
      '/readyz?verbose',
    ])
      it(`may ask for ${path}`, async () => expect((await nobody.request('GET', path)).status).to.equal(200))
    for (const path of [
      '/',
      '/api',
      '/apis',
      '/metrics',
      '/openapi/v3',
      '/clusters/acme',
      '/clusters/acme/api',
      '/clusters/acme/apis',
      '/clusters/acme/openapi/v3',
      '/clusters/acme/metrics',
      '/debug/pprof',
    ])
      it(`may not ask for ${path}`, () => expectRefused(nobody, 'GET', path, {}, [401, 403, 404]).then(() => undefined))
    it('gets 401 for an invalid token', async () => {
      for (const token of [
        'Bearer x',
        'Bearer a.b.c',
        `Bearer ${'x'.repeat(8000)}`,
        'Bearer eyJhbGciOiJub25lIn0.eyJzdWIiOiJhZG1pbiJ9.',
      ])
        await expectRefused(nobody, 'GET', secrets('acme'), { headers: ['Authorization', token] }, [401])
    })
  })

  describe('over all logical clusters', () => {
    it('the installation can read, and every object names its logical cluster', async () => {
      const { items } = (
        await kcp.admin.http.request('GET', '/clusters/*/api/v1/secrets?fieldSelector=metadata.name%3Dmine')
      ).json() as { items: object[] }
      const owners = items.map(
        (item) =>
          at(at(item, 'metadata.annotations'), 'kcp') ??
          (at(item, 'metadata.annotations') as Record<string, string>)['kcp.dev/logical-cluster'],
      )
      expect(owners.sort()).to.deep.equal(['acme', 'bob'])
      // The annotation is not visible inside the logical cluster.
      expect((await acme.http.request('GET', `${secrets('acme')}/mine`)).text).not.to.include('logical-cluster')
    })

    it('nobody can write', async () => {
      for (const [method, path] of [
        ['POST', '/clusters/*/api/v1/namespaces/default/secrets'],
        ['PUT', '/clusters/*/api/v1/namespaces/default/secrets/mine'],
        ['PATCH', '/clusters/*/api/v1/namespaces/default/secrets/mine'],
        ['DELETE', '/clusters/*/api/v1/namespaces/default/secrets/mine'],
        ['DELETE', '/clusters/*/api/v1/namespaces/default/secrets'],
      ] as const) {
        const response = await kcp.admin.http.request(method, path, { body: { metadata: { name: 'mine' } } })
        expect(response.status, `${method} ${path}`).to.be.oneOf([403, 405])
      }
      for (const { http, name } of [acme, bob])
        expect((await http.request('GET', `${secrets(name)}/mine`)).status).to.equal(200)
    })

    it('a watch of one gets nothing of another, and a watch of all gets the events of both once', async () => {
      await using own = await acme.http.watch(`${secrets('acme')}?watch=true&labelSelector=cross&timeoutSeconds=2`)
      await using all = await kcp.admin.http.watch(
        '/clusters/*/api/v1/secrets?watch=true&labelSelector=cross&timeoutSeconds=2',
      )
      for (const { http, name } of [bob, acme, bob])
        await http.request('POST', secrets(name), {
          body: { metadata: { generateName: `of-${name}-`, labels: { cross: 'yes' } } },
        })
      const names = (events: { object: { metadata: { name?: string } } }[]) =>
        events.map(({ object }) => object.metadata.name?.slice(0, -6))
      expect(names(await own.rest())).to.deep.equal(['of-acme'])
      expect(names(await all.rest())).to.deep.equal(['of-bob', 'of-acme', 'of-bob'])
    })

    it('a continue token of one returns nothing of another', async () => {
      const first = await acme.http.request('GET', `${secrets('acme')}?limit=1`)
      const token = at(first.json(), 'metadata.continue')
      expect(token).to.be.a('string')
      const response = await bob.http.request(
        'GET',
        `${secrets('bob')}?limit=500&continue=${encodeURIComponent(String(token))}`,
      )
      expect(response.text).not.to.match(/of-acme|acme-treasure/)
    })
  })

  it('a deleted and recreated logical cluster is new: old kubeconfigs are refused and nothing is left', async () => {
    const shortLived = await kcp.tenant('short')
    expect(
      (await shortLived.http.request('POST', secrets('short'), { body: { metadata: { name: 'old' } } })).status,
    ).to.equal(201)
    await kcp.admin.kubectl(['delete', 'lc', 'short', '--timeout=20s'])
    await expectRefused(shortLived.http, 'GET', secrets('short'))
    const again = await kcp.tenant('short')
    await expectRefused(shortLived.http, 'GET', secrets('short'))
    expect((await again.http.request('GET', `${secrets('short')}/old`)).status).to.equal(404)
  })
})
