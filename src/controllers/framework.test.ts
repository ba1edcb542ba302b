import { expect } from 'chai'
import { retryAfterSeconds } from './framework.ts'

describe('the next reconcile to an object that finalizers still hold', () => {
  const deletionTimestamp = '2026-01-01T00:00:00Z'
  for (const { afterSeconds, retry } of [
    { afterSeconds: -5, retry: 0.2 },
    { afterSeconds: 0, retry: 0.2 },
    { afterSeconds: 8, retry: 2 },
    { afterSeconds: 120, retry: 30 },
    { afterSeconds: 86_400, retry: 30 },
  ]) {
    it(`is after ${retry} s when it was deleted ${afterSeconds} s ago`, () =>
      expect(retryAfterSeconds(deletionTimestamp, Date.parse(deletionTimestamp) + afterSeconds * 1000)).to.equal(retry))
  }
})
