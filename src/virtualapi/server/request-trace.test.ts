import { expect } from 'chai'
import type { UserInfo } from '#virtualapi/request/user-info.ts'
import { parseRequest } from '#virtualapi/request/parse-request.ts'
import { isPrivileged, spanName } from './request-trace.ts'

describe('the span of a request', () => {
  for (const [method, url, expected] of [
    [
      'GET',
      '/clusters/acme/api/v1/namespaces/shop/pods/web-1/log?container=a',
      'GET /api/v1/namespaces/{:namespace}/pods/{:name}/log',
    ],
    ['GET', '/clusters/acme/apis/apps/v1/deployments?watch=1', 'GET /apis/apps/v1/deployments'],
    ['PUT', '/clusters/acme/api/v1/namespaces/shop', 'PUT /api/v1/namespaces/{:name}'],
    ['GET', '/clusters/acme/openapi/v3', 'GET'],
    ['GET', '/readyz', 'GET'],
  ] as const)
    it(`of ${method} ${url} is named ${expected}`, () => {
      const info = parseRequest(method, url, { hasBearerToken: false, hasOwnToken: () => false, loopback: false })
      expect(spanName(method, info)).to.equal(expected)
    })

  it('that was not understood is named by its method', () => {
    expect(spanName('GET', undefined)).to.equal('GET')
  })

  const user = (realm: UserInfo['realm'], ...groups: string[]): UserInfo => ({ name: 'x', groups, extra: {}, realm })
  for (const { title, who, expected } of [
    {
      title: 'an administrator of the installation',
      who: user({ kind: 'installation' }, 'system:masters'),
      expected: true,
    },
    { title: 'another process of ours', who: user({ kind: 'installation' }, 'kcp:system'), expected: true },
    { title: 'an administrator of the host', who: user({ kind: 'host' }, 'host:system:masters'), expected: true },
    { title: 'a monitor of the host', who: user({ kind: 'host' }, 'host:system:monitoring'), expected: true },
    {
      title: 'an administrator of a logical cluster',
      who: user({ kind: 'cluster', id: 'a' as never }, 'system:masters', 'host:system:masters'),
      expected: false,
    },
    {
      title: 'a user of the host',
      who: user({ kind: 'host' }, 'system:masters', 'system:authenticated'),
      expected: false,
    },
    { title: 'a scraper of the installation', who: user({ kind: 'installation' }, 'kcp:metrics'), expected: false },
  ])
    it(`${expected ? 'goes' : 'does not go'} on with the trace of ${title}`, () =>
      expect(isPrivileged(who)).to.equal(expected))
})
