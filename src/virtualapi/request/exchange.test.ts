import { expect } from 'chai'
import { Exchange } from './exchange.ts'

describe('an exchange that waits for webhooks', () => {
  it('lends its place once, however many it waits for, and takes it back when all have answered or failed', async () => {
    const { signal } = new AbortController()
    const request = { method: 'POST', url: '/', rawHeaders: [], peerCertificate: undefined, signal }
    const exchange = new Exchange({ ...request, body: () => Promise.resolve(new Uint8Array()) })
    let lent = 0
    exchange.lendPlace = () => {
      lent++
      return () => lent--
    }
    const [first, second] = [Promise.withResolvers<string>(), Promise.withResolvers<string>()]
    const responses = [exchange.whileWaiting(first.promise), exchange.whileWaiting(second.promise)]
    expect(lent).to.equal(1)
    first.resolve('yes')
    expect(await responses[0]).to.equal('yes')
    expect(lent).to.equal(1)
    second.reject(new Error('no'))
    await Promise.allSettled(responses)
    expect(lent).to.equal(0)
  })
})
