import { expect } from 'chai'
import { findThread } from './find-thread.ts'

const computing = (flow: string) => ({ flow, calls: 0 })
const waiting = (flow: string, count: number) => Array.from({ length: count }, () => ({ flow, calls: 1 }))
const thread = (...jobs: { flow: string; calls: number }[]) => ({ jobs })

describe('the offload thread for a job of a logical cluster', () => {
  const idle = thread()
  const withOwn = thread(computing('acme'))
  const withOther = thread(computing('bob'))
  const withWebhooks = thread(...waiting('acme', 3))
  const full = thread(...['a', 'b', 'c', 'd'].flatMap((flow) => waiting(flow, 4)))
  for (const { title, threads, waitingFlows = 1, expected } of [
    { title: 'is an idle one', threads: [withOther, idle], expected: idle },
    { title: 'is the one that computes for it, while nobody else waits', threads: [idle, withOwn], expected: withOwn },
    { title: 'must be waited for, while others wait', threads: [withOwn], waitingFlows: 2, expected: undefined },
    { title: 'is another one while all compute for others', threads: [withOther], expected: 'another' },
    { title: 'is one where jobs wait for webhooks only', threads: [withWebhooks], expected: withWebhooks },
    { title: 'is another one while all hold what they can', threads: [full], expected: 'another' },
    {
      title: 'must be waited for while four of its jobs wait for webhooks, in all threads',
      threads: [withWebhooks, thread(...waiting('acme', 1)), idle],
      expected: undefined,
    },
  ])
    it(title, () => expect(findThread(threads, { flow: 'acme', waitingFlows })).to.equal(expected))

  it('is there for others while the webhooks of one hang', () => {
    const hanging = thread(...waiting('acme', 4))
    expect(findThread([hanging], { flow: 'bob', waitingFlows: 2 })).to.equal(hanging)
  })
})
