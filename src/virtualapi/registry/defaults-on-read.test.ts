import { expect } from 'chai'
import { encodeJson } from '../../apimachinery/meta/index.ts'
import type { SchemaNode } from '../../apimachinery/schema/index.ts'
import { defaultsOnRead } from './defaults-on-read.ts'
import { decodeObject } from './object-bytes.ts'

const schema: SchemaNode = {
  type: 'object',
  properties: {
    spec: { type: 'object', properties: { size: { type: 'integer', default: 3 }, color: { type: 'string' } } },
  },
}
const bytesOf = (spec: object): Uint8Array =>
  Buffer.from(encodeJson({ kind: 'Widget', apiVersion: 'e.com/v1', metadata: { name: 'w' }, spec }))

describe('defaults on read', () => {
  it('are shown where an object was written before they were there', () => {
    const complete = defaultsOnRead(schema)
    const bytes = bytesOf({ color: 'red' })
    const shown = complete?.(bytes) ?? bytes
    expect(decodeObject(shown)).to.deep.include({ spec: { color: 'red', size: 3 } })
    expect(complete?.(bytes), 'decoded once').to.equal(shown)
  })

  it('leave the bytes of a complete object alone', () => {
    const bytes = bytesOf({ size: 5 })
    expect(defaultsOnRead(schema)?.(bytes)).to.equal(bytes)
  })

  it('cost nothing where a schema has none, recursive ones too', () => {
    const recursive: SchemaNode = { type: 'object', properties: {} }
    recursive.additionalProperties = recursive
    expect(defaultsOnRead(recursive)).to.equal(undefined)
    expect(defaultsOnRead(undefined)).to.equal(undefined)
  })
})
