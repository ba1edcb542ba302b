import { expect } from 'chai'
import { Turns } from './turns.ts'

describe('turns', () => {
  const { signal } = new AbortController()

  it('come one at a time for a key, in the order of asking, and forget a key nobody wants', async () => {
    const turns = new Turns()
    const order: number[] = []
    let inside = 0
    await Promise.all(
      [1, 2, 3].map(async (who) => {
        const leave = await turns.take('a', signal)
        expect(++inside).to.equal(1)
        await Promise.resolve()
        order.push(who)
        inside--
        leave()
      }),
    )
    expect(order).to.deep.equal([1, 2, 3])
    expect(turns.size).to.equal(0)
  })

  it('of different keys do not wait for one another', async () => {
    const turns = new Turns()
    const leave = await turns.take('a', signal)
    ;(await turns.take('b', signal))()
    leave()
    expect(turns.size).to.equal(0)
  })

  it('of somebody who gave up waiting pass to the next, not before it is due', async () => {
    const turns = new Turns()
    const first = await turns.take('a', signal)
    const gone = new AbortController()
    const second = turns.take('a', gone.signal)
    let third = false
    const last = turns.take('a', signal).then((leave) => {
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
    expect(turns.size).to.equal(0)
  })
})
