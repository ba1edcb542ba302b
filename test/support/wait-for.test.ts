import { expect } from 'chai'
import { waitFor } from './wait-for.ts'

describe('waiting for a condition', () => {
  for (const { title, answers, expected } of [
    { title: 'gives the first answer that is something', answers: [undefined, null, false, 'yes'], expected: 'yes' },
    { title: 'takes zero and the empty string for answers', answers: [undefined, 0], expected: 0 },
  ]) {
    it(title, async () => {
      const left = [...answers]
      expect(await waitFor(() => left.shift(), { what: 'x', deadlineMs: 2000, intervalMs: 1 })).to.equal(expected)
      expect(left).to.deep.equal([])
    })
  }

  it('goes on when a probe throws', async () => {
    let calls = 0
    const probe = (): number => {
      if (++calls < 3) throw new Error('refused')
      return calls
    }
    expect(await waitFor(probe, { what: 'x', deadlineMs: 2000, intervalMs: 1 })).to.equal(3)
  })

  it('says at the deadline what it waited for and what it saw last', async () => {
    const refused = (): never => {
      throw new Error('connection refused')
    }
    const error = await waitFor(refused, { what: 'the server', deadlineMs: 20, intervalMs: 1 }).then(
      () => undefined,
      (reason: unknown) => reason,
    )
    expect(String(error)).to.contain('20 ms').and.contain('the server').and.contain('connection refused')
  })

  it('ends at the deadline although the probe never answers', async () => {
    const error = await waitFor(() => new Promise<string>(() => undefined), { what: 'it', deadlineMs: 20 }).catch(
      (reason: unknown) => reason,
    )
    expect(String(error)).to.contain('the deadline passed during the probe')
  })

  it('rejects with the reason of an aborted signal', async () => {
    const controller = new AbortController()
    const waiting = waitFor(() => false, { what: 'x', deadlineMs: 5000, signal: controller.signal })
    controller.abort(new Error('enough'))
    expect(String(await waiting.catch((reason: unknown) => reason))).to.contain('enough')
  })
})
