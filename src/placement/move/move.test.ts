import { expect } from 'chai'
import fc from 'fast-check'
import type { CopyState, PlacedOn, ShrinkingShare } from '#crds/index.ts'
import type { CopySeen, Decision, MoveInput } from './move-input.ts'
import { move, transition } from './move.ts'

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

const forwarding = { forwardSeconds: 60, forwards: () => true }
const external = { external: true, gone: false }
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
      title: 'does not drain while clients know addresses of the old member alone',
      input: given({ east: 'Serving', west: 'Serving' }, { ...forwarding, secondsLater: 59, see: { east: external } }),
      after: { east: 'Serving', west: 'Serving' },
    },
    {
      title: 'drains once the new member has addresses, too',
      input: given(
        { east: 'Serving', west: 'Serving' },
        { ...forwarding, secondsLater: 2, see: { east: external, west: external } },
      ),
      after: { east: 'Draining', west: 'Serving' },
    },
    {
      title: 'drains when the new member has had time enough to get addresses',
      input: given({ east: 'Serving', west: 'Serving' }, { ...forwarding, secondsLater: 60, see: { east: external } }),
      after: { east: 'Draining', west: 'Serving' },
    },
    {
      title: 'waits for no addresses where pods of other members cannot be reached',
      input: given(
        { east: 'Serving', west: 'Serving' },
        { ...forwarding, forwards: () => false, secondsLater: 2, see: { east: external } },
      ),
      after: { east: 'Draining', west: 'Serving' },
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
      title: 'forwards after the drain where clients come to addresses of the member',
      input: given({ east: 'Draining', west: 'Serving' }, { ...forwarding, see: { east: external } }),
      after: { east: 'Forwarding', west: 'Serving' },
    },
    {
      title: 'forwards nothing where pods of other members cannot be reached',
      input: given(
        { east: 'Draining', west: 'Serving' },
        { ...forwarding, forwards: () => false, see: { east: external } },
      ),
      after: { east: 'Terminating', west: 'Serving' },
    },
    {
      title: 'forwards nothing where no other copy serves',
      input: given({ east: 'Draining' }, { ...forwarding, decision: decide('none'), see: { east: external } }),
      after: { east: 'Terminating' },
    },
    {
      title: 'forwards for forwardSeconds',
      input: given(
        { east: 'Forwarding', west: 'Serving' },
        { ...forwarding, secondsLater: 59, see: { east: external } },
      ),
      after: { east: 'Forwarding', west: 'Serving' },
    },
    {
      title: 'ends when clients have had time to forget the addresses',
      input: given(
        { east: 'Forwarding', west: 'Serving' },
        { ...forwarding, secondsLater: 60, see: { east: external } },
      ),
      after: { east: 'Terminating', west: 'Serving' },
    },
    {
      title: 'ends when clients do not come to addresses of the member any more',
      input: given(
        { east: 'Forwarding', west: 'Serving' },
        { ...forwarding, secondsLater: 1, see: { east: { gone: false } } },
      ),
      after: { east: 'Terminating', west: 'Serving' },
    },
    {
      title: 'starts again from a copy that forwards only when it is gone',
      input: given(
        { east: 'Forwarding', west: 'Serving' },
        { ...forwarding, secondsLater: 1, decision: decide(['east']), see: { east: external } },
      ),
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

  const lost = { ...serving, lost: { failoverAtMs: start + 300_000 } }
  const fenced = { ...nothing, lost: {}, isFenced: true }
  for (const { title, input, after } of [
    {
      title: 'marks a copy whose member is lost, and keeps it',
      input: given({ east: 'Serving' }, { decision: decide(['east']), see: { east: lost } }),
      after: { east: 'Lost' },
    },
    {
      title: 'keeps the mark while the replacement serves',
      input: given({ east: 'Lost', west: 'Serving' }, { see: { east: lost } }),
      after: { east: 'Lost', west: 'Serving' },
    },
    {
      title: 'keeps the old copy if the member of the new one is lost in the same step',
      input: given({ east: 'Serving', west: 'Serving' }, { see: { west: lost } }),
      after: { east: 'Serving', west: 'Lost' },
    },
    {
      title: 'drains the copy of a member that answers again, if another one serves',
      input: given({ east: 'Lost', west: 'Serving' }, { see: { east: serving } }),
      after: { east: 'Draining', west: 'Serving' },
    },
    {
      title: 'withdraws the replacement if the member answers again before it serves',
      input: given({ east: 'Lost', west: 'Syncing' }, { decision: decide(['east']), see: { east: serving } }),
      after: { east: 'Serving' },
    },
    {
      title: 'does not start what must not run twice while its member is lost',
      input: given({ east: 'Lost' }, { strategy: 'breakBeforeMake', see: { east: { ...nothing, lost: {} } } }),
      after: { east: 'Lost', west: 'Assumed' },
    },
    {
      title: 'starts what must not run twice when its member is fenced',
      input: given({ east: 'Lost' }, { strategy: 'breakBeforeMake', see: { east: fenced } }),
      after: { east: 'Fenced', west: 'Syncing' },
    },
    {
      title: 'removes what comes back with a member that was fenced',
      input: given({ east: 'Fenced', west: 'Serving' }, { see: { east: { ...serving, gone: false } } }),
      after: { east: 'Terminating', west: 'Serving' },
    },
  ])
    it(title, () => expect(states(move(input).placedOn)).to.deep.equal(after))

  it('says at which gate a copy waits, since when, until when, and what happens then', () => {
    const { placedOn } = move(given({ east: 'Serving', west: 'Applied' }))
    expect(placedOn['west']?.wait).to.deep.equal({
      gate: 'RolloutComplete',
      since: '2026-01-01T00:01:40.000Z',
      until: '2026-01-01T00:11:40.000Z',
      then: 'Held',
    })
    expect(placedOn['east']?.wait).to.include({ gate: 'ReplacementServes', then: 'Held' })
  })
  it('keeps the time of a wait that goes on, and tells the workload when it has lasted too long', () => {
    const first = move(given({ east: 'Serving', west: 'Applied' }))
    expect([first.stalled, first.requeueAfterMs]).to.deep.equal([[], 600_000])
    const later = given({ east: 'Serving', west: 'Applied' }, { placedOn: first.placedOn, secondsLater: 701 })
    const second = move(later)
    expect(second.placedOn).to.equal(first.placedOn)
    expect(second.stalled).to.deep.equal([
      {
        cluster: 'west',
        reason: 'MoveStalled',
        message: 'in member cluster "west" it has waited since 2026-01-01T00:01:40.000Z for its pods to be ready',
      },
    ])
  })
  it('tells with a wait why the member does not get the pods ready', () => {
    const { placedOn } = move(given({ east: 'Serving', west: 'Applied' }))
    const see = { east: serving, west: { observed: true, problem: 'pods "web-1" is forbidden: exceeded quota' } }
    const [stalled] = move(given({}, { placedOn, see, secondsLater: 701 })).stalled
    expect(stalled?.message).to.match(/for its pods to be ready: pods "web-1" is forbidden: exceeded quota$/)
  })
  it('says that a paused rollout is waited for', () => {
    const see = { east: serving, west: { observed: true, isPaused: true } }
    const { placedOn } = move(given({ east: 'Serving', west: 'Applied' }, { see }))
    expect(placedOn['west']?.wait).to.include({ gate: 'RolloutResumed', then: 'Held' })
  })
  it('moves a paused Deployment whose pods run all the same', () => {
    const see = { east: serving, west: { ...serving, isPaused: true } }
    const { placedOn } = move(given({ east: 'Serving', west: 'Applied' }, { see }))
    expect(placedOn['west']?.state).to.equal('Serving')
  })
  it('says until when a member forwards, and looks again then', () => {
    const input = given(
      { east: 'Forwarding', west: 'Serving' },
      { ...forwarding, secondsLater: 20, see: { east: external } },
    )
    const { placedOn, requeueAfterMs } = move(input)
    expect(placedOn['east']?.wait).to.include({ gate: 'AddressesForgotten', then: 'Removed' })
    expect(requeueAfterMs).to.equal(40_000)
  })

  it('looks again when the new member has had time enough to get addresses', () => {
    const { placedOn, requeueAfterMs } = move(
      given({ east: 'Serving', west: 'Serving' }, { ...forwarding, secondsLater: 20, see: { east: external } }),
    )
    expect(placedOn['east']).to.include({ paused: true })
    expect(placedOn['east']?.wait).to.include({ gate: 'AddressesReplaced', then: 'Held' })
    expect(requeueAfterMs).to.equal(40_000)
  })

  const volumes = (where: string, isCopied = false) => ({ in: [where], isCopied: () => isCopied, progress: '40 %' })
  const unknown = { in: [], unknownIn: 'east', isCopied: () => false }
  for (const { title, input, after } of [
    {
      title: 'keeps a copy running until its volumes are copied',
      input: given({ east: 'Serving' }, { strategy: 'breakBeforeMake', volumes: volumes('east') }),
      after: { east: 'Serving', west: 'Assumed' },
    },
    {
      title: 'stops a copy once its volumes are copied',
      input: given({ east: 'Serving' }, { strategy: 'breakBeforeMake', volumes: volumes('east', true) }),
      after: { east: 'Draining', west: 'Assumed' },
    },
    {
      title: 'starts no copy before its volumes have arrived',
      input: given({ west: 'Assumed' }, { strategy: 'breakBeforeMake', volumes: volumes('east', true) }),
      after: { west: 'Assumed' },
    },
    {
      title: 'starts a copy where its volumes are',
      input: given({ west: 'Assumed' }, { strategy: 'breakBeforeMake', volumes: volumes('west') }),
      after: { west: 'Syncing' },
    },
    {
      title: 'keeps a copy running while nobody knows what data it has',
      input: given({ east: 'Serving' }, { strategy: 'breakBeforeMake', volumes: unknown }),
      after: { east: 'Serving', west: 'Assumed' },
    },
    {
      title: 'starts no copy while another member may have its data',
      input: given({ west: 'Assumed' }, { strategy: 'breakBeforeMake', volumes: unknown }),
      after: { west: 'Assumed' },
    },
    {
      title: 'starts a copy where the member itself has what is not known',
      input: given({ east: 'Assumed' }, { decision: decide(['east']), strategy: 'breakBeforeMake', volumes: unknown }),
      after: { east: 'Syncing' },
    },
    {
      title: 'stops a copy that is wanted nowhere without copying its volumes',
      input: given(
        { east: 'Serving' },
        { decision: decide('none'), strategy: 'breakBeforeMake', volumes: volumes('east') },
      ),
      after: { east: 'Draining' },
    },
  ])
    it(title, () => expect(states(move(input).placedOn)).to.deep.equal(after))

  it('tells how far the copy of the volumes is, and sets it no deadline', () => {
    const { placedOn } = move(given({ east: 'Serving' }, { strategy: 'breakBeforeMake', volumes: volumes('east') }))
    expect(placedOn['east']?.wait).to.deep.equal({
      ...{ gate: 'VolumesCopied', since: '2026-01-01T00:01:40.000Z', then: 'Waits', detail: '40 %' },
    })
  })

  it('says until when a lost member is waited for', () => {
    const { placedOn } = move(given({ east: 'Serving' }, { decision: decide(['east']), see: { east: lost } }))
    expect(placedOn['east']?.wait).to.include({ gate: 'MemberAnswers', until: '2026-01-01T00:05:00.000Z' })
  })

  const overdue = move(given({ east: 'Serving', west: 'Applied' })).placedOn
  for (const { title, input, paused } of [
    {
      title: 'pauses the rollout of a copy while another one is on its way to replace it',
      input: given({ east: 'Serving', west: 'Applied' }),
      paused: { east: true, west: undefined },
    },
    {
      title: 'ends the pause when the new copy does not serve in time',
      input: given({}, { placedOn: overdue, see: { east: serving, west: { observed: true } }, secondsLater: 1001 }),
      paused: { east: undefined, west: undefined },
    },
    {
      title: 'ends the pause when the copy is wanted again',
      input: given({}, { placedOn: overdue, decision: decide(['east']), see: { east: serving } }),
      paused: { east: undefined, west: undefined },
    },
    {
      title: 'pauses nothing for a member that cannot take it',
      input: given({ east: 'Serving', west: 'Serving' }, { decision: decide(['west'], ['mars']) }),
      paused: { east: undefined, west: undefined },
    },
    {
      title: 'pauses nothing while nothing is decided',
      input: given({ east: 'Serving' }, { decision: decide('undecided') }),
      paused: { east: undefined, west: undefined },
    },
    {
      title: 'pauses no copy that waits for another one to go first',
      input: given({ east: 'Serving' }, { strategy: 'breakBeforeMake', mayDrain: () => false }),
      paused: { east: undefined, west: undefined },
    },
  ])
    it(title, () => {
      const { placedOn } = move(input)
      expect({ east: placedOn['east']?.paused, west: placedOn['west']?.paused }).to.deep.equal(paused)
    })

  describe('of a divided workload', () => {
    const shares = (input: MoveInput): Record<string, number | undefined> =>
      Object.fromEntries(Object.entries(move(input).placedOn).map(([name, { replicas }]) => [name, replicas]))
    const divided = (
      has: Record<string, number>,
      wants: Record<string, number>,
      { replicas, ready = has }: { replicas: number; ready?: Record<string, number> },
    ): MoveInput => ({
      ...given({}),
      placedOn: Object.fromEntries(
        Object.entries(has).map(([name, count]) => [
          name,
          { state: 'Serving', since: new Date(start).toISOString(), replicas: count },
        ]),
      ),
      scale: { replicas, start: 0 },
      decision: { ...decide(Object.keys(wants)), shares: wants },
      seen: (name) => ({ ...(name in has ? serving : nothing), ready: ready[name] ?? 0 }),
    })
    /** All members have known for long that the pods which end take no requests. */
    const known = (input: MoveInput, to: Record<string, number>): MoveInput => ({
      ...input,
      now: start + 60_000,
      placedOn: Object.fromEntries(
        Object.entries(input.placedOn).map(([name, copy]) => {
          const since = new Date(start).toISOString()
          return [name, name in to ? { ...copy, shrinking: { to: to[name]!, since, isKnown: true } } : copy]
        }),
      ),
    })
    for (const { title, input, after } of [
      {
        title: 'gives the replicas of a scale-up at once',
        input: divided({ a: 6, b: 6 }, { a: 15, b: 15 }, { replicas: 30 }),
        after: { a: 15, b: 15 },
      },
      {
        title: 'takes none before those of a member that joins are ready',
        input: divided({ a: 6, b: 6 }, { a: 4, b: 4, c: 4 }, { replicas: 12 }),
        after: { a: 6, b: 6, c: 4 },
      },
      {
        title: 'takes as many as are ready elsewhere, once they take no requests',
        input: known(
          divided({ a: 6, b: 6, c: 4 }, { a: 4, b: 4, c: 4 }, { replicas: 12, ready: { a: 6, b: 6, c: 2 } }),
          { a: 4 },
        ),
        after: { a: 4, b: 6, c: 4 },
      },
      {
        title: 'takes those of a scale-down once they take no requests',
        input: known(divided({ a: 15, b: 15 }, { a: 3, b: 3 }, { replicas: 6 }), { a: 3, b: 3 }),
        after: { a: 3, b: 3 },
      },
      {
        title: 'takes none of a scale-down while they take requests',
        input: divided({ a: 15, b: 15 }, { a: 3, b: 3 }, { replicas: 6 }),
        after: { a: 15, b: 15 },
      },
      {
        title: 'takes replicas that were not ready anyway',
        input: divided({ a: 6, b: 6 }, { a: 2, b: 2 }, { replicas: 4, ready: {} }),
        after: { a: 2, b: 2 },
      },
    ])
      it(title, () => expect(shares(input)).to.deep.equal(after))

    describe('whose share in a member shrinks', () => {
      const since = new Date(start).toISOString()
      const shrinking = (input: MoveInput): unknown => move(input).placedOn['a']?.shrinking
      const smaller = divided({ a: 6, c: 4 }, { a: 4, c: 4 }, { replicas: 8 })
      const at = (
        given: MoveInput,
        said: ShrinkingShare | undefined,
        seconds: number,
        endpoints: number,
      ): MoveInput => ({
        ...given,
        now: start + seconds * 1000,
        placedOn: { ...given.placedOn, a: { ...given.placedOn['a']!, ...(said && { shrinking: said }) } },
        seen: (name) => ({ ...given.seen(name), endpoints, pods: 6 }),
      })
      const told = { to: 4, since }
      for (const { title, input, after } of [
        { title: 'says so first', input: at(smaller, undefined, 0, 6), after: told },
        { title: 'waits while a member knows their endpoints', input: at(smaller, told, 29, 5), after: told },
        {
          title: 'waits for the soak time once no member knows them',
          input: at(smaller, told, 1, 4),
          after: { to: 4, since: new Date(start + 1000).toISOString(), isKnown: true },
        },
        {
          title: 'waits no longer than for a copy that drains',
          input: at(smaller, told, 30, 5),
          after: { to: 4, since: new Date(start + 30_000).toISOString(), isKnown: true },
        },
        {
          title: 'begins anew where the share changes',
          input: at(divided({ a: 6, c: 4 }, { a: 3, c: 4 }, { replicas: 7 }), told, 2, 4),
          after: { to: 3, since: new Date(start + 2000).toISOString() },
        },
        {
          title: 'takes requests again where the share is what it was',
          input: at(divided({ a: 6, c: 4 }, { a: 6, c: 4 }, { replicas: 10 }), told, 2, 4),
          after: undefined,
        },
        {
          title: 'tells those that end from those that stay until they are gone',
          input: at(divided({ a: 4, c: 4 }, { a: 4, c: 4 }, { replicas: 8 }), told, 40, 4),
          after: told,
        },
      ])
        it(title, () => expect(shrinking(input)).to.deep.equal(after))

      it('says nothing of it any more when they are gone', () => {
        const input = at(divided({ a: 4, c: 4 }, { a: 4, c: 4 }, { replicas: 8 }), told, 40, 4)
        const gone: MoveInput = { ...input, seen: (name) => ({ ...input.seen(name), pods: 4 }) }
        expect(shrinking(gone)).to.equal(undefined)
      })

      it('counts only those that stay where another member gives up replicas', () => {
        const input = divided({ a: 6, b: 6, c: 4 }, { a: 4, b: 4, c: 4 }, { replicas: 12 })
        const placedOn = { ...input.placedOn, a: { ...input.placedOn['a']!, shrinking: told } }
        const ready: MoveInput = {
          ...input,
          placedOn,
          now: start + 1000,
          seen: (name) => ({ ...input.seen(name), ready: name === 'c' ? 3 : 6 }),
        }
        expect(move(ready).placedOn['b']?.shrinking).to.equal(undefined)
      })
    })

    it('takes none because of pods that a lost member reported before it is wanted again', () => {
      const input = divided({ a: 1, b: 2 }, { a: 1, b: 1 }, { replicas: 2 })
      const back: MoveInput = {
        ...input,
        placedOn: { ...input.placedOn, a: { state: 'Draining', since: new Date(start).toISOString(), replicas: 1 } },
        seen: (name) => ({ ...input.seen(name), ...(name === 'a' && { lost: { failoverAtMs: start } }) }),
      }
      expect(shares(back)).to.deep.equal({ a: 1, b: 2 })
    })

    it('waits with a member that leaves until the others have its replicas', () => {
      const input = divided({ a: 6, b: 6 }, { a: 12 }, { replicas: 12 })
      expect(states(move(input).placedOn)).to.deep.equal({ a: 'Serving', b: 'Serving' })
      const grown = divided({ a: 12, b: 6 }, { a: 12 }, { replicas: 12 })
      expect(states(move(grown).placedOn)).to.deep.equal({ a: 'Serving', b: 'Draining' })
    })
  })

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

  it('has something of a copy in one member at most where a copy breaks before make', () => {
    const single = [decide(['a']), decide(['b']), decide('none'), decide('undecided'), decide('undecided', ['c'])]
    const stories = fc.array(
      fc.record({
        wish: fc.constantFrom(...single),
        seen: fc.record({ a: seenArbitrary, b: seenArbitrary }),
        later: fc.nat(30),
      }),
      { maxLength: 30 },
    )
    fc.assert(
      fc.property(stories, (story) => {
        let placedOn: PlacedOn = {}
        let now = start
        for (const { wish, seen, later } of story) {
          now += later * 1000
          const input: MoveInput = {
            now,
            placedOn,
            decision: wish,
            strategy: 'breakBeforeMake',
            seen: (member) => seen[member as 'a' | 'b'],
            mayDrain: () => false,
            drainSeconds: 10,
            soakSeconds: 1,
          }
          placedOn = move(input).placedOn
          const there = Object.values(placedOn).filter(({ state }) => !['Held', 'Assumed'].includes(state))
          expect(there.length, JSON.stringify(placedOn)).to.be.below(2)
        }
      }),
      { numRuns: 500 },
    )
  })

  it('waits where a copy breaks before make, until what it began has ended', () => {
    const input = given(
      { east: 'Draining', west: 'Assumed' },
      { strategy: 'breakBeforeMake', see: { east: { isBusy: true } } },
    )
    expect(states(move(input).placedOn)).to.deep.equal({ east: 'Draining', west: 'Assumed' })
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
