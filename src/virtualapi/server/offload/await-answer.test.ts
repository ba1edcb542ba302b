import { Worker } from 'node:worker_threads'
import { expect } from 'chai'
import { awaitAnswer } from './await-answer.ts'

/** Notifies without an answer, as long as the main thread waits, and then answers. */
const notifier = `
  const { workerData } = require('node:worker_threads')
  const pause = new Int32Array(new SharedArrayBuffer(4))
  for (let early = 0; early < 3;) {
    early += Atomics.notify(workerData, 0)
    Atomics.wait(pause, 0, 0, 1)
  }
  Atomics.store(workerData, 1, 1)
  Atomics.add(workerData, 0, 1)
  Atomics.notify(workerData, 0)
`

describe('the wait for an answer', () => {
  it('does not end with the late notification of an answer before it', async () => {
    const shared = new Int32Array(new SharedArrayBuffer(8))
    const worker = new Worker(notifier, { eval: true, workerData: shared })
    const ended = new Promise((resolve) => worker.once('exit', resolve))
    awaitAnswer(shared, 0)
    const hasAnswered = Atomics.load(shared, 1)
    await worker.terminate()
    await ended
    expect(hasAnswered).to.equal(1)
  })

  it('ends at once where the answer came before it', () => {
    const shared = new Int32Array(new SharedArrayBuffer(4))
    Atomics.add(shared, 0, 1)
    awaitAnswer(shared, 0)
  })
})
