import { expect } from 'chai'
import { limitReplicas, noHistory, type LimitInput, type Limited } from './scaling-rules.ts'

const now = Date.parse('2026-01-01T01:00:00Z')
const limit = (given: Partial<LimitInput>): Limited =>
  limitReplicas({
    current: 10,
    desired: 10,
    min: 1,
    max: 100,
    behavior: undefined,
    history: noHistory,
    nowMs: now,
    ...given,
  })

describe('how fast an autoscaler scales', () => {
  const changed = (by: number, secondsAgo: number): LimitInput['history'] => ({
    recommendations: [],
    changes: [{ atMs: now - secondsAgo * 1000, by }],
  })
  const recommended = (replicas: number, secondsAgo: number): LimitInput['history'] => ({
    recommendations: [{ atMs: now - secondsAgo * 1000, replicas }],
    changes: [],
  })
  for (const { title, given, replicas, reason } of [
    { title: 'by a hundred percent in 15 s', given: { desired: 50 }, replicas: 20, reason: 'ScaleUpLimit' },
    {
      title: 'by four pods in 15 s if that is more',
      given: { current: 2, desired: 50 },
      replicas: 6,
      reason: 'ScaleUpLimit',
    },
    {
      title: 'counting what was added in these 15 s',
      given: { current: 15, desired: 50, history: changed(5, 10) },
      replicas: 20,
      reason: 'ScaleUpLimit',
    },
    {
      title: 'no more counting it after that',
      given: { current: 15, desired: 50, history: changed(5, 16) },
      replicas: 30,
      reason: 'ScaleUpLimit',
    },
    { title: 'up to the maximum', given: { desired: 12, max: 11 }, replicas: 11, reason: 'TooManyReplicas' },
    {
      title: 'down only to the highest number of the last five minutes',
      given: { desired: 2, history: recommended(8, 299) },
      replicas: 8,
      reason: 'DesiredWithinRange',
    },
    {
      title: 'down after five minutes',
      given: { desired: 2, history: recommended(2, 200) },
      replicas: 2,
      reason: 'DesiredWithinRange',
    },
    {
      title: 'down to the minimum',
      given: { desired: 2, min: 3, history: recommended(2, 200) },
      replicas: 3,
      reason: 'TooFewReplicas',
    },
    {
      title: 'down by a policy',
      given: {
        desired: 2,
        behavior: {
          scaleDown: { stabilizationWindowSeconds: 0, policies: [{ type: 'Percent', value: 10, periodSeconds: 60 }] },
        },
        history: recommended(2, 200),
      },
      replicas: 9,
      reason: 'ScaleDownLimit',
    },
    {
      title: 'not at all where a direction is disabled',
      given: { desired: 20, behavior: { scaleUp: { selectPolicy: 'Disabled' } } },
      replicas: 10,
      reason: 'ScaleUpLimit',
    },
    {
      title: 'up only to the lowest number of a window',
      given: { desired: 20, behavior: { scaleUp: { stabilizationWindowSeconds: 60 } }, history: recommended(12, 59) },
      replicas: 12,
      reason: 'DesiredWithinRange',
    },
    {
      title: 'by the slowest policy where that is asked for',
      given: { desired: 50, behavior: { scaleUp: { selectPolicy: 'Min' } } },
      replicas: 14,
      reason: 'ScaleUpLimit',
    },
  ] as { title: string; given: Partial<LimitInput>; replicas: number; reason: string }[])
    it(title, () => {
      const found = limit(given)
      expect([found.replicas, found.limited.reason]).to.deep.equal([replicas, reason])
    })

  it('does not shrink because it has just begun', () => {
    const { replicas, stabilized, history } = limit({ desired: 2 })
    expect([replicas, stabilized?.reason]).to.deep.equal([10, 'ScaleDownStabilized'])
    expect(history.recommendations.map((one) => one.replicas)).to.deep.equal([10, 2])
  })

  it('forgets what no rule looks at any more', () => {
    const history = {
      recommendations: [{ atMs: now - 301_000, replicas: 9 }],
      changes: [{ atMs: now - 16_000, by: 1 }],
    }
    expect(limit({ history }).history).to.deep.equal({ recommendations: [{ atMs: now, replicas: 10 }], changes: [] })
  })
})
