import { setImmediate as nextPass } from 'node:timers/promises'
import { expect } from 'chai'
import { ResponseAccount } from './response-account.ts'

describe('the account of unfinished answers', () => {
  it('lets only the oldest be read further above its limit, and the others after its end', async () => {
    const account = new ResponseAccount({ maxBytes: 100 })
    const [first, second, third] = [account.begin(), account.begin(), account.begin()]
    expect(second.hold(60)).to.equal(undefined)
    const going: string[] = []
    const waits = (name: string, waiting: Promise<void> | undefined) => waiting?.then(() => going.push(name))
    void waits('third', third.hold(60))
    expect(second.hold(60)).to.equal(undefined)
    void waits('first', first.hold(10))
    await nextPass()
    // The first one holds something now, and so is the oldest of those that do.
    expect(going).to.deep.equal([])
    expect(first.hold(10)).to.equal(undefined)
    second[Symbol.dispose]()
    await nextPass()
    expect(going).to.have.members(['third'])
    third[Symbol.dispose]()
    expect(account.begin().hold(80)).to.equal(undefined)
    first[Symbol.dispose]()
  })

  it('never holds more than its limit, and one answer more', async () => {
    const account = new ResponseAccount({ maxBytes: 1000 })
    let [held, most, done] = [0, 0, 0]
    const read = async (chunks: number): Promise<void> => {
      using response = account.begin()
      for (let i = 0; i < chunks; i++) {
        held += 10
        most = Math.max(most, held)
        await response.hold(10)
        await nextPass()
      }
      held -= chunks * 10
      done++
    }
    await Promise.all(Array.from({ length: 200 }, (_, i) => read(1 + ((i * 7) % 40))))
    expect(done).to.equal(200)
    // Each of those that wait holds the chunk with which it was stopped.
    expect(most).to.be.lessThan(1000 + 400 + 200 * 10)
    expect(held).to.equal(0)
  })
})
