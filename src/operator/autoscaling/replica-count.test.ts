import { expect } from 'chai'
import { replicasFor, type MeasuredPod, type ResourceTarget } from './replica-count.ts'

const now = Date.parse('2026-01-01T01:00:00Z')
const nanos = (milli: number): bigint => BigInt(milli) * 1_000_000n

/** A pod that has run for an hour, of which 100 milli are requested. */
function pod(name: string, used: number | undefined, more: Partial<MeasuredPod> = {}): MeasuredPod {
  return {
    name,
    phase: 'Running',
    isDeleting: false,
    ready: { isTrue: true, sinceMs: now - 3_500_000 },
    startMs: now - 3_600_000,
    request: nanos(100),
    ...(used !== undefined && { usage: { nanos: nanos(used), atMs: now - 1000, windowMs: 15_000 } }),
    ...more,
  }
}
const pods = (...used: (number | undefined)[]): MeasuredPod[] => used.map((milli, i) => pod(`p${i}`, milli))
const cpu = (utilization: number): ResourceTarget => ({ resource: 'cpu', target: { utilization } })

describe('the replicas that a metric asks for', () => {
  const unready = { ready: { isTrue: false, sinceMs: now - 10_000 }, startMs: now - 20_000 }
  for (const { title, given, target = cpu(50), expected } of [
    { title: 'are more above the target', given: pods(75, 75, 75, 75), expected: 6 },
    { title: 'are fewer below it', given: pods(20, 30, 25, 25), expected: 2 },
    { title: 'stay within a tenth of it', given: pods(55, 55, 45, 50), expected: 4 },
    { title: 'count to the next whole one', given: pods(60, 60, 60), expected: 4 },
    {
      title: 'are those of an average value',
      given: pods(300, 500),
      target: { resource: 'memory', target: { averageNanos: nanos(200) } },
      expected: 4,
    },
    {
      title: 'stay where pods that start may take the load',
      given: [...pods(60, 60), pod('new', 90, unready)],
      expected: 3,
    },
    {
      title: 'grow by the pods that serve where those that start do not suffice',
      given: [...pods(120, 120), pod('new', 90, unready)],
      expected: 5,
    },
    {
      title: 'count memory of pods that start',
      given: [...pods(60, 60), pod('new', 90, unready)],
      target: { resource: 'memory', target: { utilization: 50 } },
      expected: 5,
    },
    {
      title: 'do not fall for pods that are not measured, which count as busy',
      given: pods(10, 10, undefined),
      expected: 3,
    },
    {
      title: 'grow less for pods that are not measured, which count as idle',
      given: pods(150, 150, undefined),
      expected: 6,
    },
    {
      title: 'leave out pods that end or have failed',
      given: [...pods(75, 75), pod('a', 0, { isDeleting: true }), pod('b', 0, { phase: 'Failed' })],
      expected: 3,
    },
    {
      title: 'leave out pods that are pending when fewer are needed',
      given: [...pods(10, 10, 10), pod('a', undefined, { phase: 'Pending' })],
      expected: 1,
    },
  ] as { title: string; given: MeasuredPod[]; target?: ResourceTarget; expected: number }[])
    it(title, () =>
      expect(
        replicasFor(
          given,
          given.filter(({ isDeleting, phase }) => !isDeleting && phase !== 'Failed').length,
          target,
          now,
        ).replicas,
      ).to.equal(expected),
    )

  it('are told with what was measured', () => {
    expect(replicasFor(pods(75, 25), 2, cpu(50), now)).to.deep.equal({
      replicas: 2,
      utilization: 50,
      averageNanos: nanos(50),
    })
  })

  for (const { title, given, message } of [
    { title: 'without pods', given: [], message: 'no pods returned by selector' },
    {
      title: 'without metrics',
      given: pods(undefined, undefined),
      message: 'did not receive metrics for targeted pods',
    },
    {
      title: 'with a container that requests nothing',
      given: [pod('p', 1, { request: { missingIn: 'main' } })],
      message: 'missing request for cpu in container main of Pod p',
    },
  ] as { title: string; given: MeasuredPod[]; message: string }[])
    it(`cannot be told ${title}`, () => expect(() => replicasFor(given, 1, cpu(50), now)).to.throw(message))
})
