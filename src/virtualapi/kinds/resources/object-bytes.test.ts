import { expect } from 'chai'
import fc from 'fast-check'
import { isDeepStrictEqual } from 'node:util'
import { encodeJson, type KubeObject, type Revision } from '#apimachinery/meta/index.ts'
import {
  annotateBytes,
  decodeMetadata,
  decodeObject,
  encodeObject,
  layOut,
  metadataStart,
  readFacts,
  replaceHead,
  requireObjectBytes,
  stampRevision,
} from './object-bytes.ts'

describe('the bytes of an encoded object', () => {
  it('have a buffer of exactly their size, because the event log keeps the whole buffer', () => {
    const bytes = encodeObject({ kind: 'ConfigMap', apiVersion: 'v1', metadata: { name: 'ключ' }, data: {} })
    expect(bytes.buffer.byteLength).to.equal(bytes.length)
    expect(decodeObject(bytes).metadata.name).to.equal('ключ')
  })
})

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

  it('yields the same facts, whether managedFields are in its metadata or nested deeper', () => {
    const managedFields = [{ manager: 'm', fieldsV1: { 'f:data': {} } }]
    const own = { name: 'a', uid: 'u', labels: { a: ',"managedFields":[{"' } }
    const facts = { uid: 'u', labels: own.labels, ownerUids: [], blockedUids: [] }
    const object = { kind: 'K', apiVersion: 'v1' }
    for (const bytes of [
      encodeObject({ ...object, metadata: { ...own, managedFields } }),
      encodeObject({ ...object, metadata: own, spec: { template: { metadata: { name: 'b', managedFields } } } }),
    ])
      expect(readFacts(stampRevision(bytes, 7 as Revision))).to.deep.equal(facts)
    const odd = { ...own, generateName: { name: 'b', managedFields } } as never
    expect(readFacts(encodeObject({ ...object, metadata: odd }))).to.deep.equal(facts)
  })

  for (const metadata of [
    { name: 'a' },
    { name: 'a', annotations: { b: '{"}' }, labels: {} },
    { name: 'a', annotations: {}, managedFields: [{ manager: 'm', fieldsV1: { 'f:data': {} } }] },
  ])
    it(`gets an annotation with the same bytes as an object that is encoded with it: ${JSON.stringify(metadata)}`, () => {
      const object = {
        kind: 'K',
        apiVersion: 'v1',
        spec: { metadata: { name: 'x', managedFields: [{ manager: 'n' }] } },
      }
      const annotated = { ...metadata, annotations: { ...metadata.annotations, 'kcp.dev/x': 'ключ' } }
      const [before, after] = [metadata, annotated].map((meta) =>
        stampRevision(encodeObject({ ...object, metadata: meta }), 7 as Revision),
      )
      expect(annotateBytes(before ?? Buffer.of(), { 'kcp.dev/x': 'ключ' }).toString()).to.equal(after?.toString())
    })

  it('is encoded to the same text if its managedFields are frozen, as those that objects share', () => {
    const entry = {
      manager: 'm',
      operation: 'Update',
      fieldsV1: { 'f:data': { 'f:a\u2028': {} } },
      subresource: 'status',
    }
    const object = { kind: 'K', apiVersion: 'v1', metadata: { name: 'a', managedFields: [entry, entry] } }
    const frozen = { ...entry, fieldsV1: Object.freeze(structuredClone(entry.fieldsV1)) }
    const metadata = { name: 'a', managedFields: [frozen, frozen] }
    expect(layOut({ ...object, metadata })).to.equal(layOut(object))
    const { managedFields } = metadata
    expect(layOut({ ...object, metadata: { managedFields } })).to.equal(
      '{"kind":"K","apiVersion":"v1","metadata":{"managedFields":' + encodeJson(managedFields) + '}}',
    )
  })

  it('is refused if it is cut off or missing', () => {
    expect(() => decodeMetadata(Buffer.from('{"metadata":{"a":"}'))).to.throw('is cut off')
    expect(() => decodeMetadata(Buffer.from('{}'))).to.throw('have no metadata')
  })
})

describe('the layout of an object whose root has unusual members', () => {
  // No name begins with a character that JSON escapes or contains a backslash: because of a bug (nodejs/node#63785),
  // JSON.parse confuses an escaped name with another one that it has seen at the same place.
  const anyKey = fc.string({ unit: 'binary' }).map((text) => `x${text.replaceAll('\\', '/')}`)
  const oddKey = fc.oneof(
    fc.constantFrom('0', '1', '-1', '01', '4294967294', '4294967295', '9007199254740993', '__proto__', 'constructor'),
    fc.constantFrom(
      '',
      'x"',
      '{"metadata":{',
      'x\u2028',
      'ключ',
      'x\ud800',
      '\u{1f511}',
      'Metadata',
      'resourceVersion',
    ),
    anyKey,
  )
  const oddValue = fc.oneof(
    fc.string().map((text) => JSON.stringify(text)),
    fc.constantFrom('{"metadata":{}}', '{"metadata":{"resourceVersion":"9"}}', '{"kind":"K","metadata":{"uid":"x"}}'),
    fc.constantFrom('null', '0', 'true', '[]', '{}', '{"2":{"metadata":{}},"a":{"1":[]}}'),
  )
  const members = fc.array(fc.tuple(oddKey, oddValue), { maxLength: 8 })
  const reserved = new Set(['kind', 'apiVersion', 'metadata'])
  const textOf = (pairs: readonly (readonly [string, string])[]): string =>
    pairs.map(([key, value]) => `${JSON.stringify(key)}:${value},`).join('')

  it('keeps every member through encoding, stamping, converting and decoding', () => {
    fc.assert(
      fc.property(members, members, members, (before, inMetadata, after) => {
        const root = (pairs: typeof before): string => textOf(pairs.filter(([key]) => !reserved.has(key)))
        const metadata = `${textOf(inMetadata.filter(([key]) => key !== 'resourceVersion' && key !== 'uid'))}"uid":"u"`
        // Parsed from text, so that "__proto__" is a member and the last of duplicates counts.
        const object = JSON.parse(
          `{${root(before)}"metadata":{${metadata}},"kind":"K",${root(after)}"apiVersion":"e.com/v1"}`,
        ) as KubeObject
        const atRest = encodeObject(object)
        requireObjectBytes(atRest)
        expect(isDeepStrictEqual(decodeObject(atRest), object), atRest.toString()).to.equal(true)

        const stamped = stampRevision(stampRevision(atRest, 7 as Revision), 8 as Revision)
        const wanted = { ...object, metadata: { ...object.metadata, resourceVersion: '8' } }
        expect(isDeepStrictEqual(decodeObject(stamped), wanted), stamped.toString()).to.equal(true)
        expect(isDeepStrictEqual(decodeMetadata(stamped), wanted.metadata)).to.equal(true)
        expect(readFacts(stamped).uid).to.equal('u')
        // Decoding and encoding again, as defaults on read do, keeps the layout: the revision is where readers expect
        // it.
        const again = Buffer.from(layOut(decodeObject(stamped)))
        expect(again.toString()).to.equal(stamped.toString())
        expect(metadataStart(again, 0)).to.equal(again.indexOf('"metadata":{"resourceVersion":"8"'))

        const converted = replaceHead(stamped, '"kind":"K","apiVersion":"e.com/v2",')
        expect(isDeepStrictEqual(decodeObject(converted), { ...wanted, apiVersion: 'e.com/v2' })).to.equal(true)
      }),
      { numRuns: 2000 },
    )
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
    ['an empty buffer', ''],
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
