import { expect } from 'chai'
import { statusError, type StatusError } from '#apimachinery/status/index.ts'
import { Obstacle } from './parties.ts'
import { obstacleOf } from './phases.ts'

describe('the obstacle in an error', () => {
  const status = (reason: string, message = 'no'): StatusError => statusError(403, reason, message)
  for (const { title, error, expected } of [
    {
      title: 'is that of a move',
      error: new Obstacle('StillAttached', 'a node has it', { againSeconds: 1 }),
      expected: { reason: 'StillAttached', message: 'a node has it', againSeconds: 1 },
    },
    {
      title: 'is the reason of a member',
      error: status('Forbidden'),
      expected: { reason: 'Forbidden', message: 'no', againSeconds: 5 },
    },
    {
      title: 'is no reason that a condition may not have',
      error: status('no reason!'),
      expected: { reason: 'Failed', message: 'no', againSeconds: 5 },
    },
    { title: 'is no empty reason', error: status(''), expected: { reason: 'Failed', message: 'no', againSeconds: 5 } },
    {
      title: 'has a bounded message',
      error: status('Forbidden', 'x'.repeat(100_000)),
      expected: { reason: 'Forbidden', message: 'x'.repeat(2048), againSeconds: 5 },
    },
    {
      title: 'is any other error',
      error: new Error('broken'),
      expected: { reason: 'Failed', message: 'Error: broken', againSeconds: 10 },
    },
  ])
    it(title, () => expect(obstacleOf(error)).to.deep.equal(expected))
})
