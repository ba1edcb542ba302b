import { expect } from 'chai'
import { once } from 'node:events'
import { Rounds, type Ways } from './rounds.ts'

describe('a round of a move', () => {
  const started = async (dial: Ways['source']) => {
    const life = new AbortController()
    const over = Promise.withResolvers<string>()
    const rounds = new Rounds(life.signal, (move) => over.resolve(move))
    await rounds.credentialsOf('v-1')
    rounds.start('v-1', { mode: 'copy' }, { source: dial, target: dial, direct: { whyNot: 'no' } })
    return { state: rounds.stateOf('v-1'), over: over.promise }
  }

  it('that fails is told to the next reconcile', async () => {
    const { state, over } = await started(() => Promise.reject(new Error('no way')))
    expect(await over).to.equal('v-1')
    expect(state.ended).to.have.property('error')
    expect(state.round).to.equal(undefined)
  })

  it('that the operator ends has not failed', async () => {
    const { state, over } = await started(async (signal) => {
      await once(signal, 'abort')
      throw new Error('no way')
    })
    state.round?.end()
    expect(await over).to.equal('v-1')
    expect([state.ended, state.round]).to.deep.equal([undefined, undefined])
  })
})
