// Tokens of ServiceAccounts with kubectl and HTTP against `kcp start`.
import { expect } from 'chai'
import { createRemoteJWKSet, customFetch, decodeJwt, jwtVerify } from 'jose'
import { at } from './json.ts'
import { startInstance, type KcpInstance, type Tenant } from './kcp-instance.ts'
import { waitFor } from '#test/support/index.ts'
import { openRawClient, type RawClient, type RawResponse } from './raw-client.ts'

describe('tokens of ServiceAccounts', () => {
  let kcp: KcpInstance
  let acme: Tenant
  let bob: Tenant
  let stranger: RawClient

  before(async () => {
    kcp = await startInstance()
    acme = await kcp.tenant('acme')
    bob = await kcp.tenant('bob')
    stranger = openRawClient({ port: kcp.port })
    for (const { kubectl } of [acme, bob]) {
      await kubectl(['create', 'serviceaccount', 'robot'])
      await kubectl(['create', 'rolebinding', 'robot', '--clusterrole=view', '--serviceaccount=default:robot'])
    }
  })
  after(async () => {
    await stranger[Symbol.asyncDispose]()
    await kcp[Symbol.asyncDispose]()
  })

  const tokenOf = async ({ kubectl }: Tenant, ...args: string[]): Promise<string> =>
    (await kubectl(['create', 'token', 'robot', ...args])).stdout.trim()
  const asToken = (token: string, path: string): Promise<RawResponse> =>
    stranger.request('GET', path, { headers: ['Authorization', `Bearer ${token}`] })
  const configMaps = '/api/v1/namespaces/default/configmaps'

  it('give the rights that RBAC gives the ServiceAccount, and no more', async () => {
    const token = await tokenOf(acme)
    expect((await asToken(token, `${acme.base}${configMaps}`)).status).to.equal(200)
    expect((await asToken(token, `${acme.base}/api/v1/namespaces/default/secrets`)).status).to.equal(403)
    expect((await asToken(token, configMaps)).status, 'without a path').to.equal(200)
  })

  it('lead to the metrics of their logical cluster without a path, for those who may read them', async () => {
    await acme.kubectl(['create', 'clusterrole', 'scraper', '--verb=get', '--non-resource-url=/metrics'])
    await acme.kubectl([
      'create',
      'clusterrolebinding',
      'scraper',
      '--clusterrole=scraper',
      '--serviceaccount=default:robot',
    ])
    const { status, text } = await asToken(await tokenOf(acme), '/metrics')
    expect(status, text).to.equal(200)
    expect(text).to.contain('apiserver_storage_objects').and.not.contain('kcp_objects')
    expect((await asToken(await tokenOf(bob), '/metrics')).status).to.equal(403)
  })

  it('are refused in another logical cluster, in a missing one, and over all', async () => {
    const token = await tokenOf(acme)
    for (const base of [bob.base, '/clusters/root', '/clusters/missing', '/clusters/*'])
      expect((await asToken(token, base + configMaps)).status, base).to.equal(401)
  })

  it('for another audience do not authenticate, and pass a TokenReview for that audience', async () => {
    const token = await tokenOf(acme, '--audience', 'vault')
    expect((await asToken(token, acme.base + configMaps)).status).to.equal(401)
    const review = async (tenant: Tenant, audiences?: string[]): Promise<object> => {
      const body = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenReview', spec: { token, audiences } }
      return (
        await tenant.http.request('POST', `${tenant.base}/apis/authentication.k8s.io/v1/tokenreviews`, { body })
      ).json()
    }
    const response = await review(acme, ['vault', 'other'])
    expect(at(response, 'status.authenticated')).to.equal(true)
    expect(at(response, 'status.audiences')).to.deep.equal(['vault'])
    expect(at(response, 'status.user.username')).to.equal('system:serviceaccount:default:robot')
    expect(at(await review(acme), 'status.authenticated')).to.not.equal(true)
    expect(at(await review(bob, ['vault']), 'status.authenticated')).to.not.equal(true)
  })

  it('end at once with the object they are bound to', async () => {
    await acme.kubectl(['create', 'secret', 'generic', 'bound'])
    const token = await tokenOf(acme, '--bound-object-kind', 'Secret', '--bound-object-name', 'bound')
    expect((await asToken(token, acme.base + configMaps)).status).to.equal(200)
    await acme.kubectl(['delete', 'secret', 'bound'])
    expect((await asToken(token, acme.base + configMaps)).status).to.equal(401)
  })

  it('end with the ServiceAccount, also when it is created again', async () => {
    await bob.kubectl(['create', 'serviceaccount', 'short'])
    const token = (await bob.kubectl(['create', 'token', 'short'])).stdout.trim()
    expect((await asToken(token, `${bob.base}/api`)).status).to.equal(200)
    await bob.kubectl(['delete', 'serviceaccount', 'short'])
    expect((await asToken(token, `${bob.base}/api`)).status).to.equal(401)
    await bob.kubectl(['create', 'serviceaccount', 'short'])
    expect((await asToken(token, `${bob.base}/api`)).status).to.equal(401)
  })

  it('are written into Secrets of their type, which are deleted with the ServiceAccount', async () => {
    await acme.kubectl(['create', 'serviceaccount', 'old'])
    await acme.kubectl(['create', '-f', '-'], {
      input: {
        apiVersion: 'v1',
        kind: 'Secret',
        metadata: { name: 'old-token', annotations: { 'kubernetes.io/service-account.name': 'old' } },
        type: 'kubernetes.io/service-account-token',
      },
    })
    const path = `${acme.base}/api/v1/namespaces/default/secrets/old-token`
    const data = await waitFor(
      async () => (await acme.http.request('GET', path)).json()['data'] as Record<string, string> | undefined,
      { what: 'the Secret to be filled', deadlineMs: 10_000 },
    )
    const text = (key: string): string => Buffer.from(data[key] ?? '', 'base64').toString()
    expect(text('namespace')).to.equal('default')
    expect(text('ca.crt')).to.include('BEGIN CERTIFICATE')
    expect((await asToken(text('token'), `${acme.base}/api`)).status).to.equal(200)
    await acme.kubectl(['delete', 'serviceaccount', 'old'])
    expect((await asToken(text('token'), `${acme.base}/api`)).status).to.equal(401)
    await waitFor(async () => (await acme.http.request('GET', path)).status === 404, {
      what: 'the Secret to go',
      deadlineMs: 10_000,
    })
  })

  for (const { title, args, message } of [
    {
      title: 'a lifetime that is too short',
      args: ['--duration=599s'],
      message: 'may not specify a duration less than 10 minutes',
    },
    {
      title: 'a bound object that does not exist',
      args: ['--bound-object-kind=Secret', '--bound-object-name=none'],
      message: 'secrets "none" not found',
    },
    {
      title: 'a bound object with another uid',
      args: ['--bound-object-kind=Secret', '--bound-object-name=kept', '--bound-object-uid=wrong'],
      message: 'the UID in the bound object reference (wrong) does not match the UID in record',
    },
  ])
    it(`are not given for ${title}`, async () => {
      await acme.kubectl(['create', 'secret', 'generic', 'kept'], { expectCode: 'any' })
      const { stderr } = await acme.kubectl(['create', 'token', 'robot', ...args], { expectCode: 1 })
      expect(stderr).to.include(message)
    })

  it('can be verified with the discovery documents', async () => {
    const token = await tokenOf(acme)
    const document = (await asToken(token, `${acme.base}/.well-known/openid-configuration`)).json()
    expect(document['issuer']).to.equal(decodeJwt(token).iss)
    const url = new URL(String(document['jwks_uri']))
    expect(url.pathname).to.equal(`${acme.base}/openid/v1/jwks`)
    const keys = createRemoteJWKSet(url, {
      [customFetch]: async () => {
        const { text, status } = await asToken(token, url.pathname)
        return new Response(text, { status })
      },
    })
    const { payload } = await jwtVerify(token, keys, { issuer: String(document['issuer']) })
    expect(payload.sub).to.equal('system:serviceaccount:default:robot')
    expect((await stranger.request('GET', url.pathname)).status).to.equal(403)
  })
})
