import { expect } from 'chai'
import fc from 'fast-check'
import type { Revision } from '../../apimachinery/meta/index.ts'
import {
  decodeMetadata,
  decodeObject,
  encodeObject,
  readFacts,
  requireObjectBytes,
  stampRevision,
} from './object-bytes.ts'

describe('metadata in the bytes of an object', () => {
  for (const [title, annotation] of [
    ['braces', '{}}{{'],
    ['quotes', '"}\\"'],
    ['a backslash at the end', '\\'],
    ['text that looks like metadata', '"metadata":{"name":"other"}'],
    ['text in other scripts', 'ключ 鍵 \u{1f511} \u2028'],
  ] as const)
    it(`is found despite: ${title}`, () => {
      const metadata = { name: 'a', annotations: { [annotation]: annotation } }
      const bytes = encodeObject({ kind: 'ConfigMap', apiVersion: 'v1', metadata, data: { metadata: '{' } })
      expect(decodeMetadata(bytes)).to.deep.equal(metadata)
      expect(decodeMetadata(stampRevision(bytes, 7 as Revision))).to.deep.equal({ ...metadata, resourceVersion: '7' })
    })

  it('equals the metadata of the fully decoded object, for random objects', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.string()), fc.json(), (annotations, data) => {
        const object = {
          kind: 'K',
          apiVersion: 'v1',
          metadata: { name: 'a', annotations },
          data: JSON.parse(data) as never,
        }
        const bytes = encodeObject(object)
        expect(decodeMetadata(bytes)).to.deep.equal(decodeObject(bytes).metadata)
      }),
    )
  })

  it('yields the facts of an entry', () => {
    const owner = { apiVersion: 'v1', kind: 'Pod', name: 'p', uid: 'u1' }
    const ownerReferences = [owner, { ...owner, uid: 'u2', blockOwnerDeletion: true }]
    const metadata = { name: 'a', uid: 'u', labels: { a: 'b' }, ownerReferences }
    const bytes = encodeObject({ kind: 'ConfigMap', apiVersion: 'v1', metadata })
    expect(readFacts(bytes)).to.deep.equal({
      uid: 'u',
      labels: { a: 'b' },
      ownerUids: ['u1', 'u2'],
      blockedUids: ['u2'],
    })
  })

  it('is refused if it is cut off or missing', () => {
    expect(() => decodeMetadata(Buffer.from('{"metadata":{"a":"}'))).to.throw('is cut off')
    expect(() => decodeMetadata(Buffer.from('{}'))).to.throw('have no metadata')
  })
})

describe('requireObjectBytes', () => {
  const object = { kind: 'ConfigMap', apiVersion: 'v1', metadata: { name: 'a', uid: 'u' }, data: { a: 'b' } }
  const whole = encodeObject(object).toString()

  for (const [title, text] of [
    ['an encoded object', whole],
    ['a tombstone', 'null'],
  ] as const)
    it(`accepts ${title}`, () => requireObjectBytes(Buffer.from(text)))

  for (const [title, text] of [
    ['nothing', ''],
    ['half an object', whole.slice(0, -4)],
    ['an object and more', `${whole}}`],
    ['an array', '[]'],
    ['a string', '"metadata"'],
    ['an object without uid', whole.replace('"uid":"u"', '"b":"u"')],
    ['an object without metadata', '{"kind":"ConfigMap","apiVersion":"v1"}'],
    ['an object in another layout', JSON.stringify(object, undefined, 2)],
  ] as const)
    it(`refuses ${title}`, () => {
      expect(() => requireObjectBytes(Buffer.from(text))).to.throw()
    })
})
