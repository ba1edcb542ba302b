import { expect } from 'chai'
import fc from 'fast-check'
import type { CopyState, PlacedOn } from '../crds/index.ts'
import type { Decision } from './choose.ts'
import { move, transition, type CopySeen, type MoveInput } from './move.ts'

const nothing: CopySeen = { observed: false, available: false, published: false, endpointsGone: true, gone: true }
const serving: CopySeen = { observed: true, available: true, published: true, endpointsGone: false, gone: false }
const start = Date.parse('2026-01-01T00:00:00Z')

type Wanted = string[] | 'none' | 'undecided'
function decide(wanted: Wanted, held: string[] = []): Decision {
  const rejections = held.map((cluster) => ({
    cluster,
    reason: 'ClusterNotFound' as const,
    message: `there is no "${cluster}"`,
  }))
  return {
    wanted: Array.isArray(wanted) ? { kind: 'members', names: wanted } : { kind: wanted },
    held: rejections,
    rejected: rejections,
  }
}

function given(
  states: Record<string, CopyState>,
  parts: Partial<MoveInput> & { see?: Record<string, Partial<CopySeen>>; secondsLater?: number } = {},
): MoveInput {
  const { see = {}, secondsLater = 100, ...rest } = parts
  const placedOn: PlacedOn = Object.fromEntries(
    Object.entries(states).map(([name, state]) => [name, { state, since: new Date(start).toISOString() }]),
  )
  return {
    now: start + secondsLater * 1000,
    placedOn,
    decision: decide(['west']),
    seen: (member) => ({ ...(states[member] === 'Serving' ? serving : nothing), ...see[member] }),
    mayDrain: () => true,
    drainSeconds: 10,
    soakSeconds: 1,
    ...rest,
  }
}

const states = (placed: PlacedOn): Record<string, string> =>
  Object.fromEntries(Object.entries(placed).map(([name, { state }]) => [name, state]))

