import { expect } from 'chai'
import { isStatusError } from '#apimachinery/status/index.ts'
import { integerOf, listOptionsOf } from './list-options.ts'

const optionsOf = (query: string, kind: 'list' | 'watch') => listOptionsOf(new URLSearchParams(query), kind)

/** The messages of the causes of a 422, or the message of another error; undefined if there is none. */
function errorOf(run: () => unknown): unknown {
  try {
    run()
    return undefined
  } catch (error) {
    if (!isStatusError(error)) throw error
    return error.code === 422 ? error.status.details?.causes?.map(({ message }) => message) : error.message
  }
}

describe('the ListOptions of a query', () => {
  it('have defaults', () => {
    expect(optionsOf('', 'list')).to.deep.equal({
      resourceVersion: '',
      match: '',
      limit: 0,
      timeoutSeconds: 0,
      token: '',
      sendInitialEvents: undefined,
      bookmarks: false,
    })
  })

  it('are read from the query', () => {
    const query = 'resourceVersion=7&resourceVersionMatch=Exact&limit=5&timeoutSeconds=30&allowWatchBookmarks=true'
    expect(optionsOf(query, 'list')).to.include({
      resourceVersion: '7',
      match: 'Exact',
      limit: 5,
      timeoutSeconds: 30,
      bookmarks: true,
    })
    expect(optionsOf('continue=abc', 'list')).to.include({ token: 'abc' })
  })

  for (const { query, initial, match } of [
    { query: '', initial: true, match: 'NotOlderThan' },
    { query: 'resourceVersion=0', initial: true, match: 'NotOlderThan' },
    { query: 'resourceVersion=7', initial: undefined, match: '' },
    { query: 'sendInitialEvents=false&resourceVersionMatch=NotOlderThan', initial: false, match: 'NotOlderThan' },
  ])
    it(`of the watch "${query}" ${initial === true ? 'begin' : 'do not begin'} with the initial state`, () => {
      expect(optionsOf(query, 'watch')).to.include({ sendInitialEvents: initial, match })
    })

  const match = 'resourceVersionMatch'
  for (const { kind, query, errors } of [
    {
      kind: 'list',
      query: `${match}=Exact`,
      errors: [`Forbidden: ${match} is forbidden unless resourceVersion is provided`],
    },
    {
      kind: 'list',
      query: `${match}=Exact&resourceVersion=7&continue=x`,
      errors: [`Forbidden: ${match} is forbidden when continue is provided`],
    },
    {
      kind: 'list',
      query: `${match}=Exact&resourceVersion=0`,
      errors: [`Forbidden: ${match} "exact" is forbidden for resourceVersion "0"`],
    },
    {
      kind: 'list',
      query: `${match}=Newest&resourceVersion=7`,
      errors: ['Unsupported value: "Newest": supported values: "Exact", "NotOlderThan", ""'],
    },
    { kind: 'list', query: 'sendInitialEvents=true', errors: ['Forbidden: sendInitialEvents is forbidden for list'] },
    {
      kind: 'watch',
      query: 'sendInitialEvents=true',
      errors: [`Forbidden: sendInitialEvents requires setting ${match} to NotOlderThan`],
    },
    {
      kind: 'watch',
      query: `resourceVersion=7&${match}=NotOlderThan`,
      errors: [`Forbidden: ${match} is forbidden for watch unless sendInitialEvents is provided`],
    },
  ] as const)
    it(`of a ${kind} refuse "${query}"`, () => {
      expect(errorOf(() => optionsOf(query, kind))).to.deep.equal(errors)
    })
})

describe('an integer in a query', () => {
  for (const [text, value] of [
    ['', 0],
    ['n=7', 7],
    ['n=-7', -7],
    ['n=%2B7', 7],
    ['n=007', 7],
  ] as const)
    it(`is ${value} in "${text}"`, () => expect(integerOf(new URLSearchParams(text), 'n')).to.equal(value))

  for (const [text, why] of [
    ['', 'invalid syntax'],
    ['7.0', 'invalid syntax'],
    ['x', 'invalid syntax'],
    ['9223372036854775808', 'value out of range'],
    ['-9223372036854775809', 'value out of range'],
  ] as const)
    it(`is refused as "${text}"`, () => {
      const query = new URLSearchParams({ n: text })
      expect(errorOf(() => integerOf(query, 'n'))).to.equal(`strconv.ParseInt: parsing "${text}": ${why}`)
    })
})
