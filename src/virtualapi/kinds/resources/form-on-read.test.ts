import { expect } from 'chai'
import { encodeJson } from '#apimachinery/meta/index.ts'
import type { SchemaNode } from '#apimachinery/schema/index.ts'
import { upgradeOnRead } from './upgrade-on-read.ts'
import { decodeObject } from './object-bytes.ts'

const schema: SchemaNode = {
  type: 'object',
  properties: {
    spec: { type: 'object', properties: { size: { type: 'integer', default: 3 }, color: { type: 'string' } } },
  },
}
const bytesOf = (spec: object): Uint8Array =>
  Buffer.from(encodeJson({ kind: 'Widget', apiVersion: 'e.com/v1', metadata: { name: 'w' }, spec }))

const unchanged = { changed: false }

describe('upgradeOnRead', () => {
  it('adds defaults that the definition got after the object was written', () => {
    const complete = upgradeOnRead(schema, unchanged)
    const bytes = bytesOf({ color: 'red' })
    const shown = complete?.(bytes) ?? bytes
    expect(decodeObject(shown)).to.deep.include({ spec: { color: 'red', size: 3 } })
    expect(complete?.(bytes), 'decoded once').to.equal(shown)
  })

  it('leaves the bytes of a complete object alone', () => {
    const bytes = bytesOf({ size: 5 })
    expect(upgradeOnRead(schema, unchanged)?.(bytes)).to.equal(bytes)
  })

  it('is undefined for a schema without defaults, even a recursive one', () => {
    const recursive: SchemaNode = { type: 'object', properties: {} }
    recursive.additionalProperties = recursive
    expect(upgradeOnRead(recursive, unchanged)).to.equal(undefined)
    expect(upgradeOnRead(undefined, unchanged)).to.equal(undefined)
  })

  it('drops fields that the changed definition no longer has', () => {
    const shown = upgradeOnRead(schema, { changed: true })?.(bytesOf({ size: 1, shape: 'round' }))
    expect(decodeObject(shown ?? bytesOf({}))).to.deep.include({ spec: { size: 1 } })
  })

  it('adds at most 16 KiB, leaves out only what does not fit, and does not cache a much larger result', () => {
    const flags = Object.fromEntries(Array.from({ length: 4000 }, (_, i) => [`f${i}`, { default: true }]))
    const properties: SchemaNode['properties'] = { large: { default: 'x'.repeat(100_000) }, ...flags }
    const complete = upgradeOnRead({ type: 'object', properties: { spec: { type: 'object', properties } } }, unchanged)
    const bytes = bytesOf({})
    const shown = complete?.(bytes) ?? bytes
    const { spec } = decodeObject(shown)
    expect(spec).to.include({ f0: true, f2000: true })
    expect(spec).not.to.have.any.keys('large', 'f3000')
    expect(shown.length).to.be.below(64 * 1024)
    expect(complete?.(bytes), 'made anew').not.to.equal(shown)
  })
})
