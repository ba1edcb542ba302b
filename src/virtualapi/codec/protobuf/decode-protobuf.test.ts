import { readFileSync } from 'node:fs'
import { expect } from 'chai'
import fc from 'fast-check'
import { StatusError } from '#apimachinery/status/index.ts'
import { decodeProtobuf } from './index.ts'
import { durationText } from './special-types.ts'

interface Vector {
  title: string
  protobuf: string
  object: Record<string, unknown>
}
const vectors = JSON.parse(
  readFileSync(new URL('../../../../test/vectors/protobuf.json', import.meta.url), 'utf8'),
) as Vector[]
const bytesOf = (vector: Vector): Uint8Array => new Uint8Array(Buffer.from(vector.protobuf, 'base64'))

/** A length-delimited field with a number below 16. */
function lengthDelimited(number: number, value: Uint8Array): Buffer {
  const head = [number * 8 + 2]
  let length = value.length
  for (; length > 127; length = Math.floor(length / 128)) head.push((length % 128) | 128)
  return Buffer.concat([Buffer.from([...head, length]), value])
}

/** `k8s\0` and an envelope around `raw`. */
function envelope(apiVersion: string, kind: string, raw: Uint8Array): Uint8Array {
  const meta = Buffer.concat([lengthDelimited(1, Buffer.from(apiVersion)), lengthDelimited(2, Buffer.from(kind))])
  return Buffer.concat([Buffer.from('k8s\0'), lengthDelimited(1, meta), lengthDelimited(2, raw)])
}

/** Fails unless decoding succeeds or throws a StatusError with a 4xx code. */
function expectObjectOr4xx(body: Uint8Array): void {
  try {
    decodeProtobuf(body)
  } catch (error) {
    if (!(error instanceof StatusError) || ![400, 413, 415].includes(error.code)) throw error
  }
}

describe('protobuf bodies of built-in kinds', () => {
  for (const vector of vectors)
    it(`become the JSON that Go writes: ${vector.title}`, () => {
      const { object, kind, apiVersion } = decodeProtobuf(bytesOf(vector))
      expect({ kind, apiVersion }).to.deep.equal({
        kind: vector.object['kind'],
        apiVersion: vector.object['apiVersion'],
      })
      // Compares texts, because the order of members must be Go's too.
      expect(JSON.stringify(object)).to.equal(JSON.stringify(vector.object))
    })
})

