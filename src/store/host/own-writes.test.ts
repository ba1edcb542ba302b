import { expect } from 'chai'
import type { ClusterId } from '#apimachinery/meta/index.ts'
import type { StorageRecord } from '#crds/index.ts'
import type { ObjectKey } from '#store/store.ts'
import { OwnWrites } from './own-writes.ts'

describe('OwnWrites', () => {
  const key = (name: string): ObjectKey => ({ cluster: 'c1' as ClusterId, resource: 'configmaps', namespace: '', name })
  const recordOf = (name: string, data: string): StorageRecord => ({
    apiVersion: 'storage.kcp.dev/v1',
    kind: 'Record',
    metadata: { name: `hash-of-${name}`, namespace: 'bucket' },
    ...{ cluster: 'c1', resource: 'configmaps', name, data },
  })
  const sent = (writes: OwnWrites, name: string, data: string): StorageRecord => {
    const record = recordOf(name, data)
    writes.add(record, key(name), Buffer.from(data))
    return record
  }

  it('know the object of a reported write, once', () => {
    const writes = new OwnWrites()
    sent(writes, 'a', '{"a":1}')
    expect(String(writes.take(recordOf('a', '{"a":1}'))?.value)).to.equal('{"a":1}')
    expect(writes.take(recordOf('a', '{"a":1}'))).to.equal(undefined)
  })

  for (const { title, reported } of [
    { title: 'another payload', reported: recordOf('a', '{"a":2}') },
    { title: 'the name of another object', reported: { ...recordOf('a', '{"a":1}'), name: 'b' } },
    { title: 'another logical cluster', reported: { ...recordOf('a', '{"a":1}'), cluster: 'c2' } },
  ]) {
    it(`do not know a Record with ${title}`, () => {
      const writes = new OwnWrites()
      sent(writes, 'a', '{"a":1}')
      expect(writes.take(reported)).to.equal(undefined)
    })
  }

  it('forget a refused write, but not a later one of the same object', () => {
    const writes = new OwnWrites()
    const refused = sent(writes, 'a', '{"a":1}')
    sent(writes, 'a', '{"a":2}')
    writes.forget(refused)
    expect(writes.take(recordOf('a', '{"a":2}'))).to.not.equal(undefined)
  })

  it('keep no more than 16 MiB while nothing is reported', () => {
    const writes = new OwnWrites()
    const data = 'x'.repeat(1024 * 1024)
    for (let n = 0; n < 20; n++) sent(writes, `n${n}`, data)
    expect(writes.take(recordOf('n0', data))).to.equal(undefined)
    expect(writes.take(recordOf('n19', data))).to.not.equal(undefined)
  })
})
