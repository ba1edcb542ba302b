// policy, scheduling, coordination and events.k8s.io.
import type { JsonObject } from '#apimachinery/meta/index.ts'
import type { Row } from '#test/parity/support/compare-rows.ts'
import { kindRows } from './kind-table.ts'

const labels = { app: 'web' }
const meta = { labels }
const wide = (name: string): JsonObject => ({ name: `${name}-$ID` })
const selector = { matchLabels: labels }

export const limitingRows: readonly Row[] = [
  ...kindRows({
    object: {
      apiVersion: 'policy/v1',
      kind: 'PodDisruptionBudget',
      metadata: meta,
      spec: { minAvailable: 1, selector },
    },
    others: [
      ['nothing', { spec: null }],
      ['both', { spec: { maxUnavailable: '50%' } }],
      ['invalid numbers', { spec: { minAvailable: -1 } }],
      ['invalid percents', { spec: { minAvailable: null, maxUnavailable: '200%' } }],
      ['a text', { spec: { minAvailable: 'x' } }],
      ['an invalid selector', { spec: { selector: { matchExpressions: [{ key: 'a', operator: 'Huh' }] } } }],
      ['an unknown policy', { spec: { unhealthyPodEvictionPolicy: 'x' } }],
      ['no selector', { spec: { selector: null } }],
    ],
    updates: [
      ['minAvailable', { spec: { minAvailable: 2 } }],
      ['the selector', { spec: { selector: { matchLabels: { app: 'x' } } } }],
    ],
    parts: [
      [
        'status',
        'numbers',
        {
          status: {
            disruptionsAllowed: 1,
            currentHealthy: 2,
            desiredHealthy: 1,
            expectedPods: 2,
            observedGeneration: 1,
            disruptedPods: { a: '2020-01-01T00:00:00Z' },
          },
        },
      ],
      [
        'status',
        'negative',
        { status: { disruptionsAllowed: -1, currentHealthy: -1, desiredHealthy: -1, expectedPods: -1 } },
      ],
      ['status', 'invalid conditions', { status: { conditions: [{ type: 'a b', status: 'x' }] } }],
    ],
  }),
  ...kindRows({
    object: {
      apiVersion: 'scheduling.k8s.io/v1',
      kind: 'PriorityClass',
      metadata: wide('prio'),
      value: 1000,
      description: 'x',
    },
    others: [
      ['too much', { value: 2000000000 }],
      ['a reserved name', { metadata: { name: 'system-x' } }],
      ['an unknown policy', { preemptionPolicy: 'x' }],
      ['the default', { globalDefault: true }],
      ['no value', { value: null }],
    ],
    updates: [
      ['the value', { value: 5 }],
      ['the policy', { preemptionPolicy: 'Never' }],
      ['the description', { description: 'y' }],
    ],
  }),
  ...kindRows({
    object: {
      apiVersion: 'coordination.k8s.io/v1',
      kind: 'Lease',
      metadata: meta,
      spec: { holderIdentity: 'me', leaseDurationSeconds: 15, renewTime: '2020-01-01T00:00:00.000000Z' },
    },
    others: [
      ['nothing', { spec: null }],
      ['invalid numbers', { spec: { leaseDurationSeconds: 0, leaseTransitions: -1 } }],
      ['an invalid time', { spec: { renewTime: 'x' } }],
      ['a strategy', { spec: { strategy: 'x y', preferredHolder: 'a' } }],
      ['an empty holder', { spec: { holderIdentity: '' } }],
    ],
    updates: [['the holder', { spec: { holderIdentity: 'you', leaseTransitions: 1 } }]],
  }),
  ...kindRows({
    object: {
      apiVersion: 'events.k8s.io/v1',
      kind: 'Event',
      metadata: meta,
      eventTime: '2020-01-01T00:00:00.123456Z',
      reportingController: 'a.b/c',
      reportingInstance: 'i',
      action: 'Do',
      reason: 'Why',
      type: 'Normal',
      regarding: { kind: 'Pod', name: 'x', namespace: '$NS' },
      note: 'n',
    },
    alsoAs: ['v1'],
    others: [
      [
        'nothing',
        {
          eventTime: null,
          reportingController: null,
          reportingInstance: null,
          action: null,
          reason: null,
          type: null,
          regarding: null,
        },
      ],
      ['an invalid controller', { reportingController: 'x y' }],
      ['an unknown type', { type: 'x' }],
      [
        'long texts',
        {
          note: 'x'.repeat(1025),
          reason: 'y'.repeat(129),
          action: 'z'.repeat(129),
          reportingInstance: 'w'.repeat(129),
        },
      ],
      ['another namespace', { regarding: { namespace: 'x' } }],
      [
        'old fields',
        { deprecatedCount: 5, deprecatedFirstTimestamp: '2020-01-01T00:00:00Z', deprecatedSource: { component: 'x' } },
      ],
      ['a series', { series: { count: 2, lastObservedTime: '2020-01-01T00:00:00.000001Z' } }],
      ['a series with one event', { series: { count: 1 } }],
    ],
    updates: [
      ['a series', { series: { count: 2, lastObservedTime: '2020-01-01T00:00:00.000001Z' } }],
      ['the reason', { reason: 'Other' }],
      ['the note', { note: 'other' }],
    ],
  }),
]
