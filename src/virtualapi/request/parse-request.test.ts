import { expect } from 'chai'
import { isStatusError } from '#apimachinery/status/index.ts'
import { parseRequest } from './parse-request.ts'

const parse = (method: string, url: string, hasBearerToken = false) => parseRequest(method, url, { hasBearerToken })

describe('parseRequest', () => {
  for (const { method = 'GET', url, verb, target, cluster, entryPoint = 'direct' } of [
    {
      url: '/clusters/acme/api/v1/namespaces/shop/pods/web-0/log',
      verb: 'get',
      cluster: 'acme',
      target: { namespace: 'shop', resource: 'pods', name: 'web-0', subresource: 'log' },
    },
    {
      url: '/clusters/acme/api/v1/pods?watch=true',
      verb: 'watch',
      cluster: 'acme',
      target: { namespace: '', resource: 'pods', name: '' },
    },
    { url: '/clusters/acme/api/v1/pods?watch=f', verb: 'watch', cluster: 'acme', target: { resource: 'pods' } },
    { url: '/clusters/acme/api/v1/pods??watch=1', verb: 'list', cluster: 'acme', target: { resource: 'pods' } },
    { url: 'https://a:1/clusters/acme/api/v1/pods', verb: 'list', cluster: 'acme', target: { resource: 'pods' } },
    { url: '/clusters/acme/api/v1/pods?watch=0', verb: 'list', cluster: 'acme', target: { resource: 'pods' } },
    {
      url: '/clusters/acme/api/v1/namespaces/shop',
      verb: 'get',
      cluster: 'acme',
      target: { resource: 'namespaces', name: 'shop', namespace: '' },
    },
    {
      url: '/clusters/acme/api/v1/namespaces/shop/finalize',
      method: 'PUT',
      verb: 'update',
      cluster: 'acme',
      target: { resource: 'namespaces', name: 'shop', subresource: 'finalize' },
    },
    {
      url: '/clusters/acme/api/v1/namespaces/shop/pods',
      method: 'DELETE',
      verb: 'deletecollection',
      cluster: 'acme',
      target: { resource: 'pods', namespace: 'shop' },
    },
    {
      url: '/apis/virtual.kcp.dev/v1alpha1/logicalclusters/acme/proxy/apis/apps/v1/deployments',
      verb: 'list',
      cluster: 'acme',
      entryPoint: 'aggregated',
      target: { group: 'apps', version: 'v1', resource: 'deployments' },
    },
    {
      url: '/clusters/acme/apis/a.b/v1/namespaces/shop/status/x',
      verb: 'get',
      cluster: 'acme',
      target: { group: 'a.b', namespace: 'shop', resource: 'status', name: 'x' },
    },
    { url: '/clusters/acme/api/v1/namespaces/a%3Ab', verb: 'get', cluster: 'acme', target: { name: 'a:b' } },
  ]) {
    it(`parses ${method} ${url}`, () => {
      const info = parse(method, url)
      expect(info.verb).to.equal(verb)
      expect(info.entryPoint).to.equal(entryPoint)
      expect(info.cluster).to.deep.equal({ kind: 'one', name: cluster })
      expect(info.target).to.include(target)
    })
  }

  for (const { url, code } of [
    { url: '/clusters/a/../b/api', code: 400 },
    { url: '/clusters/a/%2e%2e/b/api', code: 400 },
    { url: '/clusters/a/.%2E/b', code: 400 },
    { url: '/clusters/a/%252e%252e/b', code: 400 },
    { url: '/clusters/../api', code: 400 },
    { url: '/apis/virtual.kcp.dev/v1alpha1/logicalclusters/alice/proxy/../../bob', code: 400 },
    { url: '/clusters/a/api/v1/namespaces/x%2f..%2fy', code: 400 },
    { url: '/clusters//api/v1/pods', code: 404 },
    { url: '/clusters/a%62c/api/v1/pods', code: 404 },
    { url: '/clusters/A/api/v1/pods', code: 404 },
    { url: '/clusters/a//api/v1/pods', code: 404 },
    { url: '/apis/virtual.kcp.dev/v1alpha1/logicalclusters/acme/status', code: 404 },
    { url: '/clusters/a/%zz', code: 400 },
  ]) {
    it(`refuses ${url} with ${code}`, () => {
      try {
        parse('GET', url)
      } catch (error) {
        if (!isStatusError(error)) throw error
        expect(error.code).to.equal(code)
        return
      }
      expect.fail('nothing was thrown')
    })
  }

  it('takes %2A for *, because clients in Go write it so', () => {
    for (const star of ['*', '%2A'])
      expect(parse('GET', `/clusters/${star}/api/v1/pods`)).to.deep.include({
        cluster: { kind: 'all' },
        basePath: '/clusters/*',
      })
  })
  it('parses the view of an export, over all consumers and of one', () => {
    const all = parse('GET', '/services/apiexport/acme/widgets.example.com/clusters/%2A/api/v1/pods')
    expect(all.through).to.deep.equal({ provider: 'acme', exportName: 'widgets.example.com' })
    expect([all.cluster, all.basePath]).to.deep.equal([
      { kind: 'all' },
      '/services/apiexport/acme/widgets.example.com/clusters/*',
    ])
    const one = parse('GET', '/services/apiexport/acme/w/clusters/beta/apis')
    expect([one.cluster, one.target]).to.deep.equal([
      { kind: 'one', name: 'beta' },
      { kind: 'path', path: '/apis' },
    ])
    for (const path of [
      'acme/w',
      'acme/w/clusters',
      'acme/w/other/beta/api',
      'acme/../clusters/beta/api',
      'acme/%2e%2e/clusters/beta/api',
      'acme//clusters/beta/api',
      'ACME/w/clusters/beta/api',
      'acme/w/clusters/../api',
      'acme/w/clusters/beta/../../x',
    ])
      expect(() => parse('GET', `/services/apiexport/${path}`), path).to.throw()
  })

  it('takes a nested /clusters/ for a path inside the logical cluster', () => {
    expect(parse('GET', '/clusters/a/clusters/b/api').target).to.deep.equal({ kind: 'path', path: '/clusters/b/api' })
  })
  it('treats a request with a token and without a prefix as one for the logical cluster of the token', () => {
    expect(parse('GET', '/api/v1/pods', true)).to.include({ entryPoint: 'unprefixed', verb: 'list' })
    expect(parse('GET', '/apis/virtual.kcp.dev/v1alpha1', true).entryPoint).to.equal('direct')
    expect(parse('GET', '/healthz', true).entryPoint).to.equal('direct')
    expect(parse('GET', '/metrics', true).entryPoint).to.equal('direct')
    for (const path of ['/metrics', '/metrics/slis']) {
      const { entryPoint } = parseRequest('GET', path, { hasBearerToken: true, hasOwnToken: () => true })
      expect(entryPoint, path).to.equal('unprefixed')
    }
  })
})
