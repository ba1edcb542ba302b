import { expect } from 'chai'
import type { MemberCluster } from '#crds/index.ts'
import { operatorMetrics } from '#operator/framework/operator-context.ts'
import { createMetrics } from '#telemetry/index.ts'
import { MemberCount, Revisions } from './controller.ts'

function member(status?: 'True' | 'False' | 'Unknown'): MemberCluster {
  const condition = { type: 'Ready', reason: 'Test', message: '', lastTransitionTime: '2026-01-01T00:00:00Z' }
  return {
    apiVersion: 'kcp.dev/v1alpha1',
    kind: 'MemberCluster',
    metadata: { name: 'east' },
    ...(status !== undefined && { status: { conditions: [{ ...condition, status }] } }),
  }
}

describe('the count of members', () => {
  it('follows them as they come, change and go', async () => {
    const metrics = createMetrics()
    const read = async (): Promise<Record<string, number>> => {
      const { body } = await metrics.scrape()
      const lines = [...body.matchAll(/^kcp_members\{ready="(\w+)"\} (\d+)$/gm)]
      return Object.fromEntries(lines.map(([, ready = '', value]) => [ready, Number(value)]))
    }
    const count = new MemberCount(operatorMetrics(metrics).members)
    expect(await read()).to.deep.equal({ True: 0, False: 0, Unknown: 0 })
    count.change(undefined, member())
    count.change(undefined, member('True'))
    expect(await read()).to.deep.equal({ True: 1, False: 0, Unknown: 1 })
    count.change(member('True'), member('Unknown'))
    count.change(member(), member('False'))
    expect(await read()).to.deep.equal({ True: 0, False: 1, Unknown: 1 })
    count.change(member('False'), undefined)
    expect(await read()).to.deep.equal({ True: 0, False: 0, Unknown: 1 })
    count[Symbol.dispose]()
    expect(await read()).to.deep.equal({ True: 0, False: 0, Unknown: 0 })
  })
})

describe('the revisions of members', () => {
  const revisions = new Revisions()
  for (const { title, member = 'east', uid = 'u', revision, expected } of [
    { title: 'are unknown at first', revision: '900', expected: false },
    { title: 'may stay', revision: '900', expected: false },
    { title: 'grow, compared as numbers', revision: '1000', expected: false },
    { title: 'are those of each member', member: 'west', revision: '5', expected: false },
    { title: 'go back after a restore from a backup', revision: '950', expected: true },
    { title: 'which is told once', revision: '951', expected: false },
    { title: 'mean nothing if another cluster answers', uid: 'v', revision: '3', expected: false },
    { title: 'may be no numbers', uid: 'v', revision: 'abc', expected: false },
  ]) {
    it(title, () => expect(revisions.hasGoneBack(member, { uid, revision })).to.equal(expected))
  }
})
