import { expect } from 'chai'
import { KeyedMutex } from './keyed-mutex.ts'

describe('KeyedMutex', () => {
  const { signal } = new AbortController()

  it('is held by one at a time for a key, in the order of asking, and forgets a key that nobody wants', async () => {
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

  it('of different keys do not wait for one another', async () => {
    const mutex = new KeyedMutex()
    const leave = await mutex.take('a', signal)
    ;(await mutex.take('b', signal))()
    leave()
    expect(mutex.size).to.equal(0)
  })

  it('of somebody who gave up waiting pass to the next, not before it is due', async () => {
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
