import { expect } from 'chai'
import type { JsonObject } from '#apimachinery/meta/index.ts'
import { encodeProtobuf } from './protobuf/index.ts'
import { effortToReformat, isLargeBody, isLargeObject } from './effort.ts'

const values = (count: number): Uint8Array => Buffer.from(JSON.stringify({ items: new Array<number>(count).fill(1) }))

describe('the effort to reformat a document', () => {
  for (const { title, body, json, yaml } of [
    { title: 'a small one', body: values(10), json: 'little', yaml: 'little' },
    { title: 'a hundred objects', body: values(3000), json: 'much', yaml: 'much' },
    { title: 'more values than one object may have', body: values(150_000), json: 'much', yaml: 'too much' },
    { title: 'a list of everything', body: values(1_500_000), json: 'too much', yaml: 'too much' },
    {
      title: 'one that is deeper than an object may be',
      body: Buffer.from(`${'['.repeat(500)}${'1,'.repeat(3000)}1${']'.repeat(500)}`),
      json: 'much',
      yaml: 'much',
    },
  ] as const)
    it(title, () => {
      expect(effortToReformat(body, 'json')).to.equal(json)
      expect(effortToReformat(body, 'yaml')).to.equal(yaml)
    })
})

describe('what is too large for the main thread', () => {
  for (const { title, count, body, object } of [
    { title: 'a small object', count: 10, body: false, object: false },
    { title: 'a large object', count: 3000, body: true, object: true },
    {
      title: 'a body that will be refused; an object that defaults made larger',
      count: 150_000,
      body: false,
      object: true,
    },
  ])
    it(title, () => {
      expect(isLargeBody(values(count), 'application/json')).to.equal(body)
      expect(isLargeObject(values(count))).to.equal(object)
    })
})

describe('a body of protobuf', () => {
  const type = 'application/vnd.kubernetes.protobuf'
  const pod = (containers: JsonObject[]): Uint8Array =>
    encodeProtobuf({ apiVersion: 'v1', kind: 'Pod', metadata: { name: 'a' }, spec: { containers } }) ?? Buffer.alloc(0)
  const many = (count: number): JsonObject[] => Array.from({ length: count }, () => ({ name: '' }))

  it('is large if its values are many, however few bytes they take', () => {
    const body = pod(many(800))
    expect(body.length).to.be.below(24 * 1024)
    expect(isLargeBody(body, type)).to.equal(true)
  })

  it('is not large if it has few values or cannot be decoded', () => {
    expect(isLargeBody(pod([{ name: 'x'.repeat(10_000) }]), type)).to.equal(false)
    expect(isLargeBody(Buffer.alloc(10_000, 'no protobuf'), type)).to.equal(false)
  })
})