describe('invalid protobuf bodies', () => {
  for (const { title, body, code, message } of [
    { title: 'an empty body', body: new Uint8Array(), code: 400, message: 'prefix' },
    { title: 'JSON', body: Buffer.from('{}'), code: 400, message: 'prefix' },
    { title: 'a prefix alone', body: Buffer.from('k8s\0'), code: 400, message: 'kind and apiVersion' },
    {
      title: 'a custom resource',
      body: envelope('example.dev/v1', 'Widget', Buffer.of()),
      code: 415,
      message: 'Widget',
    },
    {
      title: 'a kind named like a member of Object.prototype',
      body: envelope('v1', 'constructor', Buffer.of()),
      code: 415,
      message: 'constructor',
    },
    {
      title: 'a length beyond the end',
      body: envelope('v1', 'Pod', Buffer.of(0x0a, 0x7f)),
      code: 400,
      message: 'unexpected end',
    },
    {
      title: 'a length of 2^63',
      body: envelope('v1', 'Pod', Buffer.of(0x0a, 255, 255, 255, 255, 255, 255, 255, 255, 127)),
      code: 400,
      message: 'unexpected end',
    },
    {
      title: 'a number without end',
      body: envelope('v1', 'Pod', Buffer.alloc(12, 0xff)),
      code: 400,
      message: 'too long',
    },
    { title: 'a group', body: envelope('v1', 'Pod', Buffer.of(0x0b)), code: 400, message: 'wire type' },
    {
      title: 'a field of another wire type',
      body: envelope('v1', 'Pod', Buffer.of(0x08, 0x01)),
      code: 400,
      message: 'wrong wire type',
    },
    // PodSpec.containers is field 2. An empty container takes two bytes and becomes three JSON values.
    {
      title: 'more objects than a JSON body may have',
      body: envelope('v1', 'Pod', lengthDelimited(2, Buffer.alloc(200_002, Buffer.of(0x12, 0)))),
      code: 413,
      message: 'limit is 100000 values',
    },
    {
      title: 'few values on the wire that become too many in JSON',
      body: envelope('v1', 'Pod', lengthDelimited(2, Buffer.alloc(80_000, Buffer.of(0x12, 0)))),
      code: 413,
      message: 'limit is 100000 values',
    },
    {
      title: 'raw JSON with too many values',
      body: envelope(
        'apps/v1',
        'ControllerRevision',
        lengthDelimited(2, lengthDelimited(1, Buffer.from(JSON.stringify(Array(100_001).fill(0))))),
      ),
      code: 413,
      message: 'limit is 100000 values',
    },
  ])
    it(`are refused: ${title}`, () => {
      expect(() => decodeProtobuf(body))
        .to.throw(StatusError, message)
        .with.property('code', code)
    })

  it('do not include bodies with as many values as a JSON body may have', () => {
    const entry = (index: number): Buffer =>
      lengthDelimited(2, Buffer.concat([lengthDelimited(1, Buffer.from(`k${index}`)), lengthDelimited(2, Buffer.of())]))
    // ConfigMap.data is field 2.
    const { object } = decodeProtobuf(
      envelope('v1', 'ConfigMap', Buffer.concat(Array.from({ length: 99_000 }, (_, index) => entry(index)))),
    )
    expect(Object.keys(object['data'] ?? {})).to.have.length(99_000)
  })

  it('are refused if schemas nest too deep', () => {
    let raw: Uint8Array = Buffer.of()
    // JSONSchemaProps.not is field 26.
    const field = (value: Uint8Array): Buffer => {
      const head = [0xd2, 0x01]
      let length = value.length
      for (; length > 127; length = Math.floor(length / 128)) head.push((length % 128) | 128)
      return Buffer.concat([Buffer.from([...head, length]), value])
    }
    for (let level = 0; level < 5000; level++) raw = field(raw)
    // spec(2).versions(7).schema(4).openAPIV3Schema(1)
    const body = envelope(
      'apiextensions.k8s.io/v1',
      'CustomResourceDefinition',
      lengthDelimited(2, lengthDelimited(7, lengthDelimited(4, lengthDelimited(1, raw)))),
    )
    expect(() => decodeProtobuf(body)).to.throw(StatusError, 'nested too deep')
  })

  it('cause a 4xx error at most, wherever a body is cut off', () => {
    const pod = vectors.find(({ title }) => title === 'v1/Pod filled 0')
    const whole = pod === undefined ? new Uint8Array() : bytesOf(pod)
    for (let end = 0; end < whole.length; end += 7) expectObjectOr4xx(whole.subarray(0, end))
  })

  it('cause a 4xx error at most, whichever bits are flipped', () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...vectors),
        fc.array(fc.tuple(fc.nat(), fc.integer({ min: 0, max: 255 })), { minLength: 1, maxLength: 8 }),
        (vector, flips) => {
          const body = bytesOf(vector)
          for (const [at, value] of flips) body[at % body.length] = value
          expectObjectOr4xx(body)
        },
      ),
      { numRuns: 2000 },
    )
  })

  it('cause a 4xx error at most, with random bytes in the envelope', () => {
    fc.assert(
      fc.property(fc.constantFrom(...vectors), fc.uint8Array({ maxLength: 200 }), ({ object }, raw) => {
        expectObjectOr4xx(envelope(String(object['apiVersion']), String(object['kind']), raw))
      }),
      { numRuns: 2000 },
    )
  })
})

describe('durations as Go prints them', () => {
  for (const [nanoseconds, text] of [
    [0, '0s'],
    [1, '1ns'],
    [1500, '1.5µs'],
    [2_000_000, '2ms'],
    [1_500_000_000, '1.5s'],
    [60_000_000_000, '1m0s'],
    [3_602_500_000_000, '1h0m2.5s'],
    [-60_000_000_000, '-1m0s'],
  ] as const)
    it(text, () => expect(durationText(nanoseconds)).to.equal(text))
})
