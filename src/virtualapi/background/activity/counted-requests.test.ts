import { expect } from 'chai'
import { clusterIdOf, type ClusterName } from '#apimachinery/meta/index.ts'
import { parseRequest } from '#virtualapi/request/parse-request.ts'
import type { SleepRules } from '#virtualapi/request/logical-cluster.ts'
import { anonymous, type UserInfo } from '#virtualapi/request/user-info.ts'
import { isCounted } from './counted-requests.ts'

const id = clusterIdOf('uid of acme')
const user = (name: string, realm: UserInfo['realm'] = { kind: 'cluster', id }, groups: string[] = []): UserInfo => ({
  ...{ name, groups, extra: {}, realm },
})
const alice = user('alice')
const maps = '/api/v1/namespaces/shop/configmaps'

const counted = (
  request: string,
  who: UserInfo = alice,
  { rules = {}, loopback = false }: { rules?: SleepRules; loopback?: boolean } = {},
): string => {
  const [method = '', path = ''] = request.split(' ')
  const info = parseRequest(method, `/clusters/${'acme' as ClusterName}${path}`, {
    ...{ hasBearerToken: false, hasOwnToken: () => false, loopback, plainCluster: undefined },
  })
  return isCounted(info, who, rules) ?? 'nothing'
}

describe('a request counts for the sleep of its logical cluster', () => {
  for (const [request, expected] of [
    [`GET ${maps}`, 'read'],
    [`GET ${maps}?watch=1`, 'read'],
    [`POST ${maps}`, 'write'],
    [`PATCH ${maps}/a`, 'write'],
    [`DELETE ${maps}`, 'write'],
    ['PATCH /apis/apps/v1/namespaces/shop/deployments/web/scale', 'write'],
    [`POST ${maps}?dryRun=All`, 'read'],
    ['POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews', 'read'],
    ['POST /api/v1/namespaces/shop/events', 'read'],
    ['PATCH /apis/coordination.k8s.io/v1/namespaces/shop/leases/a', 'read'],
    ['POST /api/v1/namespaces/shop/pods/web/exec?command=sh', 'read'],
    ['GET /version', 'nothing'],
    ['GET /apis', 'nothing'],
  ] as const)
    it(`of a person: ${request} as ${expected}`, () => {
      expect(counted(request)).to.equal(expected)
    })

  for (const { title, who, expected, rules = {} } of [
    { title: 'a user of the host', who: user('host:carol', { kind: 'host' }), expected: 'write' },
    { title: 'a user of an ancestor', who: user('cluster:corp:dave'), expected: 'write' },
    { title: 'kcp and its admin', who: user('kcp-admin', { kind: 'installation' }), expected: 'nothing' },
    { title: 'nobody', who: anonymous, expected: 'nothing' },
    { title: 'a node', who: user('system:node:n1'), expected: 'nothing' },
    {
      title: 'a controller of the host',
      who: user('host:system:kube-controller-manager', { kind: 'host' }),
      expected: 'nothing',
    },
    { title: 'a ServiceAccount', who: user('system:serviceaccount:shop:web'), expected: 'nothing' },
    {
      title: 'a ServiceAccount where these count',
      who: user('system:serviceaccount:shop:web'),
      rules: { countsAccounts: true },
      expected: 'write',
    },
    {
      title: 'a ServiceAccount of an ancestor where these count',
      who: user('cluster:corp:system:serviceaccount:ci:runner'),
      rules: { countsAccounts: true },
      expected: 'write',
    },
    {
      title: 'the system where ServiceAccounts count',
      who: user('system:kube-scheduler'),
      rules: { countsAccounts: true },
      expected: 'nothing',
    },
    { title: 'an ignored user', who: user('argocd'), rules: { ignoreUsers: ['argocd'] }, expected: 'nothing' },
    {
      title: 'a member of an ignored group',
      who: user('flux', { kind: 'cluster', id }, ['robots']),
      rules: { ignoreGroups: ['robots'] },
      expected: 'nothing',
    },
  ] as const)
    it(`of ${title}: ${expected}`, () => {
      expect(counted(`POST ${maps}`, who, { rules })).to.equal(expected)
    })

  it('not if it comes from within', () => {
    expect(counted(`POST ${maps}`, alice, { loopback: true })).to.equal('nothing')
  })
})
