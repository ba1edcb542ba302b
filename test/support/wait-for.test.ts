import { expect } from 'chai'
import { waitFor } from './wait-for.ts'

describe('waiting for a condition', () => {
  for (const { title, answers, expected } of [
    {
      title: 'returns the first result other than undefined, null or false',
      answers: [undefined, null, false, 'yes'],
      expected: 'yes',
    },
    { title: 'accepts zero and the empty string as results', answers: [undefined, 0], expected: 0 },
  ]) {
    it(title, async () => {
      const left = [...answers]
      expect(await waitFor(() => left.shift(), { what: 'x', deadlineMs: 2000, intervalMs: 1 })).to.equal(expected)
      expect(left).to.deep.equal([])
    })
  }

  it('retries when a probe throws', async () => {
    let calls = 0
    const probe = (): number => {
      if (++calls < 3) throw new Error('refused')
      return calls
    }
    expect(await waitFor(probe, { what: 'x', deadlineMs: 2000, intervalMs: 1 })).to.equal(3)
  })

  it('reports at the deadline what it waited for and what it saw last', async () => {
    const refused = (): never => {
      throw new Error('connection refused')
    }
    const error = await waitFor(refused, { what: 'the server', deadlineMs: 20, intervalMs: 1 }).then(
      () => undefined,
      (reason: unknown) => reason,
    )
    expect(String(error)).to.contain('20 ms').and.contain('the server').and.contain('connection refused')
  })

  it('ends at the deadline even if the probe never settles', async () => {
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
