import { expect } from 'chai'
import { apiHeaders, apiUrl, harmlessAnswer } from './api-request.ts'

describe('the URL of a request below /console/k8s', () => {
  for (const [url, only, expected] of [
    ['/console/k8s/clusters/acme/api/v1/pods?watch=1', undefined, '/clusters/acme/api/v1/pods?watch=1'],
    ['/console/k8s/clusters/*/api/v1/pods', undefined, '/clusters/*/api/v1/pods'],
    ['/console/k8s/clusters/*/api/v1/pods?x=/clusters/*/', 'acme', '/clusters/acme/api/v1/pods?x=/clusters/*/'],
    ['/console/k8s/clusters/globex/api/v1/pods', 'acme', '/clusters/globex/api/v1/pods'],
    // The stages refuse what follows: they parse the path as it is.
    ['/console/k8s/clusters/acme/../globex/api', 'acme', '/clusters/acme/../globex/api'],
    ['/console/k8s/clusters/%2a/api', 'acme', '/clusters/%2a/api'],
  ] as const)
    it(`${url} is ${expected}`, () => expect(apiUrl(url, only)).to.equal(expected))

  for (const url of [
    '/console/k8s/version',
    '/console/k8s//clusters/acme/api',
    '/console/k8s/../clusters/acme/api',
    '/console/k8s/api/v1/pods',
    '/console/k8s/apis/virtual.kcp.dev/v1alpha1/logicalclusters/acme/proxy/api',
  ])
    it(`${url} is none`, () => expect(() => apiUrl(url, undefined)).to.throw('could not find the requested resource'))
})

describe('the headers of a request below /console/k8s', () => {
  it('have no credentials, and nothing of the page', () => {
    const headers = ['Cookie', 'a=b', 'Authorization', 'Bearer x', 'Origin', 'https://a', 'Referer', 'https://a/b']
    expect(apiHeaders([...headers, 'Accept', 'application/json'], { isForwarded: false })).to.deep.equal([
      'accept',
      'application/json',
    ])
  })

  for (const name of [
    'Impersonate-User',
    'impersonate-group',
    'Impersonate-Extra-x',
    'X-Remote-User',
    'X-Kcp-Hop-Address',
  ])
    it(`may not be ${name}`, () => {
      expect(() => apiHeaders([name, 'x'], { isForwarded: false })).to.throw('the identity is that of its session')
    })
})

describe('an answer below /console/k8s', () => {
  const answer = (headers: Record<string, string>) =>
    harmlessAnswer({ kind: 'bytes', status: 200, headers, body: Buffer.from('<script>') }, undefined).headers

  for (const type of [
    'application/json',
    'application/json;stream=watch',
    'text/plain; charset=utf-8',
    'application/yaml',
    'application/vnd.kubernetes.protobuf',
  ])
    it(`may be ${type}`, () => expect(answer({ 'content-type': type })['content-type']).to.equal(type))

  for (const type of [
    'text/html',
    'TEXT/HTML',
    'image/svg+xml',
    'text/xml',
    'application/xhtml+xml',
    'text/javascript',
    'application/javascript',
    'text/css',
    'application/jsonp',
    'text/plainer',
    'multipart/x-mixed-replace',
    'application/wasm',
    '',
  ])
    it(`is bytes if it is ${JSON.stringify(type)}`, () => {
      expect(answer({ 'Content-Type': type })['content-type']).to.equal('application/octet-stream')
    })

  it('is sandboxed, is not sniffed, and is no document of this origin', () => {
    expect(answer({ 'content-type': 'text/html' })).to.include({
      'content-security-policy': "default-src 'none'; sandbox; frame-ancestors 'none'",
      'x-content-type-options': 'nosniff',
      'cross-origin-resource-policy': 'same-origin',
      'cache-control': 'no-store',
    })
  })

  it('sets nothing for the origin', () => {
    const hostile = {
      'set-cookie': '__Host-kcp-console=x',
      location: 'https://evil.example',
      link: '</x>; rel=preload',
      refresh: '0;url=https://evil.example',
      'clear-site-data': '"*"',
      'service-worker-allowed': '/',
      'access-control-allow-origin': '*',
      'content-disposition': 'inline',
      'content-security-policy': '',
      'X-Frame-Options': 'ALLOWALL',
      'strict-transport-security': 'max-age=0',
      sourcemap: '/x',
    }
    const shown = answer({ 'content-type': 'application/json', ...hostile })
    for (const name of Object.keys(hostile))
      if (name !== 'content-security-policy') expect(shown, name).not.to.have.property(name)
    expect(shown['content-security-policy']).to.include('sandbox')
    expect(shown['x-frame-options']).to.equal('DENY')
  })

  it('is kept by browsers only as far as its ETag tells its age', () => {
    expect(answer({ etag: '"a"', 'cache-control': 'public, max-age=1000' })['cache-control']).to.equal(
      'no-cache, private',
    )
  })
})
