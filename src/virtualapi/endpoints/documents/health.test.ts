import { Buffer } from 'node:buffer'
import { expect } from 'chai'
import { isStatusError } from '#apimachinery/status/index.ts'
import { health } from './health.ts'

/** The code and text of the answer; `missing`: what the server waits for. */
function ask(path: string, missing?: string, inCluster = false): string {
  const [pathname = '', query = ''] = path.split('?')
  try {
    const response = health(pathname, new URLSearchParams(query), { notReady: () => missing, inCluster })
    if (response.kind !== 'bytes') throw new Error(`unexpected answer ${response.kind}`)
    return `${response.status} ${Buffer.from(response.body).toString()}`
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
    { path: '/readyz/storage', missing: 'the store', answer: '500 internal server error: the store\n' },
    { path: '/livez/storage', missing: undefined, answer: '404' },
    { path: '/readyz/nonsense', missing: undefined, answer: '404' },
  ])
    it(`answers ${path} ${missing === undefined ? 'when ready' : 'when not ready'}: ${answer.slice(0, 3)}`, () => {
      expect(ask(path, missing)).to.equal(answer)
    })

  const excludingAll = '?exclude=etcd&exclude=etcd-readiness&exclude=shutdown'
  for (const { path, missing, answer } of [
    { path: '/livez', missing: undefined, answer: /^200 ok$/ },
    {
      path: '/livez',
      missing: 'the store',
      answer: /^500 .*^\[-\]etcd failed: reason withheld$.*^livez check failed\n$/ms,
    },
    {
      path: '/readyz?exclude=etcd',
      missing: 'the store',
      answer: /^500 .*^\[\+\]etcd excluded: ok$.*\[-\]shutdown failed/ms,
    },
    { path: `/readyz${excludingAll}`, missing: 'the store', answer: /^200 ok$/ },
    {
      path: '/readyz?verbose&exclude=no&exclude=a',
      missing: undefined,
      answer: /^200 .*^warn: some health checks cannot be excluded: no matches for "a","no"\nreadyz check passed\n$/ms,
    },
    { path: '/readyz/etcd', missing: 'the store', answer: /^500 internal server error: the store\n$/ },
    { path: '/readyz/poststarthook/rbac/bootstrap-roles', missing: undefined, answer: /^200 ok$/ },
    { path: '/livez/informer-sync', missing: undefined, answer: /^404$/ },
    { path: '/livez/poststarthook', missing: undefined, answer: /^404$/ },
  ])
    it(`answers ${path} of a logical cluster ${missing === undefined ? 'when ready' : 'when not ready'}`, () => {
      expect(ask(path, missing, true)).to.match(answer)
    })
})
