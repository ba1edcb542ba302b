import { expect } from 'chai'
import { isStatusError } from '#apimachinery/status/index.ts'
import { ClusterCatalog } from '#virtualapi/catalog/cluster-catalog.ts'
import type { ResourceInfo } from '#virtualapi/kinds/resources/resource-info.ts'
import { parseRequest } from '#virtualapi/request/parse-request.ts'
import { groupNotServed, requirePath } from './served-path.ts'

const catalog = new ClusterCatalog()

/** `served`, or the code of the error; `page` for the 404 that is text. */
function outcome(method: string, path: string, custom?: Pick<ResourceInfo, 'namespaced'>): string {
  const request = parseRequest(method, `/clusters/a${path}`, { hasBearerToken: false })
  if (request.target.kind !== 'resource') throw new Error(`${path} names no resource`)
  const { target } = request
  const builtIn = catalog.findBuiltIn({ group: 'apps', version: 'v1', resource: 'deployments' })?.info
  const info =
    custom === undefined || builtIn === undefined
      ? catalog.findBuiltIn(target)?.info
      : { ...builtIn, ...custom, builtIn: false }
  if (info === undefined) throw new Error(`${path} is not built in`)
  try {
    requirePath(info, target, request)
    return 'served'
  } catch (error) {
    return described(error)
  }
}

function described(error: unknown): string {
  if (!isStatusError(error)) throw error
  return error.text === undefined ? String(error.code) : 'page'
}

describe('a path of a built-in resource', () => {
  for (const [method, path, expected] of [
    ['GET', '/api/v1/pods', 'served'],
    ['POST', '/api/v1/pods', '405'],
    ['DELETE', '/api/v1/pods', '405'],
    ['GET', '/api/v1/pods/web', '404'],
    ['GET', '/api/v1/namespaces/shop/pods', 'served'],
    ['POST', '/api/v1/namespaces/shop/pods', 'served'],
    ['DELETE', '/api/v1/namespaces/shop/pods', 'served'],
    ['PUT', '/api/v1/namespaces/shop/pods', '405'],
    ['GET', '/api/v1/namespaces/shop/pods/web', 'served'],
    ['PATCH', '/api/v1/namespaces/shop/pods/web', 'served'],
    ['POST', '/api/v1/namespaces/shop/pods/web', '405'],
    ['POST', '/api/v1/namespaces/shop/pods/web/eviction', 'served'],
    ['GET', '/api/v1/namespaces/shop/pods/web/eviction', '405'],
    ['GET', '/api/v1/namespaces/shop/pods/web/nonsense', '404'],
    ['GET', '/api/v1/nodes/n', 'served'],
    ['GET', '/api/v1/namespaces/shop/nodes', '404'],
  ] as const)
    it(`answers ${method} ${path} with ${expected}`, () => expect(outcome(method, path)).to.equal(expected))
})

describe('a path of a custom resource', () => {
  for (const [method, path, namespaced, expected] of [
    ['GET', '/apis/a.b/v1/widgets', true, 'served'],
    ['POST', '/apis/a.b/v1/widgets', true, 'page'],
    ['POST', '/apis/a.b/v1/namespaces/shop/widgets', true, 'served'],
    ['POST', '/apis/a.b/v1/widgets', false, 'served'],
    ['GET', '/apis/a.b/v1/namespaces/shop/widgets', false, 'page'],
  ] as const)
    it(`${namespaced ? 'in a namespace' : 'of a cluster'} answers ${method} ${path} with ${expected}`, () => {
      expect(outcome(method, path, { namespaced })).to.equal(expected)
    })
})

describe('a group that is not served', () => {
  it('is a Status if it is built in, and text otherwise', () => {
    expect(described(groupNotServed('apps'))).to.equal('404')
    expect(described(groupNotServed('a.b'))).to.equal('page')
  })
})
