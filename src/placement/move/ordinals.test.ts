import { expect } from 'chai'
import type { EndingOrdinal, PlacedOn } from '../../crds/index.ts'
import { move, type MoveStep } from './move.ts'
import type { CopySeen } from './move-input.ts'

const start = Date.parse('2026-01-01T00:00:00Z')
const since = new Date(start).toISOString()

/** Three pods serve in east and should go to west, where one of them is already. */
function step(
  ending: EndingOrdinal | undefined,
  {
    after,
    east = {},
    west = {},
    target = 'west',
  }: { after: number } & {
    east?: Partial<CopySeen>
    west?: Partial<CopySeen>
    target?: string
  },
): MoveStep {
  const placedOn: PlacedOn = {
    east: { state: 'Serving', since, start: 0, replicas: 2, ...(ending && { ending }) },
    west: { state: 'Serving', since, start: 2, replicas: 1 },
  }
  const serves = { observed: true, available: true, published: true, endpointsGone: false, gone: false }
  const seen: Record<string, CopySeen> = {
    east: { ...serves, pods: 2, ready: 2, endpoints: 2, ...east },
    west: { ...serves, pods: 1, ready: 1, endpoints: 1, ...west },
  }
  return move({
    now: start + after,
    placedOn,
    decision: { wanted: { kind: 'members', names: [target] }, held: [], rejected: [] },
    strategy: 'ordinalByOrdinal',
    scale: { replicas: 3, start: 0 },
    seen: (name) => seen[name]!,
    mayDrain: () => true,
    drainSeconds: 10,
    soakSeconds: 2,
  })
}

describe('the pod of a StatefulSet that goes to another member next', () => {
  const told = { ordinal: 1, since }
  const at = (ms: number): string => new Date(start + ms).toISOString()
  for (const { title, given, ending, replicas } of [
    {
      title: 'takes no new requests before it ends',
      given: step(undefined, { after: 500 }),
      ending: { ordinal: 1, since: at(500) },
      replicas: 2,
    },
    {
      title: 'is waited for while a member knows its endpoint',
      given: step(told, { after: 29_000 }),
      ending: told,
      replicas: 2,
    },
    {
      title: 'is told once no member knows it',
      given: step(told, { after: 700, east: { endpoints: 1 } }),
      ending: { ordinal: 1, since: at(700), isKnown: true },
      replicas: 2,
    },
    {
      title: 'is waited for no longer than the pods of a copy that drains',
      given: step(told, { after: 30_000 }),
      ending: { ordinal: 1, since: at(30_000), isKnown: true },
      replicas: 2,
    },
    {
      title: 'gets the soak time for its last requests',
      given: step({ ...told, isKnown: true }, { after: 1900, east: { endpoints: 1 } }),
      ending: { ...told, isKnown: true },
      replicas: 2,
    },
    {
      title: 'ends after that',
      given: step({ ...told, isKnown: true }, { after: 2000, east: { endpoints: 1 } }),
      ending: undefined,
      replicas: 1,
    },
    {
      title: 'takes requests again where it is no longer to go',
      given: step(told, { after: 500, east: { endpoints: 1 }, target: 'east' }),
      ending: undefined,
      replicas: 2,
    },
    {
      title: 'takes requests again while what went before does not serve',
      given: step(told, { after: 500, east: { endpoints: 1 }, west: { available: false } }),
      ending: undefined,
      replicas: 2,
    },
  ])
    it(title, () => {
      const east = given.placedOn['east']
      expect([east?.ending, east?.replicas]).to.deep.equal([ending, replicas])
    })

  it('is looked at again when the soak time is over', () => {
    const { requeueAfterMs } = step({ ...told, isKnown: true }, { after: 1900, east: { endpoints: 1 } })
    expect(requeueAfterMs).to.equal(100)
  })
})
