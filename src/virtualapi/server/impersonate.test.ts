import { WorkBudget } from '#apimachinery/work-budget/index.ts'
import { expect } from 'chai'
import { Buffer } from 'node:buffer'
import { clusterIdOf, type ClusterName } from '#apimachinery/meta/index.ts'
import type { UserInfo } from '#virtualapi/request/user-info.ts'
import { impersonated, wantedIdentity } from './impersonate.ts'

const id = clusterIdOf('acme')
const admin: UserInfo = { name: 'admin', groups: [], extra: {}, realm: { kind: 'cluster', id } }
const cluster = { name: 'acme' as ClusterName, id, uid: 'u', creationTimestamp: '', owners: [], deleting: false }
const authorizer = { authorize: async () => ({ allowed: true, reason: '' }) }

async function groupsOf(...headers: string[]): Promise<readonly string[] | undefined> {
  const wanted = wantedIdentity(headers)
  if (wanted === undefined) return undefined
  const { signal } = new AbortController()
  return (await impersonated(admin, wanted, cluster, { authorizer, work: new WorkBudget(), signal })).groups
}

describe('impersonation headers', () => {
  it('use the first value of a repeated header, and all groups', () => {
    const headers = [
      'Impersonate-User',
      'a',
      'impersonate-user',
      'b',
      'Impersonate-Group',
      'x',
      'Impersonate-Group',
      'y',
    ]
    expect(wantedIdentity(headers)).to.deep.include({ user: 'a', groups: ['x', 'y'] })
  })
  it('are ignored if empty or unknown', () => {
    expect(wantedIdentity(['Impersonate-User', '', 'Impersonate-Uid', '', 'Impersonate-Nonsense', 'x'])).to.equal(
      undefined,
    )
  })
  it('are refused without a user', () => {
    for (const name of ['Impersonate-Group', 'Impersonate-Uid', 'Impersonate-Extra-a'])
      expect(() => wantedIdentity([name, 'x'])).to.throw('without impersonating a user')
  })
  it('are UTF-8, with keys of extra encoded or not', () => {
    const name = Buffer.from('zoé').toString('latin1')
    const wanted = wantedIdentity([
      'Impersonate-User',
      name,
      'Impersonate-Extra-a%2fb',
      '1',
      'Impersonate-Extra-c%zz',
      '2',
    ])
    expect(wanted?.user).to.equal('zoé')
    expect({ ...wanted?.extra }).to.deep.equal({ 'a/b': ['1'], 'c%zz': ['2'] })
  })
  for (const { title, headers, groups } of [
    { title: 'a user', headers: ['a'], groups: ['system:authenticated'] },
    { title: 'nobody', headers: ['system:anonymous'], groups: ['system:unauthenticated'] },
    {
      title: 'nobody in a group',
      headers: ['system:anonymous', 'Impersonate-Group', 'x'],
      groups: ['x', 'system:unauthenticated'],
    },
    {
      title: 'a user whom nobody knows',
      headers: ['a', 'Impersonate-Group', 'system:unauthenticated'],
      groups: ['system:unauthenticated'],
    },
    {
      title: 'a ServiceAccount',
      headers: ['system:serviceaccount:n:s'],
      groups: ['system:serviceaccounts', 'system:serviceaccounts:n', 'system:authenticated'],
    },
    { title: 'half a ServiceAccount', headers: ['system:serviceaccount:n'], groups: ['system:authenticated'] },
    { title: 'more than one', headers: ['system:serviceaccount:n:s:t'], groups: ['system:authenticated'] },
  ])
    it(`give ${title} its groups`, async () => {
      expect(await groupsOf('Impersonate-User', ...headers)).to.deep.equal(groups)
    })
})
