import { expect } from 'chai'
import type { PlacedCopy } from '#crds/index.ts'
import { takesRequests, withdrawnPods, type SharePod } from './takes-requests.ts'

describe('pods that take requests', () => {
  const ending = { ordinal: 1, since: '2026-01-01T00:00:00.000Z' }
  for (const { title, kind = 'StatefulSet', copy, taking } of [
    { title: 'are all of a copy that serves', copy: { state: 'Serving' }, taking: [0, 1, 2] },
    { title: 'are none of a copy that drains', copy: { state: 'Draining' }, taking: [] },
    { title: 'are not those that end next', copy: { state: 'Serving', ending }, taking: [0, 2] },
    { title: 'are those of its range', copy: { state: 'Serving', start: 1, replicas: 2 }, taking: [1, 2] },
    {
      title: 'are those of its range, except the one that ends next',
      copy: { state: 'Serving', start: 0, replicas: 2, ending },
      taking: [0],
    },
    {
      title: 'are all of a Deployment, whose pods have no ordinals',
      kind: 'Deployment',
      copy: { state: 'Serving', start: 1, replicas: 1 },
      taking: [0, 1, 2],
    },
  ] as { title: string; kind?: string; copy: PlacedCopy; taking: number[] }[])
    it(title, () => expect([0, 1, 2].filter((i) => takesRequests(kind, copy, `db-${i}`))).to.deep.equal(taking))
})

describe('the pods that take no requests while a share shrinks', () => {
  const pod = (name: string, { isReady = true, takesRequests: takes = true } = {}): SharePod => ({
    name,
    isReady,
    takesRequests: takes,
  })
  for (const { title, pods, withdrawn } of [
    { title: 'are as many as will end', pods: [pod('c'), pod('a'), pod('d'), pod('b')], withdrawn: ['c', 'd'] },
    {
      title: 'include those that already take none',
      pods: [pod('a', { takesRequests: false }), pod('b'), pod('c'), pod('d')],
      withdrawn: ['d', 'a'],
    },
    {
      title: 'include those that are not ready, because they end first',
      pods: [pod('a'), pod('b', { isReady: false }), pod('c'), pod('d')],
      withdrawn: ['d', 'b'],
    },
    { title: 'are none if there are not too many pods', pods: [pod('a'), pod('b')], withdrawn: [] },
  ])
    it(title, () => expect(withdrawnPods(pods, 2)).to.deep.equal(withdrawn))
})
