import { expect } from 'chai'
import type { ClusterSleep, ClusterSleepStatus } from '#crds/index.ts'
import { decideSleep, type SleepDecision } from './decide-sleep.ts'

const at = (time: string): number => Date.parse(`2026-11-${time}Z`)
const noon = '25T12:00:00' // a Wednesday
const awakeSince = (time: string): ClusterSleepStatus => ({
  awakeSince: `2026-11-${time}Z`,
  reason: 'Awake',
  message: 'so',
})
const asleepSince = (time: string, reason: string): ClusterSleepStatus => ({
  asleepSince: `2026-11-${time}Z`,
  reason,
  message: 'so',
})
const office = { timeZone: 'Europe/Berlin', sleep: '0 20 * * 1-5', wake: '0 7 * * 1-5' }

interface Case {
  readonly title: string
  readonly spec?: ClusterSleep
  readonly status?: ClusterSleepStatus
  readonly orders?: { sleep?: string; wake?: string }
  readonly now?: string
  readonly started?: string
  /** What it becomes, with the reason; `stays`: what it was. */
  readonly expected: string
}

const decided = ({
  spec,
  status,
  orders = {},
  now = noon,
  started = '20T00:00:00',
}: Omit<Case, 'title' | 'expected'>) =>
  decideSleep({ name: 'acme', spec, status, orders, nowMs: at(now), startedMs: at(started) })

const outcome = ({ patch, turns }: SleepDecision): string => {
  const reason = (patch as { reason?: string } | null | undefined)?.reason
  return turns === undefined ? 'stays' : `${turns.to}${reason === undefined ? '' : ` ${reason}`}`
}

const cases: readonly Case[] = [
  { title: 'without rules it never sleeps', expected: 'stays' },
  { title: 'an order needs no rules', spec: {}, orders: { sleep: '1' }, expected: 'Asleep Requested' },
  {
    title: 'an order is carried out once',
    spec: {},
    status: { ...awakeSince('25T11:00:00'), orders: { sleep: '1' } },
    orders: { sleep: '1' },
    expected: 'stays',
  },
  {
    title: 'an order to wake wins over one to sleep that came with it',
    spec: {},
    status: awakeSince('25T11:00:00'),
    orders: { sleep: '1', wake: '1' },
    expected: 'stays',
  },
  {
    title: 'an order wakes it',
    spec: {},
    status: asleepSince('25T11:00:00', 'Requested'),
    orders: { wake: '2' },
    expected: 'Awake WokenByHand',
  },
  // Idleness.
  {
    title: 'one that was never used falls asleep when its rule has held for long enough',
    spec: { afterIdle: '30m' },
    status: awakeSince('25T11:26:00'),
    expected: 'Asleep Idle',
  },
  {
    title: 'the last request is known to a tenth: nobody is put to sleep too early',
    spec: { afterIdle: '30m' },
    status: { ...awakeSince('25T08:00:00'), lastRequestTime: '2026-11-25T11:28:00Z' },
    expected: 'stays',
  },
  {
    title: 'one that was used long ago falls asleep',
    spec: { afterIdle: '30m' },
    status: { ...awakeSince('25T08:00:00'), lastRequestTime: '2026-11-25T11:26:30Z' },
    expected: 'Asleep Idle',
  },
  {
    title: 'after a restart nothing is idle before servers could tell what is used',
    spec: { afterIdle: '2h' },
    status: { ...awakeSince('24T08:00:00'), lastRequestTime: '2026-11-25T04:00:00Z' },
    started: '25T11:56:00',
    expected: 'stays',
  },
  {
    title: 'a request that arrives late does not wake it: only writes do',
    spec: { afterIdle: '30m' },
    status: { ...asleepSince('25T11:00:00', 'Idle'), lastRequestTime: '2026-11-25T11:59:00Z' },
    expected: 'stays',
  },
  {
    title: 'a write wakes it',
    spec: { afterIdle: '30m' },
    status: { ...asleepSince('25T11:00:00', 'Idle'), writtenDuring: '2026-11-25T11:00:00Z' },
    expected: 'Awake WokenByWrite',
  },
  {
    title: 'a write of an earlier sleep does not',
    spec: { afterIdle: '30m' },
    status: { ...asleepSince('25T11:00:00', 'Idle'), writtenDuring: '2026-11-24T11:00:00Z' },
    expected: 'stays',
  },
  {
    title: 'it wakes when the rule by which it sleeps goes',
    spec: {},
    status: asleepSince('25T11:00:00', 'Idle'),
    expected: 'Awake RulesChanged',
  },
  { title: 'it wakes when all rules go', status: asleepSince('25T11:00:00', 'Idle'), expected: 'Awake' },
  // Schedules.
  {
    title: 'its schedule puts it to sleep, in use or not',
    spec: { schedule: office },
    status: { ...awakeSince('25T06:00:00'), lastRequestTime: '2026-11-25T18:59:50Z' },
    now: '25T19:00:01',
    expected: 'Asleep Scheduled',
  },
  {
    title: 'its schedule wakes it',
    spec: { schedule: office },
    status: asleepSince('25T19:00:01', 'Scheduled'),
    now: '26T06:00:00',
    expected: 'Awake WokenBySchedule',
  },
  {
    title: 'a night that nobody saw changes nothing',
    spec: { schedule: office },
    status: awakeSince('24T06:00:00'),
    expected: 'stays',
  },
  {
    title: 'a day that nobody saw changes nothing',
    spec: { schedule: office },
    status: asleepSince('24T19:00:00', 'Scheduled'),
    now: '25T22:00:00',
    expected: 'stays',
  },
  {
    title: 'who works in the night is left alone until the next evening',
    spec: { schedule: office },
    status: awakeSince('25T21:00:00'),
    now: '25T23:00:00',
    expected: 'stays',
  },
  {
    title: 'it is awake for a minute at least before its schedule counts',
    spec: { schedule: { sleep: '* * * * *' } },
    status: awakeSince('25T11:59:30'),
    expected: 'stays',
  },
  {
    title: 'an unknown time zone puts nothing to sleep',
    spec: { schedule: { sleep: '* * * * *', timeZone: 'Mars/Olympus' } },
    status: awakeSince('25T06:00:00'),
    expected: 'stays',
  },
  // By hand.
  { title: 'it is held asleep', spec: { asleep: true }, status: awakeSince('25T11:00:00'), expected: 'Asleep Held' },
  {
    title: 'one that is held asleep is not woken by a write, its schedule or an order',
    spec: { asleep: true, schedule: { wake: '* * * * *' } },
    status: { ...asleepSince('25T11:00:00', 'Held'), writtenDuring: '2026-11-25T11:00:00Z' },
    orders: { wake: '1' },
    expected: 'stays',
  },
  {
    title: 'it wakes when nothing holds it any more',
    spec: { afterIdle: '30m' },
    status: asleepSince('25T11:00:00', 'Held'),
    expected: 'Awake WokenByHand',
  },
  {
    title: 'it is kept awake',
    spec: { asleep: false, afterIdle: '1m', schedule: { sleep: '* * * * *' } },
    status: awakeSince('20T00:00:00'),
    orders: { sleep: '1' },
    expected: 'stays',
  },
  {
    title: 'keeping it awake wakes it',
    spec: { asleep: false },
    status: asleepSince('25T11:00:00', 'Idle'),
    expected: 'Awake KeptAwake',
  },
]

