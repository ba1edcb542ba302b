import { expect } from 'chai'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { expiryMs } from './job-expiry.ts'

const job = (spec: object, conditions: object[]): KubeObject => ({
  apiVersion: 'batch/v1',
  kind: 'Job',
  metadata: { name: 'once' },
  spec,
  status: { conditions },
})
const at = (type: string, status: string): object => ({ type, status, lastTransitionTime: '2026-01-01T00:00:00Z' })
const ended = Date.parse('2026-01-01T00:00:00Z')

describe('the time at which a Job is deleted', () => {
  for (const { title, spec, conditions, expected } of [
    {
      title: 'some seconds after it is complete',
      spec: { ttl: 5 },
      conditions: [at('Complete', 'True')],
      expected: ended + 5000,
    },
    { title: 'at once with 0 seconds', spec: { ttl: 0 }, conditions: [at('Failed', 'True')], expected: ended },
    { title: 'never without the field', spec: {}, conditions: [at('Complete', 'True')], expected: undefined },
    { title: 'not while it runs', spec: { ttl: 5 }, conditions: [], expected: undefined },
    {
      title: 'not while its end is only known to come',
      spec: { ttl: 5 },
      conditions: [at('SuccessCriteriaMet', 'True')],
      expected: undefined,
    },
    {
      title: 'not for a condition that is False',
      spec: { ttl: 5 },
      conditions: [at('Failed', 'False')],
      expected: undefined,
    },
  ] as { title: string; spec: { ttl?: number }; conditions: object[]; expected: number | undefined }[]) {
    it(title, () => {
      const { ttl } = spec
      expect(expiryMs(job(ttl === undefined ? {} : { ttlSecondsAfterFinished: ttl }, conditions))).to.equal(expected)
    })
  }
})
