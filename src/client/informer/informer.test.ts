import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect } from 'chai'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { silentLogger } from '#telemetry/index.ts'
import { createClient } from '#client/verbs/create-client.ts'
import { httpTransport } from '#client/verbs/http-transport.ts'
import { createInformer, type Informer, type InformerOptions } from './informer.ts'

const configMaps = { group: '', version: 'v1', resource: 'configmaps' }

function configMap(name: string, resourceVersion: number, more: object = {}): KubeObject {
  return {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name, namespace: 'shop', uid: `uid-${name}`, resourceVersion: String(resourceVersion), ...more },
  }
}

/** An API of ConfigMaps whose answers a test decides: real servers do not fail on demand. */
async function faultyApi() {
  const asked: string[] = []
  let objects: KubeObject[] = []
  let revision = 10
  let watching: ServerResponse | undefined
  let watchStarted = Promise.withResolvers<undefined>()
  let answerWatch: ((response: ServerResponse) => boolean) | undefined
  const server = createServer((request, response) => {
    const { searchParams } = new URL(request.url ?? '', 'http://x')
    if (searchParams.get('watch') === null) {
      const limit = Number(searchParams.get('limit') ?? 500)
      const from = Number(searchParams.get('continue') ?? 0)
      asked.push(from === 0 ? 'list' : 'page')
      const next = from + limit < objects.length ? String(from + limit) : undefined
      const metadata = { resourceVersion: String(revision), ...(next && { continue: next }) }
      response.end(
        JSON.stringify({ kind: 'ConfigMapList', apiVersion: 'v1', metadata, items: objects.slice(from, from + limit) }),
      )
      return
    }
    asked.push(`watch ${searchParams.get('resourceVersion') ?? ''}`)
    if (answerWatch?.(response)) return
    response.writeHead(200).flushHeaders()
    watching = response
    watchStarted.resolve(undefined)
  })
  const listen = async (port: number): Promise<void> => {
    server.listen(port, '127.0.0.1')
    await once(server, 'listening')
  }
  await listen(0)
  const { port } = server.address() as AddressInfo
  const close = async (): Promise<void> => {
    server.closeAllConnections()
    server.close()
    await once(server, 'close')
  }
  return {
    asked,
    url: `http://127.0.0.1:${port}`,
    set: (at: number, ...now: KubeObject[]) => ([revision, objects] = [at, now]),
    failWatches: (answer: typeof answerWatch) => (answerWatch = answer),
    /** Resolves once a watch is open that was not when this was called last. */
    async watched(): Promise<void> {
      await watchStarted.promise
      watchStarted = Promise.withResolvers()
    },
    send: (type: string, object: unknown) => void watching?.write(`${JSON.stringify({ type, object })}\n`),
    end: () => void watching?.end(),
    stop: close,
    restart: () => listen(port),
    [Symbol.asyncDispose]: () => (server.listening ? close() : Promise.resolve()),
  }
}

type Api = Awaited<ReturnType<typeof faultyApi>>

function follow(api: Api, options: Partial<InformerOptions<KubeObject>> = {}) {
  const transport = httpTransport({ server: api.url })
  const life = new AbortController()
  const told: string[] = []
  const informer = createInformer({
    client: createClient(transport, { pageSize: 2 }),
    gvr: configMaps,
    log: silentLogger,
    signal: life.signal,
    backoff: { firstMs: 1, maxMs: 20 },
    ...options,
  })
  informer.onChange(({ key, before, after }) => {
    told.push(`${before ? (after ? '~' : '-') : '+'}${key}`)
    heard.resolve(undefined)
    heard = Promise.withResolvers()
  })
  let heard = Promise.withResolvers<undefined>()
  const until = async (done: (informer: Informer<KubeObject>) => boolean): Promise<void> => {
    while (!done(informer)) await heard.promise
  }
  return {
    informer,
    told,
    until,
    async [Symbol.asyncDispose]() {
      await informer[Symbol.asyncDispose]()
      await transport[Symbol.asyncDispose]()
    },
  }
}