describe('the move engine', () => {
  for (const { title, input, after } of [
    { title: 'starts a new copy', input: given({}), after: { west: 'Syncing' } },
    { title: 'waits for the member to observe', input: given({ west: 'Syncing' }), after: { west: 'Syncing' } },
    {
      title: 'passes through all states that are already reached',
      input: given({ west: 'Syncing' }, { see: { west: serving } }),
      after: { west: 'Serving' },
    },
    {
      title: 'stops at Available until endpoints are published',
      input: given({ west: 'Applied' }, { see: { west: { ...serving, published: false } } }),
      after: { west: 'Available' },
    },
    {
      title: 'keeps the old copy while the new one is not Serving',
      input: given({ east: 'Serving', west: 'Applied' }),
      after: { east: 'Serving', west: 'Applied' },
    },
    {
      title: 'drains the old copy once the new one is Serving and has soaked',
      input: given({ east: 'Serving', west: 'Serving' }),
      after: { east: 'Draining', west: 'Serving' },
    },
    {
      title: 'does not drain before the soak is over',
      input: given({ east: 'Serving', west: 'Serving' }, { secondsLater: 0 }),
      after: { east: 'Serving', west: 'Serving' },
    },
    {
      title: 'does not drain when the new copy has failed in the meantime',
      input: given({ east: 'Serving', west: 'Serving' }, { see: { west: { available: false } } }),
      after: { east: 'Serving', west: 'Serving' },
    },
    {
      title: 'does not drain before the namespace may move',
      input: given({ east: 'Serving', west: 'Serving' }, { mayDrain: () => false }),
      after: { east: 'Serving', west: 'Serving' },
    },
    {
      title: 'undoes a drain when the new copy fails',
      input: given({ east: 'Draining', west: 'Serving' }, { see: { west: { available: false } } }),
      after: { east: 'Available', west: 'Serving' },
    },
    {
      title: 'terminates after the drain',
      input: given({ east: 'Draining', west: 'Serving' }, { see: { east: { gone: false } } }),
      after: { east: 'Terminating', west: 'Serving' },
    },
    {
      title: 'drains for drainSeconds',
      input: given({ east: 'Draining', west: 'Serving' }, { secondsLater: 9 }),
      after: { east: 'Draining', west: 'Serving' },
    },
    {
      title: 'waits longer while endpoints remain',
      input: given(
        { east: 'Draining', west: 'Serving' },
        { secondsLater: 20, see: { east: { endpointsGone: false } } },
      ),
      after: { east: 'Draining', west: 'Serving' },
    },
    {
      title: 'keeps a Terminating copy until the member confirms',
      input: given({ east: 'Terminating', west: 'Serving' }, { see: { east: { gone: false } } }),
      after: { east: 'Terminating', west: 'Serving' },
    },
    {
      title: 'forgets a copy that is gone',
      input: given({ east: 'Terminating', west: 'Serving' }),
      after: { west: 'Serving' },
    },
    {
      title: 'returns a draining copy to Serving if it is wanted again',
      input: given(
        { east: 'Draining', west: 'Serving' },
        { decision: decide(['east']), see: { east: { ...serving, published: false } } },
      ),
      after: { east: 'Available', west: 'Serving' },
    },
    {
      title: 'starts again only when the Terminating copy is gone',
      input: given({ west: 'Terminating' }, { see: { west: { gone: false } } }),
      after: { west: 'Terminating' },
    },
    {
      title: 'drops a copy that never served',
      input: given({ east: 'Syncing' }, { see: { east: { gone: false } } }),
      after: { east: 'Terminating', west: 'Syncing' },
    },
    {
      title: 'holds an unknown target and leaves the old copy alone',
      input: given({ east: 'Serving' }, { decision: decide('undecided', ['mars']) }),
      after: { east: 'Serving', mars: 'Held' },
    },
    {
      title: 'does not drain while any target is Held',
      input: given({ east: 'Serving', west: 'Serving' }, { decision: decide(['west'], ['mars']) }),
      after: { east: 'Serving', mars: 'Held', west: 'Serving' },
    },
    {
      title: 'forgets a Held member when it is no longer asked for',
      input: given({ east: 'Serving', mars: 'Held' }, { decision: decide(['east']) }),
      after: { east: 'Serving' },
    },
    {
      title: 'keeps everything while undecided (I2)',
      input: given({ east: 'Serving' }, { decision: decide('undecided') }),
      after: { east: 'Serving' },
    },
    {
      title: 'drains everything for none',
      input: given({ east: 'Serving' }, { decision: decide('none') }),
      after: { east: 'Draining' },
    },
    {
      title: 'keeps both for a target of both',
      input: given({ east: 'Serving' }, { decision: decide(['east', 'west']) }),
      after: { east: 'Serving', west: 'Syncing' },
    },
  ]) {
    it(title, () => expect(states(move(input).placedOn)).to.deep.equal(after))
  }

  it('returns when the passing of time alone changes something', () => {
    expect(move(given({ east: 'Draining', west: 'Serving' }, { secondsLater: 4 })).requeueAfterMs).to.equal(6000)
  })

  const seenArbitrary = fc.record({
    observed: fc.boolean(),
    available: fc.boolean(),
    published: fc.boolean(),
    endpointsGone: fc.boolean(),
    gone: fc.boolean(),
  })
  const wishes: Decision[] = [
    decide(['a']),
    decide(['b']),
    decide(['a', 'b']),
    decide('none'),
    decide('undecided'),
    decide('undecided', ['c']),
    decide(['b'], ['c']),
    decide(['c']),
  ]
  const steps = fc.array(
    fc.record({
      wish: fc.constantFrom(...wishes),
      seen: fc.record({ a: seenArbitrary, b: seenArbitrary, c: seenArbitrary }),
      later: fc.nat(30),
    }),
    { maxLength: 30 },
  )

  it('never ends a serving copy unless another one serves or none is wanted (I1, I2)', () => {
    fc.assert(
      fc.property(steps, (story) => {
        let placedOn: PlacedOn = {}
        let now = start
        for (const { wish, seen, later } of story) {
          now += later * 1000
          const input: MoveInput = {
            now,
            placedOn,
            decision: wish,
            seen: (member) => seen[member as 'a' | 'b' | 'c'],
            mayDrain: () => true,
            drainSeconds: 10,
            soakSeconds: 1,
          }
          for (let i = 0; i < 8; i++) {
            const next = transition({ ...input, placedOn })
            for (const [name, { state }] of Object.entries(placedOn)) {
              const after = next[name]?.state
              const letsGo =
                ['Applied', 'Available', 'Serving'].includes(state) &&
                (after === undefined || after === 'Draining' || after === 'Terminating')
              if (letsGo && wish.wanted.kind !== 'none') {
                const others = Object.entries(next).filter(
                  ([other, copy]) => other !== name && copy.state === 'Serving' && seen[other as 'a'].available,
                )
                expect(others, `${name} lets go in ${JSON.stringify(placedOn)}`).to.not.be.empty
              }
              if (state === 'Draining' && after !== 'Draining') expect(after).to.be.oneOf(['Available', 'Terminating'])
              if (state === 'Terminating' && after !== 'Terminating') expect(seen[name as 'a'].gone).to.equal(true)
              if (wish.wanted.kind === 'undecided' && state === 'Serving') expect(after).to.equal('Serving')
            }
            placedOn = next
          }
        }
      }),
      { numRuns: 500 },
    )
  })

  it('changes nothing when run again on its own result', () => {
    fc.assert(
      fc.property(steps, (story) => {
        let placedOn: PlacedOn = {}
        for (const { wish, seen } of story) {
          const input: MoveInput = {
            now: start,
            placedOn,
            decision: wish,
            seen: (member) => seen[member as 'a'],
            mayDrain: () => true,
            drainSeconds: 10,
            soakSeconds: 1,
          }
          placedOn = move(input).placedOn
          // A Terminating copy that is gone begins a new life and is not gone then: no answer of the member fits twice.
          if (Object.values(seen).some(({ gone, observed }) => gone && observed)) continue
          expect(move({ ...input, placedOn }).placedOn).to.deep.equal(placedOn)
        }
      }),
    )
  })
})
