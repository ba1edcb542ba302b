// Routes and tickets, as pure functions.
import { expect } from 'chai'
import { resourcesIn } from '#console/kube/discovery.ts'
import { matching } from '#console/model/matching.ts'
import { fragmentOf, parseRoute, type Route } from './router.ts'
import { ticketOf } from './ticket.ts'

describe('the route of a fragment', () => {
  const deployments = { group: 'apps', version: 'v1', resource: 'deployments' }
  const routes: readonly Route[] = [
    { page: 'clusters' },
    { page: 'table', cluster: '*', resource: deployments },
    { page: 'table', cluster: 'acme', resource: { group: '', version: 'v1', resource: 'pods' } },
    { page: 'object', object: { ...deployments, cluster: 'acme', namespace: 'shop', name: 'web' }, tab: 'yaml' },
    {
      page: 'object',
      object: {
        group: 'rbac.authorization.k8s.io',
        version: 'v1',
        resource: 'clusterroles',
        cluster: 'acme',
        namespace: '',
        name: 'system:node',
      },
      tab: 'overview',
    },
    { page: 'members', member: 'east' },
    { page: 'explain', cluster: 'acme' },
    { page: 'moves' },
    { page: 'usage', cluster: 'acme' },
    { page: 'audit' },
    { page: 'sleep' },
    { page: 'snapshots' },
  ]
  for (const route of routes)
    it(`${fragmentOf(route)} leads back to the same page`, () =>
      expect(parseRoute(fragmentOf(route))).to.deep.equal(route))

  for (const fragment of [
    '#/o/acme/core/v1/pods/shop/..%2f..%2fsecrets',
    '#/o/acme/core/v1/pods/shop/..',
    '#/o/../core/v1/pods/shop/a',
    '#/t/acme/apps/v1/%2e%2e',
    '#/t/a%2fb/apps/v1/deployments',
    '#/o/acme/core/v1/pods/sh%2fop/a',
    '#/t/%E0%A4%A/apps/v1/deployments',
    '#javascript:alert(1)',
    '#/nothing/acme',
  ])
    it(`${fragment} leads to the first page, and to no other path of the server`, () =>
      expect(parseRoute(fragment)).to.deep.equal({ page: 'clusters' }))
})

describe('the ticket of a link', () => {
  it('is in the fragment only', () => {
    expect(ticketOf('#ticket=abc.def-_')).to.equal('abc.def-_')
    expect(ticketOf('#/clusters')).to.equal(undefined)
    expect(ticketOf('#ticket=')).to.equal(undefined)
  })
})

describe('the palette', () => {
  const choice = (label: string, words = ''): { label: string; words: string; run: () => void } => ({
    label,
    words,
    run: () => undefined,
  })
  it('has exact words first, then beginnings, then parts', () => {
    const choices = [choice('PodTemplate', 'podtemplates'), choice('Pod', 'pods po'), choice('Repo', 'repos')]
    expect(matching(choices, 'po').map(({ label }) => label)).to.deep.equal(['Pod', 'PodTemplate', 'Repo'])
    expect(matching(choices, 'nothing')).to.deep.equal([])
  })
})

describe('discovery', () => {
  const documentOf = (name: string, version: string, resource: string): Parameters<typeof resourcesIn>[0] => ({
    items: [
      { metadata: { name }, versions: [{ version, resources: [{ resource, verbs: ['list'], scope: 'Namespaced' }] }] },
    ],
  })
  it('has the resources that can be listed', () => {
    expect(resourcesIn(documentOf('apps', 'v1', 'deployments'))).to.have.length(1)
    expect(resourcesIn(documentOf('', 'v1', 'pods'))[0]).to.include({ group: '', resource: 'pods', namespaced: true })
  })
  for (const [group, version, resource] of [
    ['../../root/api', 'v1', 'secrets'],
    ['apps', '..', 'deployments'],
    ['apps', 'v1', 'x?watch=true'],
    ['apps', 'v1', '..'],
  ] as const)
    it(`leaves out ${group}/${version}/${resource}, which would lead to another path`, () =>
      expect(resourcesIn(documentOf(group, version, resource))).to.deep.equal([]))
})