describe('an informer', () => {
  it('joins the pages of a list, then follows the watch', async () => {
    await using api = await faultyApi()
    api.set(10, configMap('a', 1), configMap('b', 2), configMap('c', 3))
    await using following = follow(api)
    await following.informer.synced(AbortSignal.timeout(5000))
    await api.watched()
    api.send('ADDED', configMap('d', 11))
    api.send('MODIFIED', configMap('a', 12))
    api.send('DELETED', configMap('b', 13))
    await following.until(({ store }) => store.get('shop/b') === undefined)
    expect(following.told).to.deep.equal(['+shop/a', '+shop/b', '+shop/c', '+shop/d', '~shop/a', '-shop/b'])
    expect(api.asked).to.deep.equal(['list', 'page', 'watch 10'])
  })

  it('resumes where its watch ended, also after a bookmark, without listing again', async () => {
    await using api = await faultyApi()
    await using following = follow(api)
    await api.watched()
    api.send('ADDED', configMap('a', 11))
    await following.until(({ store }) => store.size === 1)
    api.send('BOOKMARK', { kind: 'ConfigMap', apiVersion: 'v1', metadata: { resourceVersion: '42' } })
    api.end()
    await api.watched()
    api.send('ADDED', configMap('b', 43))
    await following.until(({ store }) => store.size === 2)
    expect(api.asked).to.deep.equal(['list', 'watch 10', 'watch 42'])
  })

  for (const { title, fail } of [
    {
      title: 'an ERROR event',
      fail: (response: ServerResponse) =>
        response.end(
          `${JSON.stringify({ type: 'ERROR', object: { kind: 'Status', code: 410, reason: 'Expired' } })}\n`,
        ),
    },
    {
      title: 'a 410 answer',
      fail: (response: ServerResponse) =>
        response
          .writeHead(410)
          .end(JSON.stringify({ kind: 'Status', code: 410, reason: 'Expired', message: 'too old' })),
    },
  ]) {
    it(`lists again after ${title} and reports what was deleted, changed, created and recreated`, async () => {
      await using api = await faultyApi()
      api.set(10, configMap('gone', 1), configMap('same', 2), configMap('changed', 3), configMap('anew', 4))
      await using following = follow(api)
      await following.informer.synced(AbortSignal.timeout(5000))
      await api.watched()
      following.told.length = 0
      api.set(
        60,
        configMap('same', 2),
        configMap('changed', 50),
        configMap('anew', 51, { uid: 'other' }),
        configMap('new', 52),
      )
      let failures = 0
      api.failWatches((response) => (failures++ === 0 ? (fail(response), true) : false))
      api.end()
      await following.until(({ store }) => store.get('shop/new') !== undefined)
      expect(following.told).to.deep.equal(['-shop/gone', '~shop/changed', '-shop/anew', '+shop/anew', '+shop/new'])
    })
  }

  it('survives failures of its server without a second list', async () => {
    await using api = await faultyApi()
    await using following = follow(api)
    await api.watched()
    api.send('ADDED', configMap('a', 11))
    await following.until(({ store }) => store.size === 1)
    await api.stop()
    let failures = 0
    api.failWatches((response) => {
      if (++failures > 10) return false
      if (failures % 2 === 0) response.destroy()
      else response.writeHead(500).end('out of order')
      return true
    })
    await api.restart()
    await api.watched()
    api.send('ADDED', configMap('b', 12))
    await following.until(({ store }) => store.size === 2)
    expect(api.asked.filter((what) => what === 'list')).to.have.length(1)
    expect(following.told).to.deep.equal(['+shop/a', '+shop/b'])
  })

  it('ignores an event of an unknown type', async () => {
    await using api = await faultyApi()
    await using following = follow(api)
    await api.watched()
    api.send('SURPRISE', configMap('x', 11))
    await api.watched()
    api.send('ADDED', configMap('a', 11))
    await following.until(({ store }) => store.size === 1)
    expect(following.told).to.deep.equal(['+shop/a'])
  })

  it('keeps only what its transform returns', async () => {
    await using api = await faultyApi()
    api.set(10, { ...configMap('a', 1), data: { big: 'x' } })
    await using following = follow(api, { transform: ({ data: _data, ...rest }) => rest })
    await following.informer.synced(AbortSignal.timeout(5000))
    expect(following.informer.store.get('shop/a')).to.deep.equal(configMap('a', 1))
  })

  it('distinguishes objects of the same name in two logical clusters', async () => {
    await using api = await faultyApi()
    const of = (cluster: string): object => ({ annotations: { 'kcp.dev/logical-cluster': cluster }, uid: cluster })
    api.set(10, configMap('a', 1, of('acme')), configMap('a', 2, of('bob')), configMap('stray', 3))
    await using following = follow(api, { allClusters: true })
    await following.informer.synced(AbortSignal.timeout(5000))
    expect(following.informer.store.keys()).to.deep.equal(['acme|shop/a', 'bob|shop/a'])
  })

  it('reports all existing objects to a listener that is added later', async () => {
    await using api = await faultyApi()
    api.set(10, configMap('a', 1))
    await using following = follow(api)
    await following.informer.synced(AbortSignal.timeout(5000))
    const late: string[] = []
    following.informer.onChange(({ key }) => void late.push(key))
    expect(late).to.deep.equal(['shop/a'])
  })

  it('goes on when a listener throws', async () => {
    await using api = await faultyApi()
    await using following = follow(api)
    following.informer.onChange(() => {
      throw new Error('a bug')
    })
    await api.watched()
    api.send('ADDED', configMap('a', 11))
    api.send('ADDED', configMap('b', 12))
    await following.until(({ store }) => store.size === 2)
  })

  it('rejects waiters when it ends before its first list', async () => {
    const life = new AbortController()
    await using transport = httpTransport({ server: 'http://127.0.0.1:1' })
    const informer = createInformer({
      client: createClient(transport),
      gvr: configMaps,
      log: silentLogger,
      signal: life.signal,
    })
    const waiting = informer.synced(new AbortController().signal).catch((error: unknown) => error)
    const reason = new Error('stop')
    life.abort(reason)
    expect(await waiting).to.equal(reason)
    await informer[Symbol.asyncDispose]()
  })
})
