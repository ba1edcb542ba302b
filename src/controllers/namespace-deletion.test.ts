import { expect } from 'chai'
import { notFound, serviceUnavailable } from '#apimachinery/status/index.ts'
import { deletableResources, namespaceConditions, type Remaining } from './namespace-deletion.ts'

describe('the resources that a namespace can contain', () => {
  const { signal } = new AbortController()
  const verbs = ['list', 'delete']
  const answers: Record<string, unknown> = {
    '/apis': {
      groups: [
        { name: 'apps', preferredVersion: { groupVersion: 'apps/v1' } },
        { name: 'gone.example.com', preferredVersion: { groupVersion: 'gone.example.com/v1' } },
        { name: 'down.example.com', preferredVersion: { groupVersion: 'down.example.com/v1' } },
        { name: 'empty.example.com' },
      ],
    },
    '/api/v1': {
      resources: [
        { name: 'pods', namespaced: true, verbs },
        { name: 'pods/status', namespaced: true, verbs },
        { name: 'nodes', namespaced: false, verbs },
        { name: 'bindings', namespaced: true, verbs: ['create'] },
        { name: 'unlisted', namespaced: true },
      ],
    },
    '/apis/apps/v1': { resources: [{ name: 'deployments', namespaced: true, verbs }] },
    '/apis/gone.example.com/v1': notFound({ group: 'gone.example.com', resource: 'things' }, ''),
    '/apis/down.example.com/v1': serviceUnavailable('the server is down'),
  }
  const raw = async (path: string): Promise<unknown> => {
    const answer = answers[path]
    if (answer instanceof Error) throw answer
    return answer
  }

  it('are namespaced, can be listed and deleted, and are no subresources', async () => {
    const { resources } = await deletableResources({ raw }, signal)
    expect(resources).to.deep.equal([
      { group: '', version: 'v1', resource: 'pods' },
      { group: 'apps', version: 'v1', resource: 'deployments' },
    ])
  })

  it('leave out a group that is no longer served, and report one that does not answer', async () => {
    const { failures } = await deletableResources({ raw }, signal)
    expect(failures).to.deep.equal(['down.example.com/v1: the server is down'])
  })
})

describe('conditions of a namespace that is being deleted', () => {
  const [before, now] = ['2026-01-01T00:00:00Z', '2026-01-01T00:01:00Z']
  const remaining = (more: Partial<Remaining> = {}): Remaining => ({
    byResource: new Map(),
    byFinalizer: new Map(),
    byMember: new Map(),
    discoveryFailures: [],
    deletionFailures: [],
    ...more,
  })
  const messageOf = (given: Remaining, type: string): string => {
    const condition = namespaceConditions(given, [], now).find((one) => one.type === type)
    return `${condition?.status ?? ''} ${condition?.reason ?? ''}: ${condition?.message ?? ''}`
  }

  it('are all False when nothing is left', () => {
    const conditions = namespaceConditions(remaining(), [], now)
    expect(conditions.map(({ type, status }) => `${type} ${status}`)).to.deep.equal([
      'NamespaceDeletionDiscoveryFailure False',
      'NamespaceDeletionGroupVersionParsingFailure False',
      'NamespaceDeletionContentFailure False',
      'NamespaceContentRemaining False',
      'NamespaceFinalizersRemaining False',
    ])
  })

  for (const { type, given, message } of [
    {
      type: 'NamespaceContentRemaining',
      given: remaining({
        byResource: new Map([
          ['pods', 2],
          ['deployments.apps', 1],
        ]),
      }),
      message:
        'True SomeResourcesRemain: Some resources are remaining: deployments.apps has 1 resource instances, pods. has 2 resource instances',
    },
    {
      type: 'NamespaceContentRemaining',
      given: remaining({ byResource: new Map([['pods', 3]]), byMember: new Map(Object.entries({ west: 1, east: 2 })) }),
      message:
        'True SomeResourcesRemain: Some resources are remaining: pods. has 3 resource instances; member clusters must end them or confirm that they are gone: "east" (2), "west" (1)',
    },
    {
      type: 'NamespaceFinalizersRemaining',
      given: remaining({ byFinalizer: new Map([['example.com/x', 3]]) }),
      message:
        'True SomeFinalizersRemain: Some content in the namespace has finalizers remaining: example.com/x in 3 resource instances',
    },
    {
      type: 'NamespaceDeletionDiscoveryFailure',
      given: remaining({ discoveryFailures: ['a/v1: no', 'b/v1: no'] }),
      message: 'True DiscoveryFailed: Discovery failed for some groups, 2 failing: a/v1: no; b/v1: no',
    },
    {
      type: 'NamespaceDeletionContentFailure',
      given: remaining({ deletionFailures: ['pods: no'] }),
      message: 'True ContentDeletionFailed: Failed to delete all resource types, 1 remaining: pods: no',
    },
  ]) {
    it(`have upstream's message in ${type}${given.byMember.size > 0 ? ', and name members' : ''}`, () =>
      expect(messageOf(given, type)).to.equal(message))
  }

  it('keep lastTransitionTime while their status stays, and all of a condition that did not change', () => {
    const first = namespaceConditions(remaining({ byResource: new Map([['pods', 2]]) }), [], before)
    const second = namespaceConditions(remaining({ byResource: new Map([['pods', 1]]) }), first, now)
    const third = namespaceConditions(remaining(), second, now)
    const timeOf = (conditions: typeof first): string | undefined =>
      conditions.find(({ type }) => type === 'NamespaceContentRemaining')?.lastTransitionTime
    expect([first, second, third].map(timeOf)).to.deep.equal([before, before, now])
    expect(second[0]).to.equal(first[0])
  })
})
