import { expect } from 'chai'
import { demandOf, targetOf, type PlacementRule } from './target.ts'

describe('the target of an object', () => {
  const rule = (
    name: string,
    clusters: string[] | undefined,
    priority = 0,
    creationTimestamp = '2026-01-01T00:00:00Z',
  ): PlacementRule => ({
    name,
    priority,
    creationTimestamp,
    ...(clusters && { clusters }),
  })
  for (const { title, object, namespace, placements = [], expected } of [
    { title: 'is the best member without any rule', expected: { kind: 'best', source: 'default' } },
    {
      title: 'comes from the annotation of the object first',
      object: 'east',
      namespace: 'west',
      expected: { kind: 'members', names: ['east'], source: 'object' },
    },
    {
      title: 'comes from the annotation of the namespace before a Placement',
      namespace: 'west',
      placements: [[rule('p', ['east'])]],
      expected: { kind: 'members', names: ['west'], source: 'namespace' },
    },
    {
      title: 'ignores order, blanks and repetition',
      object: ' west, east,west ',
      expected: { kind: 'members', names: ['east', 'west'], source: 'object' },
    },
    { title: 'is nowhere for an empty annotation', object: '', expected: { kind: 'none', source: 'object' } },
    { title: 'is nowhere for the word none', object: 'none', expected: { kind: 'none', source: 'object' } },
    {
      title: 'is the highest priority Placement of the first level that names clusters',
      placements: [[rule('a', undefined, 9)], [rule('b', ['x'], 1), rule('c', ['y'], 2)]],
      expected: { kind: 'members', names: ['y'], source: 'placement' },
    },
    {
      title: 'is the oldest Placement among equals',
      placements: [[rule('a', ['x'], 0, '2026-02-01T00:00:00Z'), rule('b', ['y'])]],
      expected: { kind: 'members', names: ['y'], source: 'placement' },
    },
  ] as { title: string; object?: string; namespace?: string; placements?: PlacementRule[][]; expected: object }[]) {
    it(title, () => {
      const annotations = (value: string | undefined) =>
        value === undefined ? undefined : { 'kcp.dev/clusters': value }
      const rules = { object: annotations(object), namespace: annotations(namespace), placements }
      const { target, source } = targetOf(rules)
      expect({ ...target, source }).to.deep.equal(expected)
    })
  }
})

describe('the demand of an object', () => {
  const selector = { matchLabels: { tier: 'gold' } }
  const rule = (name: string, parts: Partial<PlacementRule>): PlacementRule => ({
    name,
    priority: 0,
    creationTimestamp: '2026-01-01T00:00:00Z',
    ...parts,
  })
  const own = rule('own', { require: selector, tolerations: [{ key: 'gpu', operator: 'Exists' }] })
  const admins = [rule('eu', { clusters: ['east'] }), rule('defaults', { prefer: [] })]
  const demand = (object: string | undefined) => {
    const annotations = object === undefined ? undefined : { 'kcp.dev/clusters': object }
    const chosen = targetOf({ object: annotations, namespace: undefined, placements: [[own], admins] })
    return demandOf(chosen, { bounds: admins, requests: new Map() })
  }

  it('is bounded by each Placement of an admin that names members, whatever tenants write', () => {
    for (const object of [undefined, 'west'])
      expect(demand(object).bounds).to.deep.equal([{ placement: 'eu', clusters: ['east'] }])
  })
  it('requires what the Placement that decides requires, unless an annotation names members', () => {
    expect(demand(undefined).require).to.deep.equal({ placement: 'own', labelSelector: selector })
    expect(demand('west').require).to.equal(undefined)
    expect(demand('west').tolerations).to.deep.equal(own.tolerations)
  })
})
