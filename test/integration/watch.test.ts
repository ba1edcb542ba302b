import { expect } from 'chai'
import { at, textAt } from './json.ts'
import { startInstance, type KcpInstance, type Tenant } from './kcp-instance.ts'
import type { WatchEvent } from './raw-client.ts'

const brief = ({ type, object }: WatchEvent): string => `${type} ${object.metadata.name ?? ''}`

describe('a watch', () => {
  let kcp: KcpInstance
  let acme: Tenant
  let collection: string
  let round = 0

  before(async () => {
    kcp = await startInstance()
    acme = await kcp.tenant('acme')
  })
  after(() => kcp[Symbol.asyncDispose]())
  beforeEach(async () => {
    const name = `round-${++round}`
    await send('POST', `${acme.base}/api/v1/namespaces`, { metadata: { name } })
    collection = `${acme.base}/api/v1/namespaces/${name}/configmaps`
    // The root CA ConfigMap is created by a controller; wait for it before counting.
    await using watch = await acme.http.watch(`${collection}?watch=true&fieldSelector=metadata.name%3Dkube-root-ca.crt`)
    await watch.next()
  })

  async function send(method: string, path: string, body?: object): Promise<Record<string, unknown>> {
    const patch = method === 'PATCH' ? ['Content-Type', 'application/merge-patch+json'] : []
    const options = { ...(body === undefined ? {} : { body }), headers: patch }
    const response = await acme.http.request(method, path, options)
    expect(response.status, `${method} ${path}: ${response.text}`).to.be.below(300)
    return response.json()
  }
  const create = async (name: string, more: object = {}): Promise<string> =>
    String(at(await send('POST', collection, { metadata: { name }, ...more }), 'metadata.resourceVersion'))
  const patch = (name: string, body: object) => send('PATCH', `${collection}/${name}`, body)
  const label = (name: string, value: string | null) => patch(name, { metadata: { labels: { app: value } } })
  const revision = async (): Promise<string> => String(at(await send('GET', collection), 'metadata.resourceVersion'))
  const query = (parameters: Record<string, string>): string =>
    `${collection}?${new URLSearchParams({ watch: 'true', ...parameters }).toString()}`

  it('from a resourceVersion sends everything after it once, in order, and nothing before', async () => {
    await create('before')
    const since = await revision()
    await create('a')
    await patch('a', { data: { x: 'y' } })
    await using watch = await acme.http.watch(query({ resourceVersion: since, timeoutSeconds: '1' }))
    await create('b')
    await send('DELETE', `${collection}/a`)
    const events = await watch.rest()
    expect(events.map(brief)).to.deep.equal(['ADDED a', 'MODIFIED a', 'ADDED b', 'DELETED a'])
    const versions = events.map(({ object }) => Number(object.metadata.resourceVersion))
    expect(versions).to.deep.equal([...versions].sort((x, y) => x - y))
    expect(new Set(versions)).to.have.property('size', 4)
    // A deletion has a revision of its own, later than the last change of the object.
    expect(versions[3]).to.be.greaterThan(versions[1]!)
  })

  it('resumed from the revision of every event misses and repeats nothing', async () => {
    const since = await revision()
    for (let i = 0; i < 5; i++) await create(`r-${i}`)
    await using watch = await acme.http.watch(query({ resourceVersion: since, timeoutSeconds: '1' }))
    const all = await watch.rest()
    for (const [index, { object }] of all.entries()) {
      const resumed = query({ resourceVersion: object.metadata.resourceVersion, timeoutSeconds: '1' })
      await using rest = await acme.http.watch(resumed)
      const expected = all.slice(index + 1)
      for (const event of expected) expect(await rest.next()).to.deep.equal(event)
    }
  })

  it('without a resourceVersion begins with the existing objects', async () => {
    await create('a')
    await using watch = await acme.http.watch(query({ timeoutSeconds: '1' }))
    await create('b')
    expect((await watch.rest()).map(brief)).to.deep.equal(['ADDED a', 'ADDED kube-root-ca.crt', 'ADDED b'])
  })

  it('sends a bookmark before its timeout only if the client asked for bookmarks', async () => {
    const since = await revision()
    await acme.http.request('POST', `${acme.base}/api/v1/namespaces/default/secrets`, {
      body: { metadata: { generateName: 's-' } },
    })
    for (const [bookmarks, types] of [
      ['true', ['BOOKMARK']],
      ['false', []],
    ] as const) {
      const parameters = { resourceVersion: since, timeoutSeconds: '1', allowWatchBookmarks: bookmarks }
      await using watch = await acme.http.watch(query(parameters))
      const events = await watch.rest()
      expect(events.map(({ type }) => type)).to.deep.equal(types)
      for (const { object } of events) {
        expect(object).to.deep.include({ kind: 'ConfigMap', apiVersion: 'v1' })
        expect(Number(object.metadata.resourceVersion)).to.be.at.least(Number(since))
      }
    }
  })

  it('with sendInitialEvents ends the initial objects with an annotated bookmark, then continues', async () => {
    await create('a')
    const parameters = { sendInitialEvents: 'true', resourceVersionMatch: 'NotOlderThan', allowWatchBookmarks: 'true' }
    await using watch = await acme.http.watch(query(parameters))
    expect(brief((await watch.next())!)).to.equal('ADDED a')
    expect(brief((await watch.next())!)).to.equal('ADDED kube-root-ca.crt')
    const bookmark = await watch.next()
    expect(bookmark?.type).to.equal('BOOKMARK')
    expect(bookmark?.object.metadata.annotations).to.deep.equal({ 'k8s.io/initial-events-end': 'true' })
    await create('b')
    const next = await watch.next()
    expect(brief(next!)).to.equal('ADDED b')
    expect(Number(next?.object.metadata.resourceVersion)).to.be.greaterThan(
      Number(bookmark?.object.metadata.resourceVersion),
    )
  })

  it('refuses sendInitialEvents without resourceVersionMatch with 422: clients then fall back to LIST', async () => {
    for (const path of [
      query({ sendInitialEvents: 'true' }),
      query({ sendInitialEvents: 'true', resourceVersionMatch: 'Exact', resourceVersion: '1' }),
      `${collection}?sendInitialEvents=true`,
    ]) {
      const { status, json } = await acme.http.request('GET', path)
      expect(status, path).to.equal(422)
      expect(json()).to.deep.include({ kind: 'Status', reason: 'Invalid' })
    }
  })

  it('with a selector sends ADDED and DELETED for objects that begin and cease to match', async () => {
    await create('a')
    const since = await revision()
    await using watch = await acme.http.watch(query({ labelSelector: 'app=web', resourceVersion: since }))
    await label('a', 'web')
    await patch('a', { data: { x: '1' } })
    await patch('a', { data: { x: '2' }, metadata: { labels: { app: 'db' } } })
    await patch('a', { data: { x: '3' } })
    await label('a', 'web')
    await send('DELETE', `${collection}/a`)
    const events: WatchEvent[] = []
    for (let i = 0; i < 5; i++) events.push((await watch.next())!)
    expect(events.map(brief)).to.deep.equal(['ADDED a', 'MODIFIED a', 'DELETED a', 'ADDED a', 'DELETED a'])
    // DELETED carries the last matching state at the revision at which it ceased to match.
    const [, modified, left] = events
    expect(left?.object.metadata.labels).to.deep.equal({ app: 'web' })
    expect(left?.object.data).to.deep.equal({ x: '1' })
    expect(Number(left?.object.metadata.resourceVersion)).to.be.greaterThan(
      Number(modified?.object.metadata.resourceVersion),
    )
  })

  it('of one object by field selector sends only that one', async () => {
    await using watch = await acme.http.watch(query({ fieldSelector: 'metadata.name=b', timeoutSeconds: '1' }))
    await create('a')
    await create('b')
    expect((await watch.rest()).map(brief)).to.deep.equal(['ADDED b'])
  })

  it('as tables sends the columns once', async () => {
    const headers = ['Accept', 'application/json;as=Table;v=v1;g=meta.k8s.io']
    await create('a')
    const { text } = await acme.http.request('GET', query({ timeoutSeconds: '1' }), { headers })
    const tables = text
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as { object: { columnDefinitions: unknown[] | null } })
    expect(tables.map(({ object }) => (object.columnDefinitions ?? []).length > 0)).to.deep.equal([true, false])
  })

  for (const [as, kind] of [
    ['PartialObjectMetadata', 'PartialObjectMetadata'],
    ['Table', 'Table'],
    [undefined, 'ConfigMap'],
  ] as const)
    it(`sends bookmarks in the format of its events: ${kind}`, async () => {
      const accept = `application/json${as === undefined ? '' : `;as=${as};v=v1;g=meta.k8s.io`}`
      const state = { sendInitialEvents: 'true', resourceVersionMatch: 'NotOlderThan', allowWatchBookmarks: 'true' }
      const headers = ['Accept', accept]
      const { text } = await acme.http.request('GET', query({ ...state, timeoutSeconds: '1' }), { headers })
      const events = text
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line) as WatchEvent)
      expect(events.map(({ type }) => type)).to.deep.equal(['ADDED', 'BOOKMARK', 'BOOKMARK'])
      expect(events.map(({ object }) => object.kind)).to.deep.equal([kind, kind, kind])
      expect(events[1]?.object.metadata.resourceVersion).to.match(/^[1-9]\d*$/)
      expect(JSON.stringify(events[1])).to.include('"k8s.io/initial-events-end":"true"')
    })

  it('from a future revision waits; a list at a future revision is told to retry', async () => {
    const far = String(Number(await revision()) + 1_000_000)
    await using watch = await acme.http.watch(query({ resourceVersion: far, timeoutSeconds: '1' }))
    expect(watch.status).to.equal(200)
    expect(await watch.rest()).to.deep.equal([])
    const list = await acme.http.request('GET', `${collection}?resourceVersion=${far}`)
    expect(list.status).to.equal(504)
    expect(at(list.json(), 'details.causes.0.reason')).to.equal('ResourceVersionTooLarge')
  })

  for (const { title, parameters, code } of [
    { title: 'a resourceVersion that is not a number', parameters: { resourceVersion: 'abc' }, code: 400 },
    { title: 'a negative resourceVersion', parameters: { resourceVersion: '-1' }, code: 400 },
    { title: 'an invalid selector', parameters: { labelSelector: 'a in (' }, code: 400 },
  ])
    it(`refuses ${title} with ${code} and a Status`, async () => {
      const { status, json } = await acme.http.request('GET', query(parameters))
      expect(status).to.equal(code)
      expect(json()).to.deep.include({ kind: 'Status', status: 'Failure', code })
    })

  it("from before the logical cluster's creation or from the distant past sends all events or answers 410", async () => {
    const { text } = await acme.http.request('GET', query({ resourceVersion: '1', timeoutSeconds: '1' }))
    const [first] = text
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as WatchEvent)
    const told = first?.type === 'ERROR' ? first.object.code : first?.type
    expect(told).to.be.oneOf([410, 'ADDED', 'Expired'])
  })

  it('resumes after a restart of the process where it stopped, on the embedded store', async () => {
    await create('a')
    const since = await revision()
    await create('b')
    await send('DELETE', `${collection}/a`)
    expect(await kcp.process.stop()).to.deep.equal({ code: 0, signal: null })
    await kcp.process.start()
    await using watch = await acme.http.watch(query({ resourceVersion: since }))
    expect(brief((await watch.next())!)).to.equal('ADDED b')
    const deleted = await watch.next()
    expect(brief(deleted!)).to.equal('DELETED a')
    const created = await create('c')
    const next = await watch.next()
    expect(next?.object.metadata.resourceVersion).to.equal(created)
    expect(Number(created)).to.be.greaterThan(Number(deleted?.object.metadata.resourceVersion))
  })

  it('ends cleanly when the server is asked to stop', async () => {
    await using watch = await acme.http.watch(query({}))
    let event = await watch.next()
    kcp.process.send('SIGTERM')
    // Read to the end, skipping earlier events.
    while (event !== undefined) event = await watch.next()
    await kcp.process.exited
    await kcp.process.start()
  })
})

