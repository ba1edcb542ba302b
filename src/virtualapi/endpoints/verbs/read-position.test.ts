import { Buffer } from 'node:buffer'
import { expect } from 'chai'
import type { Revision } from '#apimachinery/meta/index.ts'
import { isStatusError } from '#apimachinery/status/index.ts'
import { listOptionsOf } from './list-options.ts'
import { encodeToken, listPosition, requireRevision } from './read-position.ts'

const revision = (value: number): Revision => value as Revision
const nowMs = Date.parse('2026-01-02T03:04:05Z')
const positionOf = (query: Record<string, string>) => {
  const { issuedMs: _, ...position } = listPosition(listOptionsOf(new URLSearchParams(query), 'list'), { nowMs })
  return position
}
const tokenOf = (content: unknown): string => Buffer.from(JSON.stringify(content)).toString('base64url')

function refusal(run: () => unknown): string {
  try {
    run()
  } catch (error) {
    if (!isStatusError(error)) throw error
    return `${error.code} ${error.message}`
  }
  throw new Error('there was no error')
}

describe('the position of a list', () => {
  const now = { at: undefined, notOlderThan: undefined, after: undefined }
  for (const { query, position } of [
    { query: {}, position: { ...now, limit: 0 } },
    { query: { limit: '-3' }, position: { ...now, limit: 0 } },
    { query: { limit: '5' }, position: { ...now, limit: 5 } },
    { query: { resourceVersion: '0' }, position: { ...now, limit: 0 } },
    { query: { resourceVersion: '7' }, position: { ...now, notOlderThan: 7, limit: 0 } },
    { query: { resourceVersion: '7', limit: '5' }, position: { ...now, at: 7, notOlderThan: 7, limit: 5 } },
    {
      query: { resourceVersion: '7', resourceVersionMatch: 'Exact' },
      position: { ...now, at: 7, notOlderThan: 7, limit: 0 },
    },
    {
      query: { resourceVersion: '7', resourceVersionMatch: 'NotOlderThan', limit: '5' },
      position: { ...now, notOlderThan: 7, limit: 5 },
    },
    {
      query: { continue: encodeToken(revision(7), 'shop/b', { issuedMs: nowMs - 299_000 }), limit: '5' },
      position: { at: 7, notOlderThan: undefined, limit: 5, after: 'shop/b' },
    },
    {
      query: { continue: encodeToken(-1, 'shop/b', { issuedMs: 0 }) },
      position: { at: undefined, notOlderThan: undefined, limit: 0, after: 'shop/b' },
    },
  ] as { query: Record<string, string>; position: unknown }[])
    it(`follows from ${JSON.stringify(query)}`, () => expect(positionOf(query)).to.deep.equal(position))

  const invalid = '400 invalid continue token: continue key is not valid: '
  for (const { title, query, error } of [
    {
      title: 'a continue token with a resourceVersion',
      query: { continue: encodeToken(revision(7), 'a/b', { issuedMs: nowMs }), resourceVersion: '7' },
      error: '400 specifying resource version is not allowed when using continue',
    },
    {
      title: 'a token that is no JSON',
      query: { continue: 'x' },
      error: `${invalid}it must be taken from an answer as it is`,
    },
    {
      title: 'a token of another version',
      query: { continue: tokenOf({ v: 'v2', rv: 1, start: 'a' }) },
      error: `${invalid}server does not recognize this encoded version v2`,
    },
    {
      title: 'a token without a revision',
      query: { continue: tokenOf({ v: 'meta.k8s.io/v1', rv: 0, start: 'a' }) },
      error: `${invalid}incorrect encoded start resourceVersion`,
    },
    {
      title: 'a token without a key',
      query: { continue: tokenOf({ v: 'meta.k8s.io/v1', rv: 1, start: '' }) },
      error: `${invalid}encoded start key empty`,
    },
  ])
    it(`refuses ${title}`, () => expect(refusal(() => positionOf(query))).to.equal(error))

  it('refuses a token of more than five minutes, and continues in the newest state with the token of that answer', () => {
    let error: unknown
    try {
      positionOf({ continue: encodeToken(revision(7), 'shop/b', { issuedMs: nowMs - 302_000 }) })
    } catch (thrown) {
      error = thrown
    }
    if (!isStatusError(error, 'Expired')) throw error
    const { continue: token = '' } = error.status.metadata as { continue?: string }
    expect(positionOf({ continue: token })).to.include({ at: undefined, after: 'shop/b' })
  })

  it('counts the five minutes of a list that continues in the newest state from there', () => {
    const options = listOptionsOf(new URLSearchParams({ continue: encodeToken(-1, 'shop/b', { issuedMs: 0 }) }), 'list')
    const { issuedMs } = listPosition(options, { nowMs })
    const next = encodeToken(revision(9), 'shop/c', { issuedMs })
    expect(positionOf({ continue: next })).to.include({ at: 9, after: 'shop/c' })
  })
})

describe('a resourceVersion', () => {
  for (const [text, value] of [
    ['0', 0],
    ['7', 7],
    ['007', 7],
  ] as const)
    it(`may be ${text}`, () => expect(requireRevision(text)).to.equal(value))

  for (const [text, why] of [
    ['x', 'invalid syntax'],
    ['-1', 'invalid syntax'],
    ['99999999999999999999', 'value out of range'],
  ] as const)
    it(`may not be ${text}`, () => {
      expect(refusal(() => requireRevision(text))).to.equal(
        `400 invalid resource version: resourceVersion: Invalid value: "${text}": strconv.ParseUint: parsing "${text}": ${why}`,
      )
    })
})
