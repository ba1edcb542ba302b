import { expect } from 'chai'
import type { APIExport, ExportRollout } from '#crds/index.ts'
import type { BindingFacts } from '#reconcile/object-graph/index.ts'
import { isReleased, nextRelease, type Release } from './export-rollout.ts'

const names = { nameOf: (cluster: string) => `name-of-${cluster}` }
const consumer = (cluster: string, more: Partial<BindingFacts> = {}): BindingFacts => ({
  cluster,
  name: 'widgets',
  path: 'provider',
  exportName: 'widgets',
  exportUid: 'uid',
  providerName: 'provider',
  revision: 1,
  resources: [],
  accepted: '[]',
  labels: undefined,
  isReady: true,
  isDeleting: false,
  held: undefined,
  ...more,
})
const order = [{ consumers: ['name-of-a'] }, { selector: { matchLabels: { wave: 'two' } } }]
const [a, b, c] = [consumer('a'), consumer('b', { labels: { wave: 'two' } }), consumer('c')]

describe('the release of a revision', () => {
  const of = (groups: number, percent: number): Release => ({ order, groups, percent })

  for (const { title, release, has } of [
    { title: 'to no group is of nobody', release: of(0, 0), has: [] },
    { title: 'to the first group is of its consumers', release: of(1, 0), has: ['a'] },
    { title: 'to all groups leaves out the others', release: of(2, 0), has: ['a', 'b'] },
    { title: 'to all groups and everybody else is of all', release: of(2, 100), has: ['a', 'b', 'c'] },
    { title: 'to some groups is of nobody else, whatever the percentage', release: of(1, 100), has: ['a'] },
  ])
    it(title, () => {
      const released = [a, b, c].filter((one) => isReleased(one, release, names))
      expect(released.map(({ cluster }) => cluster)).to.deep.equal(has)
    })

  const exported = (rollout: ExportRollout, released?: { released: number; groups?: number }): APIExport => ({
    apiVersion: 'apis.kcp.io/v1alpha2',
    kind: 'APIExport',
    metadata: { name: 'widgets' },
    spec: { rollout },
    status: { ...(released && { rollout: released }) },
  })
  const state = { isNew: false, revision: 2, bindings: [a, b, c], held: [] }
  const updated = (...all: BindingFacts[]) => [a, b, c].map((one) => ({ ...one, revision: all.includes(one) ? 2 : 1 }))

  for (const { title, rollout, before, given, next } of [
    {
      title: 'begins with the first group',
      rollout: { order },
      before: { released: 100 },
      given: { isNew: true },
      next: [1, 0],
    },
    { title: 'waits for the group', rollout: { order }, before: { released: 0, groups: 1 }, given: {}, next: [1, 0] },
    {
      title: 'goes on to the next group',
      rollout: { order },
      before: { released: 0, groups: 1 },
      given: { bindings: updated(a) },
      next: [2, 0],
    },
    {
      title: 'goes on to others in steps',
      rollout: { order },
      before: { released: 0, groups: 2 },
      given: { bindings: updated(a, b) },
      next: [2, 5],
    },
    {
      title: 'stays with the groups at 0 percent',
      rollout: { order, percent: 0 },
      before: { released: 0, groups: 2 },
      given: { bindings: updated(a, b) },
      next: [2, 0],
    },
    {
      title: 'stops at a consumer that it would break',
      rollout: { order },
      before: { released: 0, groups: 1 },
      given: { bindings: updated(a), held: [c] },
      next: [1, 0],
    },
    {
      title: 'stops while it is paused',
      rollout: { order, pause: true },
      before: { released: 0, groups: 1 },
      given: { bindings: updated(a) },
      next: [1, 0],
    },
    {
      title: 'without groups goes in steps',
      rollout: {},
      before: { released: 25 },
      given: { bindings: updated(a, b, c) },
      next: [0, 100],
    },
  ])
    it(title, () => {
      const { groups, percent } = nextRelease(exported(rollout, before), { ...state, ...given }, names)
      expect([groups, percent]).to.deep.equal(next)
    })
})
