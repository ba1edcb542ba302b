import { readFileSync } from 'node:fs'
import { expect } from 'chai'
import fc from 'fast-check'
import { integerOfText, type JsonObject } from '#apimachinery/meta/index.ts'
import { decodeProtobuf, encodeListItem, encodeProtobuf, protobufListFrame } from './index.ts'

interface Vector {
  title: string
  protobuf: string
  object: JsonObject
}
const vectors = JSON.parse(
  readFileSync(new URL('../../../../test/vectors/protobuf.json', import.meta.url), 'utf8'),
) as Vector[]

/** Of these, JSON does not tell all: bytes that are empty and not absent, and how raw JSON inside was escaped. */
const ambiguous = new Set([
  'admissionregistration.k8s.io/v1/ValidatingWebhookConfiguration filled 0',
  'apiextensions.k8s.io/v1/CustomResourceDefinition filled 0',
  'apps/v1/ControllerRevision filled 0',
  'resource.k8s.io/v1/ResourceClaim filled 0',
  'resource.k8s.io/v1/ResourceClaim filled 1',
])

describe('protobuf answers of built-in kinds', () => {
  it('keep integers of 64 bits exact', () => {
    const integer = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }).map((value) => integerOfText(String(value)))
    fc.assert(
      fc.property(integer, (tolerationSeconds) => {
        const spec = { containers: null, tolerations: [{ tolerationSeconds }] }
        const pod = { apiVersion: 'v1', kind: 'Pod', metadata: {}, spec }
        const { object } = decodeProtobuf(encodeProtobuf(pod) ?? Buffer.of())
        expect(object['spec']).to.deep.equal(spec)
      }),
    )
  })

  for (const { title, object } of vectors.filter((vector) => ambiguous.has(vector.title)))
    it(`are decoded to the same object: ${title}`, () =>
      expect(decodeProtobuf(encodeProtobuf(object) ?? Buffer.of()).object).to.deep.equal(object))

  for (const { title, protobuf, object } of vectors.filter((vector) => !ambiguous.has(vector.title)))
    it(`are the bytes that Go writes: ${title}`, () =>
      expect(encodeProtobuf(object)?.toString('hex')).to.equal(Buffer.from(protobuf, 'base64').toString('hex')))

  it('do not exist for custom resources and for documents that are no objects', () => {
    expect(encodeProtobuf({ apiVersion: 'example.dev/v1', kind: 'Widget' })).to.equal(undefined)
    expect(encodeProtobuf({ major: '1' })).to.equal(undefined)
  })

  it('of lists are the same in slices', () => {
    const item = { metadata: { name: 'a' }, data: { text: 'x'.repeat(300) } }
    const list = { kind: 'ConfigMapList', apiVersion: 'v1', metadata: { resourceVersion: '7' }, items: [item, item] }
    const items = list.items.map((one) => encodeListItem(one, { apiVersion: 'v1', kind: 'ConfigMap' }))
    const { before, after } = protobufListFrame(list, Buffer.concat(items).length)
    const sliced = Buffer.concat([before, ...items, after])
    expect(sliced.equals(encodeProtobuf(list) ?? Buffer.of())).to.equal(true)
    expect(decodeProtobuf(sliced).object['items']).to.have.length(2)
  })
})
