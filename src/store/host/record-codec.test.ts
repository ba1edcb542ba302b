import { expect } from 'chai'
import { clusterIdOf } from '#apimachinery/meta/index.ts'
import type { StorageRecord } from '#crds/index.ts'
import { Seal } from '#store/seal.ts'
import { defaultNamespacePrefix, isSealedResource, RecordCodec } from './record-codec.ts'

describe('RecordCodec', () => {
  const codec = new RecordCodec({
    namespacePrefix: defaultNamespacePrefix,
    seal: new Seal(new Uint8Array(32)),
    sealResource: isSealedResource,
    requireValue: () => undefined,
  })
  const key = { cluster: clusterIdOf('acme'), resource: 'nodes', namespace: '', name: '1' }

  it('reads the key that it wrote, with and without a namespace', () => {
    for (const namespace of ['', 'shop']) {
      const record = codec.encode({ ...key, namespace }, Buffer.from('{}'))
      expect(codec.keyOf(record)).to.deep.equal({ ...key, namespace })
    }
  })

  // Each of these values gives the Record the same name as the right value: only the check of its type can refuse it.
  for (const [what, edit] of Object.entries({
    'a namespace of null': { namespace: null },
    'a number for a name': { name: 1 },
    'a list for a resource': { resource: ['nodes'] },
  })) {
    it(`refuses a Record with ${what}`, () => {
      const record = { ...codec.encode(key, Buffer.from('{}')), ...edit } as unknown as StorageRecord
      expect(() => codec.keyOf(record)).to.throw('not where the object it holds belongs')
    })
  }
})
