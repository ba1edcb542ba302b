import { expect } from 'chai'
import { isStatusError } from '#apimachinery/status/index.ts'
import { requireLogOptions } from './log-options.ts'

/** The code of the refusal, 200 if there is none. */
function codeOf(query: string): number {
  try {
    requireLogOptions(new URLSearchParams(query), 'p')
    return 200
  } catch (error) {
    if (!isStatusError(error)) throw error
    return error.code
  }
}

describe('options of logs', () => {
  for (const { query, code } of [
    { query: 'follow=true&tailLines=0&limitBytes=1&sinceSeconds=1&timestamps=x', code: 200 },
    { query: 'sinceTime=2020-01-01T00:00:00Z&tailLines=%2B7', code: 200 },
    { query: 'sinceTime=2020-01-01T00:00:00.5%2B01:00', code: 200 },
    { query: 'tailLines=-1', code: 422 },
    { query: 'limitBytes=0', code: 422 },
    { query: 'sinceSeconds=0', code: 422 },
    { query: 'sinceSeconds=1&sinceTime=2020-01-01T00:00:00Z', code: 422 },
    { query: 'stream=Stdout', code: 422 },
    { query: 'tailLines=', code: 400 },
    { query: 'tailLines=1.5', code: 400 },
    { query: 'limitBytes=9223372036854775808', code: 400 },
    { query: 'sinceTime=yesterday', code: 400 },
  ])
    it(`${query}: ${code}`, () => expect(codeOf(query)).to.equal(code))
})
