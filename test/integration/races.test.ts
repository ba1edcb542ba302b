// Concurrent operations: writers of one object, watchers of their writes, the deletion of a logical cluster.
import { expect } from 'chai'
import { startServedApi, untilTrue, type Reply, type ServedApi, type ServedTenant } from './served-api.ts'

const logicalClusters = { group: 'kcp.dev', version: 'v1alpha1', resource: 'logicalclusters' }
const mergePatch = { 'content-type': 'application/merge-patch+json' }
const jsonPatch = { 'content-type': 'application/json-patch+json' }

interface Meta {
  readonly name: string
  readonly resourceVersion: string
}

interface WatchEvent {
  readonly type: string
  readonly object: { readonly metadata: Meta }
}

interface Counter {
  readonly metadata: { readonly resourceVersion: string }
  readonly data: Record<string, string>
}

describe('concurrently', function () {
  this.timeout(60_000)
  let served: ServedApi
  let acme: ServedTenant
  const configMaps = (tenant: ServedTenant): string => `${tenant.base}/api/v1/namespaces/default/configmaps`

  before(async () => {
    served = await startServedApi()
    acme = await served.tenant('acme')
  })
  after(() => served[Symbol.asyncDispose]())

  describe('the deletion of a logical cluster', () => {
    /** Marked for deletion and held by a finalizer, as the operator does. */
    async function dying(name: string): Promise<ServedTenant> {
      const tenant = await served.tenant(name)
      const path = `/clusters/root/apis/kcp.dev/v1alpha1/logicalclusters/${name}`
      const body = JSON.stringify({ metadata: { finalizers: ['kcp.dev/test'] } })
      await served.api.loopback.request({ method: 'PATCH', path, headers: mergePatch, body, signal: served.signal })
      await served.root.delete(logicalClusters, { name }, { signal: served.signal })
      await untilTrue(() => served.api.directory.byId(tenant.id)?.deleting === true, `"${name}" is being deleted`)
      return tenant
    }
    const purge = (name: string, body?: object) =>
      served.api.loopback.request({
        method: 'DELETE',
        path: `/clusters/${name}`,
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        signal: served.signal,
      })
    const leftOf = async ({ id }: ServedTenant): Promise<number> =>
      (await served.store.list({ cluster: id }, { signal: served.signal })).items.length

    it('leaves nothing in the store, whoever still writes', async () => {
      const bob = await served.tenant('bob')
      const system = served.api.client(bob.name)
      const stop = new AbortController()
      const codes = new Set<number>()
      const write = async (writer: number): Promise<void> => {
        for (let n = 0; !stop.signal.aborted; n++) {
          const body = { metadata: { name: `of-${writer}-${n}` } }
          codes.add((await bob.request('POST', configMaps(bob), { body })).status)
        }
      }
      // Our own controllers write too, and bypass admission.
      const loop = async (): Promise<void> => {
        for (let n = 0; !stop.signal.aborted; n++) {
          const object = { apiVersion: 'v1', kind: 'Secret', metadata: { name: `s-${n}`, namespace: 'default' } }
          try {
            await system.create({ group: '', version: 'v1', resource: 'secrets' }, object, { signal: served.signal })
          } catch (error) {
            codes.add((error as { code: number }).code)
          }
          await new Promise((resolve) => setImmediate(resolve))
        }
      }
      const writers = [loop(), loop(), ...Array.from({ length: 8 }, (_, writer) => write(writer))]
      await untilTrue(async () => (await leftOf(bob)) > 20, 'objects are written')
      const path = `/clusters/root/apis/kcp.dev/v1alpha1/logicalclusters/bob`
      const body = JSON.stringify({ metadata: { finalizers: ['kcp.dev/test'] } })
      await served.api.loopback.request({ method: 'PATCH', path, headers: mergePatch, body, signal: served.signal })
      await served.root.delete(logicalClusters, { name: 'bob' }, { signal: served.signal })
      await untilTrue(() => served.api.directory.byId(bob.id)?.deleting === true, 'it is being deleted')
      expect((await purge('bob')).status).to.equal(200)
      expect(await leftOf(bob)).to.equal(0)
      for (let i = 0; i < 50; i++) await bob.request('POST', configMaps(bob), { body: { metadata: { name: `x${i}` } } })
      stop.abort()
      await Promise.all(writers)
      expect(await leftOf(bob)).to.equal(0)
      expect([...codes]).not.to.include(500)
    })

    it('refuses every later request except another purge', async () => {
      const carl = await dying('carl')
      expect((await purge('carl')).status).to.equal(200)
      for (const [method, path, body] of [
        ['GET', configMaps(carl), undefined],
        ['POST', configMaps(carl), { metadata: { name: 'x' } }],
        ['GET', `${configMaps(carl)}?watch=1`, undefined],
        ['GET', '/clusters/carl/api', undefined],
        ['POST', '/clusters/carl/apis/authorization.k8s.io/v1/selfsubjectaccessreviews', { spec: {} }],
      ] as const) {
        const answer = await carl.request(method, path, { body })
        expect(answer.status, answer.text).to.be.oneOf([401, 403, 404])
      }
      expect((await purge('carl')).status).to.equal(200)
      expect(served.api.watchCache.loaded(carl.id)).to.equal(undefined)
      const list = await served.api.loopback.request({
        method: 'GET',
        path: '/clusters/*/api/v1/configmaps',
        signal: served.signal,
      })
      expect(list.status).to.equal(200)
    })

    it('ends its watches without an error, and watches over all logical clusters get every deletion', async () => {
      const dora = await served.tenant('dora')
      for (let i = 0; i < 5; i++)
        await dora.request('POST', configMaps(dora), { body: { metadata: { name: `d${i}` } } })
      const life = new AbortController()
      const heard: string[] = []
      const wide = served.api.client('*')
      const { metadata } = await wide.list(
        { group: '', version: 'v1', resource: 'configmaps' },
        { signal: life.signal },
      )
      const listening = (async () => {
        const scope = { resourceVersion: metadata.resourceVersion ?? '', signal: life.signal }
        for await (const event of wide.watch({ group: '', version: 'v1', resource: 'configmaps' }, scope))
          if (event.type === 'DELETED') heard.push(event.object.metadata.name ?? '')
      })().catch(() => undefined)
      const own = await dora.open('GET', `${configMaps(dora)}?watch=1`)
      const ended = (async () => {
        for await (const _ of own as AsyncIterable<Buffer>);
      })()
      const path = `/clusters/root/apis/kcp.dev/v1alpha1/logicalclusters/dora`
      const body = JSON.stringify({ metadata: { finalizers: ['kcp.dev/test'] } })
      await served.api.loopback.request({ method: 'PATCH', path, headers: mergePatch, body, signal: served.signal })
      await served.root.delete(logicalClusters, { name: 'dora' }, { signal: served.signal })
      await untilTrue(() => served.api.directory.byId(dora.id)?.deleting === true, 'it is being deleted')
      expect((await purge('dora')).status).to.equal(200)
      await ended
      await untilTrue(() => ['d0', 'd1', 'd2', 'd3', 'd4'].every((name) => heard.includes(name)), 'all are told of')
      life.abort()
      await listening
    })

    it('is refused with the uid of an earlier logical cluster of that name', async () => {
      const erik = await dying('erik')
      await served.api
        .client(erik.name)
        .create(
          { group: '', version: 'v1', resource: 'secrets' },
          { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'kept', namespace: 'default' } },
          { signal: served.signal },
        )
      const before = await leftOf(erik)
      expect(before).to.be.greaterThan(0)
      expect((await purge('erik', { preconditions: { uid: 'of-the-one-before' } })).status).to.equal(409)
      expect(await leftOf(erik)).to.equal(before)
    })
  })

  describe('fifty clients that patch one object', () => {
    const path = (): string => `${configMaps(acme)}/counter`
    const read = async (): Promise<Counter> => JSON.parse((await acme.request('GET', path())).text) as Counter
    beforeEach(async () => {
      await acme.request('DELETE', path())
      const body = { metadata: { name: 'counter' }, data: { n: '0' } }
      expect((await acme.request('POST', configMaps(acme), { body })).status).to.equal(201)
    })

    const increments: Record<string, (seen: Counter) => Promise<Reply>> = {
      'by resourceVersion': ({ metadata: { resourceVersion }, data }) =>
        acme.request('PATCH', path(), {
          headers: mergePatch,
          body: { metadata: { resourceVersion }, data: { n: String(Number(data['n']) + 1) } },
        }),
      'by the test of a JSON patch': ({ data }) =>
        acme.request('PATCH', path(), {
          headers: jsonPatch,
          body: [
            { op: 'test', path: '/data/n', value: data['n'] },
            { op: 'replace', path: '/data/n', value: String(Number(data['n']) + 1) },
          ],
        }),
    }
    for (const [title, increment] of Object.entries(increments))
      it(`lose no update: ${title}`, async () => {
        await Promise.all(
          Array.from({ length: 50 }, async () => {
            for (;;) {
              const { status, text } = await increment(await read())
              if (status === 200) return
              expect(status, text).to.be.oneOf([409, 422])
            }
          }),
        )
        expect((await read()).data['n']).to.equal('50')
      })

    it('that state no revision never get a conflict', async () => {
      const answers = await Promise.all(
        Array.from({ length: 50 }, (_, i) =>
          acme.request('PATCH', path(), { headers: mergePatch, body: { data: { [`of-${i}`]: 'x' } } }),
        ),
      )
      expect(new Set(answers.map(({ status }) => status))).to.deep.equal(new Set([200]))
      expect(Object.keys((await read()).data)).to.have.length(51)
    })
  })

  it('a watch with a label selector gets each object that enters, changes in and leaves the selection, once and in order', async () => {
    const lines = async (path: string, until: () => number): Promise<WatchEvent[]> => {
      const events: WatchEvent[] = []
      const gone = new AbortController()
      const response = await acme.open('GET', path, { signal: gone.signal })
      let rest = ''
      try {
        for await (const chunk of response.setEncoding('utf8') as AsyncIterable<string>) {
          const parts = (rest + chunk).split('\n')
          rest = parts.pop() ?? ''
          for (const part of parts) events.push(JSON.parse(part) as WatchEvent)
          if (Number(events.at(-1)?.object.metadata.resourceVersion ?? 0) >= until()) break
        }
      } finally {
        gone.abort()
      }
      return events
    }
    let last = Infinity
    const { metadata } = JSON.parse((await acme.request('GET', configMaps(acme))).text) as { metadata: Meta }
    const from = `watch=1&resourceVersion=${metadata.resourceVersion}`
    const all = lines(`${configMaps(acme)}?${from}`, () => last)
    const chosen = lines(`${configMaps(acme)}?${from}&labelSelector=on`, () => last)
    let acknowledged = 0
    const ok = async (method: string, path: string, body?: object): Promise<void> => {
      const headers = method === 'PATCH' ? mergePatch : {}
      const { status } = await acme.request(method, path, { headers, ...(body === undefined ? {} : { body }) })
      if (status < 300) acknowledged++
    }
    await Promise.all(
      Array.from({ length: 20 }, async (_, writer) => {
        for (let n = 0; n < 15; n++) {
          const path = `${configMaps(acme)}/t${(writer * 7 + n) % 10}`
          const name = path.split('/').at(-1)
          const labels = { on: (writer + n) % 2 === 0 ? 'yes' : null, of: `w${writer}-${n}` }
          await ok('POST', configMaps(acme), { metadata: { name, labels: labels.on === null ? {} : { on: 'yes' } } })
          await ok('PATCH', path, { metadata: { labels } })
          if (n % 4 === 3) await ok('DELETE', path)
        }
      }),
    )
    // The last event, which both watches see.
    await ok('POST', configMaps(acme), { metadata: { name: 'the-end', labels: { on: 'yes' } } })
    const end = JSON.parse((await acme.request('GET', `${configMaps(acme)}/the-end`)).text) as { metadata: Meta }
    last = Number(end.metadata.resourceVersion)
    await acme.request('PATCH', `${configMaps(acme)}/the-end`, { headers: mergePatch, body: { data: { a: 'b' } } })
    const heard = (await all).filter(({ object }) => Number(object.metadata.resourceVersion) <= last)
    expect(heard.length).to.equal(acknowledged)
    const there = new Set<string>()
    let newest = 0
    for (const { type, object } of await chosen) {
      const { name, resourceVersion } = object.metadata
      expect(Number(resourceVersion), `${type} ${name}`).to.be.greaterThan(newest)
      newest = Number(resourceVersion)
      expect(there.has(name), `${type} ${name} at ${resourceVersion}`).to.equal(type !== 'ADDED')
      if (type === 'DELETED') there.delete(name)
      else there.add(name)
    }
    const list = JSON.parse((await acme.request('GET', `${configMaps(acme)}?labelSelector=on`)).text) as {
      items: { metadata: Meta }[]
    }
    expect([...there].sort()).to.deep.equal(list.items.map((item) => item.metadata.name).sort())
  })

  it('an open watch continues after its permission is revoked, as on a real server, and a new one is refused', async () => {
    const rbac = `${acme.base}/apis/rbac.authorization.k8s.io/v1/namespaces/default`
    const rules = [{ apiGroups: [''], resources: ['configmaps'], verbs: ['watch'] }]
    await acme.request('POST', `${rbac}/roles`, { body: { metadata: { name: 'watcher' }, rules } })
    await acme.request('POST', `${rbac}/rolebindings`, {
      body: {
        metadata: { name: 'watcher' },
        roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'watcher' },
        subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'wanda' }],
      },
    })
    const wanda = await served.user(acme, 'wanda')
    const path = `${configMaps(acme)}?watch=1&timeoutSeconds=1`
    const response = await wanda.open('GET', path)
    expect(response.statusCode).to.equal(200)
    expect((await acme.request('DELETE', `${rbac}/rolebindings/watcher`)).status).to.equal(200)
    expect((await wanda.request('GET', path)).status).to.equal(403)
    await acme.request('POST', configMaps(acme), { body: { metadata: { name: 'after-it-was-taken' } } })
    let text = ''
    for await (const chunk of response.setEncoding('utf8') as AsyncIterable<string>) text += chunk
    expect(text).to.include('after-it-was-taken')
  })

  it('appliers of an object that is not there yet all succeed: one creates it, the others change it', async () => {
    for (let round = 0; round < 5; round++) {
      const name = `applied-${round}`
      const replies = await Promise.all(
        Array.from({ length: 8 }, (_, n) =>
          acme.request('PATCH', `${configMaps(acme)}/${name}?fieldManager=m${n}`, {
            headers: { 'content-type': 'application/apply-patch+yaml' },
            body: { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name }, data: { [`key-${n}`]: 'x' } },
          }),
        ),
      )
      expect(replies.map(({ status }) => status).sort()).to.deep.equal([...Array<number>(7).fill(200), 201])
      const { data } = JSON.parse((await acme.request('GET', `${configMaps(acme)}/${name}`)).text) as Counter
      expect(Object.keys(data)).to.have.length(8)
    }
  })

  it('a patch of what is not there is 404, also of a kind that may be created by PUT', async () => {
    const path = `${acme.base}/apis/coordination.k8s.io/v1/namespaces/default/leases/none`
    const answer = await acme.request('PATCH', path, { headers: mergePatch, body: {} })
    expect(answer.status, answer.text).to.equal(404)
  })
})
