import { expect } from 'chai'
import type { KubeObject, Revision } from '#apimachinery/meta/index.ts'
import { encodeObject, stampRevision } from './object-bytes.ts'
import { packedManagers } from './packed-managers.ts'

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

const whole = (object: KubeObject): Buffer => stampRevision(encodeObject(object), 7 as Revision)

/** What packing leaves of the last of three such objects. Throws if unpacking gives other bytes. */
function packedLength(objects: readonly KubeObject[]): number {
  const packed = objects.map((object) => packedManagers.pack(whole(object)))
  for (const [i, object] of objects.entries()) {
    const bytes = whole(object)
    expect(Buffer.from(packedManagers.unpack(packed[i] ?? bytes, bytes.length)).toString()).to.equal(bytes.toString())
  }
  return packed.at(-1)?.length ?? 0
}

const thrice = (of: (i: number) => KubeObject): KubeObject[] => [1, 2, 3].map(of)

describe('managedFields of objects that nobody reads', () => {
  it('are shared from the second object on that one program wrote', () => {
    const objects = thrice((i) => configMap(`c${i}`, `2026-11-22T10:00:0${i}Z`, { data: { grüße: '🙂' } }))
    expect(packedLength(objects)).to.be.lessThan(whole(objects[2] as KubeObject).length - 200)
  })

  it('are shared in part where one entry is rare', () => {
    const objects = thrice((i) => {
      const object = configMap(`c${i}`, `2026-11-22T10:00:0${i}Z`)
      const [first] = object.metadata.managedFields ?? []
      if (first !== undefined) first.manager = `rare-${i}`
      return object
    })
    const { length } = whole(objects[2] as KubeObject)
    expect(packedLength(objects)).to.be.within(length / 4, length - 100)
  })

  it('are the same after unpacking where the names of fields look like the end of managedFields', () => {
    const objects = thrice((i) => {
      const object = configMap(`c${i}`, `2026-11-22T10:00:0${i}Z`)
      const fieldsV1 = { 'f:finalizers': { 'v:[{"a":{}}]},"time":"': {} }, 'f:x}]}': { 'f:"time":"2026': {} } }
      for (const entry of object.metadata.managedFields ?? []) entry.fieldsV1 = fieldsV1
      return object
    })
    expect(packedLength(objects)).to.be.lessThan(whole(objects[2] as KubeObject).length)
  })

  for (const [title, object] of [
    ['has none', { kind: 'A', apiVersion: 'v1', metadata: { uid: 'u' } }],
    [
      'has the text in an annotation',
      { kind: 'A', apiVersion: 'v1', metadata: { uid: 'u', annotations: { a: '"managedFields":[{"manager":"x"}]}' } } },
    ],
  ] as const)
    it(`leaves an object alone that ${title}`, () => {
      const bytes = whole(object)
      for (let i = 0; i < 3; i++) expect(packedManagers.pack(bytes)).to.equal(bytes)
    })

  it('may be a member of another object', () => {
    const managedFields = [{ manager: 'some program with a long name', time: '2026-11-22T10:00:00Z' }]
    packedLength(thrice(() => ({ kind: 'A', apiVersion: 'v1', metadata: { uid: 'u' }, managedFields })))
  })
})
