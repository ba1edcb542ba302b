import { randomBytes } from 'node:crypto'
import { expect } from 'chai'
import { clusterIdOf } from '#apimachinery/meta/index.ts'
import type { KubeClient } from '#client/index.ts'
import type { StorageRecord } from '#crds/index.ts'
import { EventLog } from '#store/event-log.ts'
import { Seal } from '#store/seal.ts'
import { defaultNamespacePrefix, RecordCodec } from './record-codec.ts'
import { RecordStream } from './record-stream.ts'

describe('the start of a stream of Records', () => {
  const cluster = clusterIdOf('acme')
  const codec = new RecordCodec({
    namespacePrefix: defaultNamespacePrefix,
    sealResource: () => false,
    seal: new Seal(randomBytes(32)),
    requireValue: () => {
      throw new Error('payloads are not looked at')
    },
  })
  const recordOf = (name: string, revision: number): StorageRecord => {
    const record = codec.encode({ cluster, resource: 'configmaps', namespace: 'shop', name }, Buffer.from('{"ü":1}'))
    return { ...record, metadata: { ...record.metadata, resourceVersion: String(revision) } }
  }

  it('reads all pages and keys, no payload, and leaves out what is not where it belongs', async () => {
    const misplaced = recordOf('misplaced', 3)
    misplaced.name = 'elsewhere'
    const ofItsOwn = ['revisions', 'deletions'].map((name) => {
      const metadata = { name, namespace: codec.bucket(0), resourceVersion: '4' }
      return { ...recordOf(name, 4), cluster: '', metadata }
    })
    const pages = [[recordOf('a', 1), recordOf('b', 2)], [misplaced, ...ofItsOwn], [recordOf('c', 5)]]
    const asked: (string | undefined)[] = []
    const client = {
      list: (_: unknown, { continue: token }: { continue?: string }) => {
        asked.push(token)
        const page = Number(token ?? 0)
        const more = page + 1 < pages.length ? String(page + 1) : ''
        const metadata = { resourceVersion: '9', continue: more }
        return Promise.resolve({ kind: 'RecordList', apiVersion: 'storage.kcp.dev/v1', metadata, items: pages[page] })
      },
    } as unknown as KubeClient
    const problems: string[] = []
    const { signal } = new AbortController()
    const renewals = { at: () => undefined, changed: () => undefined, interrupted: () => undefined }
    const onProblem = (_: string, error: unknown): unknown => problems.push(String(error))
    const stream = new RecordStream({ client, codec, log: new EventLog(), onProblem, signal, renewals })
    await stream.start(signal)
    expect(asked).to.deep.equal([undefined, '1', '2'])
    expect([...stream.index.all()].map(([, { key, revision, bytes }]) => [key.name, revision, bytes])).to.deep.equal([
      ['a', 1, 8],
      ['b', 2, 8],
      ['c', 5, 8],
    ])
    expect([stream.index.size, stream.index.bytes, stream.revision]).to.deep.equal([3, 24, 9])
    expect(problems).to.have.length(1)
    expect(problems[0]).to.contain('is not where the object it holds belongs')
  })
})