describe('the sleep of a logical cluster', () => {
  for (const { title, expected, ...given } of cases)
    it(title, () => {
      expect(outcome(decided(given))).to.equal(expected)
    })

  it('changes nothing when nothing has changed, whatever it is', () => {
    for (const { expected: _, title, ...given } of cases) {
      const { patch } = decided(given)
      const status = merged(given.status ?? {}, patch ?? {}) as ClusterSleepStatus
      if (given.spec === undefined) continue
      const again = decided({ ...given, status })
      expect([again.patch, again.turns], title).to.deep.equal([undefined, undefined])
    }
  })

  it('says why it sleeps, and all that wakes it', () => {
    const { turns, nextMs } = decided({
      spec: { afterIdle: '30m', schedule: office },
      status: awakeSince('25T08:00:00'),
    })
    expect(turns?.message).to.equal(
      'no request of its users came for 30m; the first write of its users wakes it, its schedule at 2026-11-26T06:00:00Z, or kcp wake acme',
    )
    expect(nextMs).to.equal(at(noon))
    const held = decided({ spec: { asleep: true }, status: awakeSince('25T11:00:00') })
    expect(held.turns?.message).to.match(/kcp wake acme wakes it, and no write does$/)
  })

  it('is looked at again when time alone may change it, and never without a rule about time', () => {
    const next = (spec: ClusterSleep, status: ClusterSleepStatus): string | undefined => {
      const { nextMs } = decided({ spec, status })
      return nextMs === undefined ? undefined : new Date(nextMs).toISOString().slice(8, 19)
    }
    expect(next({ afterIdle: '30m' }, awakeSince('25T11:50:00'))).to.equal('25T12:23:00')
    expect(next({ schedule: office }, awakeSince('25T11:50:00'))).to.equal('25T19:00:00')
    expect(next({ afterIdle: '30m', schedule: office }, asleepSince('25T11:00:00', 'Idle'))).to.equal('26T06:00:00')
    expect(next({}, awakeSince('25T11:50:00'))).to.equal(undefined)
    expect(next({ afterIdle: '30m' }, asleepSince('25T11:00:00', 'Idle'))).to.equal(undefined)
  })
})

/** RFC 7396, for flat objects. */
function merged(object: object, patch: Readonly<Record<string, unknown>>): object {
  return Object.fromEntries(Object.entries({ ...object, ...patch }).filter(([, value]) => value !== null))
}
