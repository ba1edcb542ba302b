import { expect } from 'chai'
import { targetOf, type PlacementRule } from './target.ts'

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
      expect(targetOf({ object: annotations(object), namespace: annotations(namespace), placements })).to.deep.equal(
        expected,
      )
    })
  }
})
