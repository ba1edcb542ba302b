import { Buffer } from 'node:buffer'
import { expect } from 'chai'
import { isStatusError } from '../../apimachinery/status/index.ts'
import type { EndpointParts } from './parts.ts'
import { health } from './health.ts'

/** The code and text of the answer; `missing`: what the server waits for. */
function ask(path: string, missing?: string): string {
  const [pathname = '', query = ''] = path.split('?')
  try {
    const answer = health(pathname, new URLSearchParams(query), { notReady: () => missing } as EndpointParts)
    if (answer.kind !== 'bytes') throw new Error(`unexpected answer ${answer.kind}`)
    return `${answer.status} ${Buffer.from(answer.body).toString()}`
  } catch (error) {
    if (!isStatusError(error)) throw error
    return String(error.code)
  }
}

describe('health', () => {
  for (const { path, missing, answer } of [
    { path: '/livez', missing: undefined, answer: '200 ok' },
    { path: '/readyz', missing: undefined, answer: '200 ok' },
    { path: '/livez', missing: 'the store', answer: '200 ok' },
    {
      path: '/readyz',
      missing: 'the store',
      answer: '500 [+]ping ok\n[-]storage failed: the store\nreadyz check failed\n',
    },
    {
      path: '/healthz',
      missing: 'the store',
      answer: '500 [+]ping ok\n[-]storage failed: the store\nhealthz check failed\n',
    },
    { path: '/livez?verbose', missing: undefined, answer: '200 [+]ping ok\nlivez check passed\n' },
    { path: '/readyz?verbose', missing: undefined, answer: '200 [+]ping ok\n[+]storage ok\nreadyz check passed\n' },
    { path: '/readyz/ping', missing: 'the store', answer: '200 ok' },
    { path: '/readyz/storage', missing: 'the store', answer: '500 not ready: the store\n' },
    { path: '/livez/storage', missing: undefined, answer: '404' },
    { path: '/readyz/nonsense', missing: undefined, answer: '404' },
  ])
    it(`answers ${path} ${missing === undefined ? 'when ready' : 'when not ready'}: ${answer.slice(0, 3)}`, () => {
      expect(ask(path, missing)).to.equal(answer)
    })
})
