import { expect } from 'chai'
import type { ClusterId, Revision } from '#apimachinery/meta/index.ts'
import { EventLog } from './event-log.ts'
import { StoreError, type StoreEvent } from './store.ts'

const { signal } = new AbortController()
const start = 1 as Revision
const key = { cluster: 'a' as ClusterId, resource: 'maps', namespace: '', name: 'm' }
const put = (revision: number): Exclude<StoreEvent, { type: 'progress' }> => ({
  type: 'put',
  object: { key, revision: revision as Revision, createRevision: start, value: new Uint8Array(1) },
})

function openLog(): EventLog {
  const log = new EventLog()
  log.start(start)
  return log
}

describe('the event log of a store', () => {
  it('accepts any number of changes at once', async () => {
    const log = openLog()
    const live = log.watch(start, signal)
    for (let revision = 2; revision <= 300_001; revision++) log.add(put(revision))
    log.flush()
    live.end()
    const seen: number[] = []
    for await (const batch of live) seen.push(batch.length)
    expect(seen).to.deep.equal([300_000])
    expect(log.knows(start)).to.equal(false)
    expect(log.knows(300_001 as Revision)).to.equal(true)
  })

  it('ends its watches, also later ones, with the error that broke the stream', async () => {
    const log = openLog()
    const ended = async (watch: AsyncIterable<unknown>): Promise<string> => {
      try {
        for await (const _ of watch);
        return 'it ended'
      } catch (error) {
        return (error as Error).message
      }
    }
    const before = ended(log.watch(start, signal))
    log.fail(new StoreError('Unavailable', 'the thread is gone'))
    expect(await before).to.equal('the thread is gone')
    expect(await ended(log.watch(start, signal))).to.equal('the thread is gone')
  })
})
