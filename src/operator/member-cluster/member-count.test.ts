import { expect } from 'chai'
import type { MemberCluster } from '#crds/index.ts'
import { createMetrics } from '#telemetry/index.ts'
import { operatorMetrics } from '#operator/framework/operator-metrics.ts'
import { MemberCount } from './member-count.ts'

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
