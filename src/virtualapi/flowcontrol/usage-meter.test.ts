import { expect } from 'chai'
import type { ClusterId } from '#apimachinery/meta/index.ts'
import { UsageMeter } from './usage-meter.ts'

describe('the meter of requests and watches', () => {
  const [a, b] = ['a', 'b'] as ClusterId[] as [ClusterId, ClusterId]
  it('counts each request once, and the time of watches to the moment', () => {
    let now = 0
    const meter = new UsageMeter(() => now)
    meter.request(a)
    meter.request(a)
    const end = meter.watch(b)
    now = 1500
    const other = meter.watch(b)
    now = 2000
    expect([...meter.take()]).to.deep.equal([
      [a, { requests: 2, watchSeconds: 0 }],
      [b, { requests: 0, watchSeconds: 2.5 }],
    ])
    now = 3000
    end()
    end()
    now = 4000
    other()
    now = 9000
    expect([...meter.take()], 'two for a second, and one for another').to.deep.equal([
      [b, { requests: 0, watchSeconds: 3 }],
    ])
    expect([...meter.take()], 'nothing is kept of what is idle').to.deep.equal([])
  })
})
