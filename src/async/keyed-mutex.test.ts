import { expect } from 'chai'
import { KeyedMutex } from './keyed-mutex.ts'

describe('KeyedMutex', () => {
  const { signal } = new AbortController()

  it('is held by one caller at a time per key, in the order of requests, and drops unused keys', async () => {
    const mutex = new KeyedMutex()
    const order: number[] = []
    let inside = 0
    await Promise.all(
      [1, 2, 3].map(async (who) => {
        const leave = await mutex.take('a', signal)
        expect(++inside).to.equal(1)
        await Promise.resolve()
        order.push(who)
        inside--
        leave()
      }),
    )
    expect(order).to.deep.equal([1, 2, 3])
    expect(mutex.size).to.equal(0)
  })

  it('does not make callers of different keys wait', async () => {
    const mutex = new KeyedMutex()
    const leave = await mutex.take('a', signal)
    ;(await mutex.take('b', signal))()
    leave()
    expect(mutex.size).to.equal(0)
  })

  it('passes to the next caller when one gives up waiting, but not before the holder releases it', async () => {
    const mutex = new KeyedMutex()
    const first = await mutex.take('a', signal)
    const gone = new AbortController()
    const second = mutex.take('a', gone.signal)
    let third = false
    const last = mutex.take('a', signal).then((leave) => {
      third = true
      return leave
    })
    gone.abort(new Error('went away'))
    const error = await second.then(
      () => undefined,
      (reason: unknown) => reason,
    )
    expect(error).to.have.property('message', 'went away')
    expect(third).to.equal(false)
    first()
    ;(await last)()
    expect(mutex.size).to.equal(0)
  })
})