describe('a list', () => {
  let kcp: KcpInstance
  let acme: Tenant
  const collection = (parameters: Record<string, string> = {}): string =>
    `${acme.base}/api/v1/namespaces/kube-public/configmaps?${new URLSearchParams({ labelSelector: 'list', ...parameters }).toString()}`
  const page = async (parameters: Record<string, string>) => {
    const { status, json } = await acme.http.request('GET', collection(parameters))
    const document = json()
    return {
      status,
      document,
      names: ((document['items'] ?? []) as { metadata: { name: string } }[]).map(({ metadata }) => metadata.name),
      next: textAt(document, 'metadata.continue'),
      version: textAt(document, 'metadata.resourceVersion'),
    }
  }
  const post = (name: string) =>
    acme.http.request('POST', `${acme.base}/api/v1/namespaces/kube-public/configmaps`, {
      body: { metadata: { name, labels: { list: 'yes' } } },
    })

  before(async () => {
    kcp = await startInstance()
    acme = await kcp.tenant('acme')
    for (const name of ['a', 'c', 'e', 'g']) await post(name)
  })
  after(() => kcp[Symbol.asyncDispose]())

  it('in pages is one snapshot, whatever is written meanwhile', async () => {
    const first = await page({ limit: '2' })
    expect(first.names).to.deep.equal(['a', 'c'])
    await post('b')
    await post('f')
    await acme.http.request('DELETE', `${acme.base}/api/v1/namespaces/kube-public/configmaps/g`)
    const second = await page({ limit: '2', continue: first.next })
    expect(second.names).to.deep.equal(['e', 'g'])
    expect(second.version).to.equal(first.version)
    expect(second.next).to.equal('')
    expect((await page({})).names).to.deep.equal(['a', 'b', 'c', 'e', 'f'])
  })

  it('continues in a restarted process with the old continue token, or answers 410 with a token that continues', async () => {
    const first = await page({ limit: '2' })
    await kcp.process.stop()
    await kcp.process.start()
    const second = await page({ limit: '9', continue: first.next })
    if (second.status === 200) expect(second.names).to.deep.equal(['c', 'e', 'f'])
    else {
      expect(second.status).to.equal(410)
      const third = await page({ limit: '9', continue: second.next })
      expect(third.names).to.deep.equal(['c', 'e', 'f'])
    }
  })

  it('refuses invalid continue tokens', async () => {
    for (const token of ['x', 'e30', Buffer.from('{"v":"other/v9","rv":3,"start":"a"}').toString('base64url')]) {
      const { status, document } = await page({ continue: token })
      expect(status, token).to.be.oneOf([400, 410])
      expect(document['kind']).to.equal('Status')
    }
  })
})
