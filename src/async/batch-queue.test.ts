import { expect } from 'chai'
import { BatchQueue } from './batch-queue.ts'

const overflow = (): Error => new Error('the reader is too slow')

async function readAll<T>(queue: BatchQueue<T>): Promise<(T[] | string)[]> {
  const seen: (T[] | string)[] = []
  try {
    for await (const batch of queue) seen.push([...batch])
    seen.push('end')
  } catch (error) {
    seen.push((error as Error).message)
  }
  return seen
}

describe('a batch queue', () => {
  it('returns batches in order, including those pushed before the end', async () => {
    const queue = new BatchQueue<number>({ maxSize: 10, overflow })
    queue.push([1, 2], 2)
    queue.push([], 0)
    queue.push([3], 1)
    queue.end()
    queue.push([4], 1)
    expect(await readAll(queue)).to.deep.equal([[1, 2], [3], 'end'])
  })

  it('hands a batch to a waiting reader', async () => {
    const queue = new BatchQueue<number>({ maxSize: 1, overflow })
    const reading = readAll(queue)
    for (let n = 0; n < 5; n++) {
      queue.push([n], 100)
      await new Promise(setImmediate)
    }
    queue.end()
    expect(await reading).to.deep.equal([[0], [1], [2], [3], [4], 'end'])
  })

  it('accepts one batch of any size, and fails at the next', async () => {
    let ended = 0
    const queue = new BatchQueue<number>({ maxSize: 10, overflow, onEnd: () => ended++ })
    queue.push([1], 100)
    expect(queue.isOpen).to.equal(true)
    queue.push([2], 1)
    expect(queue.isOpen).to.equal(false)
    expect(await readAll(queue)).to.deep.equal(['the reader is too slow'])
    expect(await readAll(queue)).to.deep.equal(['end'])
    expect(ended).to.equal(1)
  })

  it('rejects a waiting reader when it fails', async () => {
    const queue = new BatchQueue<number>({ maxSize: 10, overflow })
    const reading = readAll(queue)
    queue.fail(new Error('the store is gone'))
    expect(await reading).to.deep.equal(['the store is gone'])
  })

  it('ends when its reader stops iterating', async () => {
    let ended = 0
    const queue = new BatchQueue<number>({ maxSize: 10, overflow, onEnd: () => ended++ })
    queue.push([1], 1)
    for await (const batch of queue) if (batch[0] === 1) break
    expect([queue.isOpen, ended]).to.deep.equal([false, 1])
  })
})
