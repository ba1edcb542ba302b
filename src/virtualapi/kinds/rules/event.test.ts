import { expect } from 'chai'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { eventRules, eventsV1Rules } from './event.ts'

const manager = { manager: 'a', operation: 'Update' as const, apiVersion: 'v1', fieldsType: 'FieldsV1' as const }
const at = (second: number): string => new Date(Date.UTC(2026, 0, 1, 0, 0, second)).toISOString()
const event = (more: object, metadata: object = {}, time = '1'): KubeObject => ({
  apiVersion: 'v1',
  kind: 'Event',
  metadata: { name: 'web.1', ...metadata, managedFields: [{ ...manager, time }] },
  ...{ reason: 'BackOff', message: 'back-off', count: 1, lastTimestamp: at(0) },
  ...more,
})
const series = (count: number, second: number): object => ({ series: { count, lastObservedTime: at(second) } })

describe('an update of an Event', () => {
  for (const { title, next, old = event({}), renewal } of [
    {
      title: 'that counts it again is a renewal',
      next: event({ count: 2, lastTimestamp: at(10) }, { resourceVersion: '9' }, '2'),
      renewal: true,
    },
    { title: 'of its series is one', next: event(series(3, 10)), old: event(series(2, 0)), renewal: true },
    { title: 'that begins a series is none', next: event(series(2, 10)), renewal: false },
    { title: 'after a long time is none', next: event({ count: 2, lastTimestamp: at(31) }), renewal: false },
    {
      title: 'into the past is none',
      next: event({ lastTimestamp: at(0) }),
      old: event({ lastTimestamp: at(1) }),
      renewal: false,
    },
    { title: 'without a time is none', next: event({ count: 2, lastTimestamp: undefined }), renewal: false },
    { title: 'of the message is none', next: event({ count: 2, message: 'other' }), renewal: false },
    { title: 'of an annotation is none', next: event({ count: 2 }, { annotations: { a: 'b' } }), renewal: false },
  ])
    it(title, () => {
      expect(eventRules.isRenewal?.(next, old)).to.equal(renewal)
      expect(eventsV1Rules.isRenewal?.(next, old)).to.equal(renewal)
    })
})
