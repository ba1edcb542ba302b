import { expect } from 'chai'
import type { PlacedCopy } from '../crds/index.ts'
import { takesRequests } from './takes-requests.ts'

describe('pods that take requests', () => {
  const ending = { ordinal: 1, since: '2026-01-01T00:00:00.000Z' }
  for (const { title, kind = 'StatefulSet', copy, taking } of [
    { title: 'are all of a copy that serves', copy: { state: 'Serving' }, taking: [0, 1, 2] },
    { title: 'are none of a copy that drains', copy: { state: 'Draining' }, taking: [] },
    { title: 'are not those that end next', copy: { state: 'Serving', ending }, taking: [0, 2] },
    { title: 'are those of its range', copy: { state: 'Serving', start: 1, replicas: 2 }, taking: [1, 2] },
    {
      title: 'are those of its range but the one that ends next',
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
