import { expect } from 'chai'
import type { KubeObject, Revision } from '../../apimachinery/meta/index.ts'
import { decodeMetadata, decodeObject, encodeObject, stampRevision, toMemory } from './object-bytes.ts'
import { unpackedLength, unpackManagers } from './packed-managers.ts'

const revision = 7 as Revision

function configMap(name: string, time: string, rest: Partial<KubeObject> = {}): KubeObject {
  const fieldsV1 = { 'f:data': { '.': {}, 'f:grüße': {} }, 'f:metadata': { 'f:labels': { '.': {}, 'f:a': {} } } }
  const entry = { operation: 'Update', apiVersion: 'v1', time, fieldsType: 'FieldsV1', fieldsV1 }
  return {
    kind: 'ConfigMap',
    apiVersion: 'v1',
    metadata: {
      uid: 'u',
      managedFields: [
        { manager: 'one', ...entry },
        { manager: 'two', ...entry, subresource: 'status' },
      ],
      name,
    },
    ...rest,
  }
}

describe('managedFields of objects in memory', () => {
  const [first, second, third] = [1, 2, 3].map((i) =>
    encodeObject(configMap(`c${i}`, `2026-11-22T10:00:0${i}Z`, { data: { grüße: '🙂' } })),
  ) as [Buffer, Buffer, Buffer]

  it('are shared from the third object on that one program wrote', () => {
    toMemory(first, revision)
    toMemory(second, revision)
    const bytes = toMemory(third, revision)
    const whole = stampRevision(third, revision)
    expect(bytes.length).to.be.lessThan(whole.length - 200)
    expect(Buffer.from(unpackManagers(bytes)).toString()).to.equal(whole.toString())
    expect(unpackedLength(bytes)).to.equal(whole.length)
    expect(decodeObject(bytes)).to.deep.equal(decodeObject(whole))
    expect(decodeMetadata(bytes)).to.deep.equal(decodeMetadata(whole))
  })

  it('stay packed when the revision becomes another', () => {
    const bytes = stampRevision(toMemory(third, revision), 12 as Revision)
    expect(decodeMetadata(bytes).resourceVersion).to.equal('12')
    expect(toMemory(bytes, revision).length).to.equal(toMemory(third, revision).length)
  })

  it('that are packed in part are left as they are', () => {
    const rare = configMap('c4', '2026-11-22T10:00:04Z')
    for (const entry of rare.metadata.managedFields ?? []) entry.manager = `rare-${entry.manager ?? ''}`
    const bytes = toMemory(encodeObject(rare), revision)
    expect(Buffer.from(bytes).toString()).to.include('"manager":"rare-one"').and.include('\x01')
    expect(toMemory(bytes, 12 as Revision)).to.deep.equal(stampRevision(bytes, 12 as Revision))
  })

  for (const [title, object] of [
    ['has none', { kind: 'A', apiVersion: 'v1', metadata: { uid: 'u' } }],
    [
      'has such a list elsewhere',
      { kind: 'A', apiVersion: 'v1', metadata: { uid: 'u' }, managedFields: [{ manager: 'x' }] },
    ],
    [
      'has the text in an annotation',
      { kind: 'A', apiVersion: 'v1', metadata: { uid: 'u', annotations: { a: '"managedFields":[{"manager":"x"}]}' } } },
    ],
  ] as const)
    it(`leaves an object alone that ${title}`, () => {
      const bytes = encodeObject(object)
      for (let i = 0; i < 3; i++) expect(toMemory(bytes, revision)).to.deep.equal(stampRevision(bytes, revision))
    })
})
