import { expect } from 'chai'
import { notFound, serviceUnavailable } from '#apimachinery/status/index.ts'
import { deletableResources } from './deletable-resources.ts'

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
