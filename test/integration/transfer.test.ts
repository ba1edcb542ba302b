// `kcp transfer` between two running `kcp start`, as people use it: under writes, through the old address afterwards,
// refused, broken off, undone.
import { randomBytes } from 'node:crypto'
import { expect } from 'chai'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { parse, stringify } from 'yaml'
import { ensurePrograms, kubectl, runKcp, waitFor, type CommandResult } from '#test/support/index.ts'
import { at } from './json.ts'
import { startInstance, type KcpInstance, type Tenant } from './kcp-instance.ts'
import { framesOf } from './web-socket-frames.ts'
import { openRawClient, type RawClient, type RawResponse } from './raw-client.ts'
import { createWidgets } from './widget-definition.ts'

const configMaps = '/api/v1/namespaces/default/configmaps'
const logicalClusters = '/clusters/root/apis/kcp.dev/v1alpha1/logicalclusters'

describe('a logical cluster that moves to another installation', function () {
  this.timeout(180_000)
  let source: KcpInstance
  let target: KcpInstance
  let folder: string

  const transfer = (name: string, ...args: string[]): Promise<CommandResult> =>
    runKcp(
      ['transfer', name, '--root-dir', source.rootDir, '--to', join(target.rootDir, 'admin.kubeconfig'), ...args],
      { expectCode: 'any' },
    )
  const kubeconfigOf = async (name: string, { rootDir }: KcpInstance): Promise<string> => {
    const file = join(folder, `${name}.kubeconfig`)
    writeFileSync(file, (await runKcp(['kubeconfig', name, '--root-dir', rootDir])).stdout)
    return file
  }
  const readyReason = async ({ admin }: KcpInstance, name: string): Promise<unknown> => {
    // A new connection: the server closes those that were idle while a command ran.
    await using client = openRawClient({ kubeconfig: admin.kubeconfig })
    const object = (await client.request('GET', `${logicalClusters}/${name}`)).json()
    const conditions = at(object, 'status.conditions') as { type: string; reason: string }[] | undefined
    return conditions?.find(({ type }) => type === 'Ready')?.reason
  }
  const annotate = (instance: KcpInstance, name: string, note: object | null): Promise<RawResponse> =>
    instance.admin.http.request('PATCH', `${logicalClusters}/${name}`, {
      body: { metadata: { annotations: { 'kcp.dev/transfer': note === null ? null : JSON.stringify(note) } } },
      headers: ['Content-Type', 'application/merge-patch+json'],
    })
  const step = (client: RawClient, name: string, body: object): Promise<RawResponse> =>
    client.request('POST', `/clusters/${name}/transfer`, { body })
  const ofUser = (kubeconfig: object | undefined): Record<string, unknown> =>
    (kubeconfig as { users: Record<string, unknown>[] }).users[0] ?? {}
  /** On a connection of its own: the server closes those that were idle while a command ran. */
  const put = async ({ kubeconfig, base }: Tenant, name: string): Promise<RawResponse> => {
    await using client = openRawClient({ kubeconfig })
    return await client.request('POST', `${base}${configMaps}`, { body: { metadata: { name } } })
  }

  before(async () => {
    await ensurePrograms(['kubectl'])
    folder = mkdtempSync(join(tmpdir(), 'kcp-transfer-'))
    ;[source, target] = await Promise.all([startInstance(), startInstance(['--storage-per-cluster', '4'])])
  })
  after(async () => {
    await Promise.all([source[Symbol.asyncDispose](), target[Symbol.asyncDispose]()])
    rmSync(folder, { recursive: true, force: true })
  })

  describe('under writes', () => {
    let acme: Tenant
    let there: RawClient
    let moved: CommandResult
    let uids: unknown[]
    let token: string
    /** The last acknowledged text of each ConfigMap. */
    const acknowledged = new Map<string, string>()
    const refused: RawResponse[] = []
    let oldRevision: string
    const things = '/clusters/acme/apis/example.com/v1/namespaces/default/widgets/one'
    const paths = [
      things,
      '/clusters/acme/api/v1/namespaces/default',
      '/clusters/acme/api/v1/namespaces/default/serviceaccounts/robot',
      '/clusters/acme/api/v1/namespaces/default/secrets/treasure',
    ]

    before(async () => {
      acme = await source.tenant('acme')
      await createWidgets(acme)
      const create = async (path: string, body: object): Promise<Record<string, unknown>> => {
        const response = await acme.http.request('POST', `/clusters/acme${path}`, { body })
        expect(response.status, response.text).to.equal(201)
        return response.json()
      }
      await create('/api/v1/namespaces/default/serviceaccounts', { metadata: { name: 'robot' } })
      await create('/api/v1/namespaces/default/secrets', { metadata: { name: 'treasure' }, stringData: { k: 'gold' } })
      await create('/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings', {
        metadata: { name: 'robot' },
        roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'edit' },
        subjects: [{ kind: 'ServiceAccount', name: 'robot', namespace: 'default' }],
      })
      await acme.kubectl(['delete', 'clusterrole', 'view', '--wait=false'])
      const asked = await create('/api/v1/namespaces/default/serviceaccounts/robot/token', {
        apiVersion: 'authentication.k8s.io/v1',
        kind: 'TokenRequest',
        spec: {},
      })
      token = String(at(asked, 'status.token'))
      uids = await uidsOf(acme.http)
      const list = (await acme.http.request('GET', `/clusters/acme${configMaps}`)).json()
      oldRevision = String(at(list, 'metadata.resourceVersion'))

      let isOver = false
      const write = async (lane: number): Promise<void> => {
        for (let i = 0; !isOver; i++) {
          const name = `c-${lane}-${i % 40}`
          const text = `${lane}-${i}`
          const body = { metadata: { name }, data: { text } }
          const known = acknowledged.has(name)
          const [method, path]: [string, string] = known ? ['PUT', `${configMaps}/${name}`] : ['POST', configMaps]
          const response = await acme.http.request(method, `/clusters/acme${path}`, { body })
          if (response.status === 200 || response.status === 201) acknowledged.set(name, text)
          else {
            refused.push(response)
            i--
          }
          await delay(15)
        }
      }
      const watch = await acme.http.watch(`/clusters/acme${configMaps}?watch=true&resourceVersion=${oldRevision}`)
      const seen = watch.rest()
      const writing = [0, 1, 2, 3].map(write)
      await waitFor(() => Promise.resolve(acknowledged.size > 40), {
        what: 'writes',
        deadlineMs: 20_000,
        intervalMs: 20,
      })
      moved = await transfer('acme')
      // Writes go on at the old address.
      const before = new Map(acknowledged)
      const isWritten = (): Promise<boolean> =>
        Promise.resolve([...acknowledged].filter(([name, text]) => before.get(name) !== text).length > 20)
      await waitFor(isWritten, { what: 'writes after the move', deadlineMs: 20_000, intervalMs: 20 })
      isOver = true
      await Promise.all(writing)
      expect((await seen).at(-1)?.object).to.include({ kind: 'Status', code: 410 })
      there = openRawClient({ kubeconfig: await kubeconfigOf('acme', target) })
    })
    after(async () => {
      await there[Symbol.asyncDispose]()
    })

    const uidsOf = async (http: RawClient): Promise<unknown[]> => {
      const objects = await Promise.all(paths.map(async (path) => (await http.request('GET', path)).json()))
      return objects.map((object) => [at(object, 'metadata.uid'), at(object, 'metadata.creationTimestamp')])
    }

    it('arrives with every acknowledged write, and with uids and times as they were', async () => {
      expect([moved.code, moved.stderr], moved.stdout).to.deep.equal([0, ''])
      expect(moved.stdout).to.match(/"acme" has moved to https:.*\/clusters\/acme; writes waited for [0-9]+ ms/)
      const { items } = (await there.request('GET', `/clusters/acme${configMaps}`)).json() as unknown as {
        items: { metadata: { name: string }; data?: { text: string } }[]
      }
      const found = new Map(items.map(({ metadata, data }) => [metadata.name, data?.text]))
      found.delete('kube-root-ca.crt')
      expect([...found].sort()).to.deep.equal([...acknowledged].sort())
      expect(await uidsOf(there)).to.deep.equal(uids)
      const secret = (await there.request('GET', paths[3] ?? '')).json()
      expect(at(secret, 'data.k')).to.equal(Buffer.from('gold').toString('base64'))
      const role = '/clusters/acme/apis/rbac.authorization.k8s.io/v1/clusterroles/view'
      expect((await there.request('GET', role)).status).to.equal(404)
    })

    it('lets writes wait, with an answer that clients repeat by themselves', () => {
      for (const { status, headers, text } of refused) {
        expect(status, text).to.equal(503)
        expect(headers['retry-after'], text).to.equal('1')
      }
    })

    it('is reached at its old address by stock kubectl, with its old kubeconfig', async () => {
      const { stdout } = await acme.kubectl(['get', 'widgets', 'one', '-o', 'jsonpath={.spec.size}'])
      expect(stdout).to.equal('3')
      await acme.kubectl(['create', 'configmap', 'by-the-old-way'])
      expect((await there.request('GET', `/clusters/acme${configMaps}/by-the-old-way`)).status).to.equal(200)
      const who = await acme.kubectl(['auth', 'whoami', '-o', 'jsonpath={.status.userInfo.username}'])
      expect(who.stdout).to.equal('admin')
    })

    it('passes WebSockets and exec on from its old address', async () => {
      const handshake = [
        ...['Upgrade', 'websocket', 'Sec-WebSocket-Version', '13'],
        ...['Sec-WebSocket-Key', 'dGhlIHNhbXBsZSBub25jZQ=='],
      ]
      const watched = `/clusters/acme${configMaps}?watch=true&fieldSelector=metadata.name=over-a-socket`
      const { status, socket } = await acme.http.upgrade(watched, handshake)
      expect(status).to.equal(101)
      const frames = framesOf(socket!)
      await there.request('POST', `/clusters/acme${configMaps}`, { body: { metadata: { name: 'over-a-socket' } } })
      const { value } = await frames.next()
      expect(JSON.parse((value as { payload: Buffer }).payload.toString())).to.have.nested.property(
        'object.metadata.name',
        'over-a-socket',
      )
      socket!.destroy()
      // What the target refuses is refused in its words.
      const pod = { metadata: { name: 'lonely' }, spec: { containers: [{ name: 'c', image: 'c' }] } }
      const made = await there.request('POST', '/clusters/acme/api/v1/namespaces/default/pods', { body: pod })
      expect(made.status, made.text).to.equal(201)
      const exec = async (kubeconfig: string): Promise<string> =>
        (await kubectl(kubeconfig, ['exec', 'lonely', '--', 'ls'], { expectCode: 'any' })).stderr
      const direct = await exec(await kubeconfigOf('acme', target))
      expect(direct).to.contain('lonely')
      expect(await exec(acme.kubeconfig)).to.equal(direct)
      // No identity of another logical cluster, and no other user, comes along.
      const as = [...handshake, 'Impersonate-User', 'system:admin']
      expect((await acme.http.upgrade(watched, as)).status).to.equal(400)
      await using nobody = openRawClient({ port: source.port })
      expect((await nobody.upgrade(watched, handshake)).status).to.be.oneOf([401, 403])
    })

    it('is written at one place only', async () => {
      const local = await source.admin.http.request('POST', `/clusters/acme${configMaps}`, {
        body: { metadata: { name: 'late' } },
      })
      expect([local.status, local.headers['retry-after']], local.text).to.deep.equal([503, '1'])
      expect(await readyReason(source, 'acme')).to.equal('Moved')
      expect(await readyReason(target, 'acme')).to.equal('Served')
    })

    it('tells a client with a resourceVersion from before the move to list again', async () => {
      for (const client of [acme.http, there]) {
        const path = `/clusters/acme${configMaps}?watch=true&resourceVersion=${oldRevision}`
        const answer = await client.request('GET', `${path}&timeoutSeconds=2`)
        expect(answer.status, answer.text).to.equal(410)
        const list = (await client.request('GET', `/clusters/acme${configMaps}`)).json()
        const revision = String(at(list, 'metadata.resourceVersion'))
        expect(Number(revision)).to.be.greaterThan(Number(oldRevision))
        const again = await client.request('GET', `${path.replace(oldRevision, revision)}&timeoutSeconds=1`)
        expect([again.status, again.text]).to.deep.equal([200, ''])
      }
    })

    it('takes tokens of the old place at the old address, until the ServiceAccount is deleted at the new one', async () => {
      await using plain = openRawClient({ port: source.port })
      await using direct = openRawClient({ port: target.port })
      const headers = ['Authorization', `Bearer ${token}`]
      const path = `/clusters/acme${configMaps}/by-the-old-way`
      expect((await plain.request('GET', path, { headers })).status).to.equal(200)
      expect((await plain.request('GET', '/clusters/acme/api/v1/nodes', { headers })).status).to.equal(403)
      expect((await direct.request('GET', path, { headers })).status).to.equal(401)
      await there.request('DELETE', '/clusters/acme/api/v1/namespaces/default/serviceaccounts/robot')
      const isOut = async (): Promise<boolean> => (await plain.request('GET', path, { headers })).status === 401
      await waitFor(isOut, { what: 'the token to end', deadlineMs: 30_000, intervalMs: 200 })
    })

    it('gives nobody more rights at the new place', async () => {
      // A user of the logical cluster stays one: the credential that the source keeps acts for admins only as admins do.
      const as = ['Impersonate-User', 'system:admin', 'Impersonate-Group', 'system:masters']
      const answer = await acme.http.request('GET', `/clusters/acme${configMaps}`, { headers: as })
      expect(answer.status, answer.text).to.equal(400)
      const other = await target.tenant('other')
      const [ours, theirs] = [acme.kubeconfig, other.kubeconfig].map(
        (file) => parse(readFileSync(file, 'utf8')) as object,
      )
      const file = join(folder, 'foreign.kubeconfig')
      writeFileSync(file, stringify({ ...theirs, users: [{ ...ofUser(theirs), user: ofUser(ours)['user'] }] }))
      await using foreign = openRawClient({ kubeconfig: file })
      for (const base of [other.base, '/clusters/acme'])
        expect((await foreign.request('GET', `${base}${configMaps}`)).status).to.equal(401)
      const opened = await step(there, 'acme', { do: 'receive', id: 'x', run: 'x', above: 1 })
      expect(opened.status, opened.text).to.equal(403)
    })

    it('is over: the same command says so again, and --abort does not undo it', async () => {
      const again = await transfer('acme')
      expect([again.code, again.stderr], again.stdout).to.deep.equal([0, ''])
      const undone = await transfer('acme', '--abort')
      expect(undone.stderr).to.match(/"acme" has moved already/)
    })

    it('leaves nothing behind when it is deleted at the old place, and stays at the new one', async () => {
      const { http } = source.admin
      expect((await http.request('DELETE', `${logicalClusters}/acme`)).status).to.equal(200)
      const isGone = async (): Promise<boolean> => (await http.request('GET', `${logicalClusters}/acme`)).status === 404
      await waitFor(isGone, { what: 'the LogicalCluster to go', deadlineMs: 20_000, intervalMs: 50 })
      expect((await there.request('GET', things)).status).to.equal(200)
    })
  })

  it('is refused without any change if it cannot go', async () => {
    // New names, because a second try finds what the first one has made.
    const fresh = (name: string): string => `${name}-${randomBytes(3).toString('hex')}`
    const taken = fresh('taken')
    await target.tenant(taken)
    await source.tenant(taken)
    const large = await source.tenant(fresh('large'))
    const sharing = await source.tenant(fresh('sharing'))
    expect((await transfer(taken)).stderr).to.contain(`has a LogicalCluster "${taken}" already`)
    expect((await transfer('nobody')).stderr).to.match(/there is no LogicalCluster "nobody"/)
    const here = ['transfer', taken, '--root-dir', source.rootDir, '--to', join(source.rootDir, 'admin.kubeconfig')]
    expect((await runKcp(here, { expectCode: 'any' })).stderr).to.contain(`is the installation that "${taken}" is in`)

    const text = 'x'.repeat(900_000)
    for (const name of ['a', 'b', 'c', 'd', 'e', 'f'])
      await large.http.request('POST', `${large.base}${configMaps}`, { body: { metadata: { name }, data: { text } } })
    const tooLarge = await transfer(large.name)
    expect(tooLarge.stderr).to.match(/was not moved, and nothing has changed: .*exceeded quota/s)

    const shared = await sharing.http.request('POST', `${sharing.base}/apis/apis.kcp.io/v1alpha1/apiexports`, {
      body: { apiVersion: 'apis.kcp.io/v1alpha1', kind: 'APIExport', metadata: { name: 'db' }, spec: {} },
    })
    expect(shared.status, shared.text).to.equal(201)
    const held = await transfer(sharing.name)
    expect(held.stderr).to.match(/1 objects cannot go: apiexports.apis.kcp.io db \(it is shared with other/)

    for (const tenant of [large, sharing]) {
      expect((await put(tenant, 'goes-on')).status).to.equal(201)
      await using there = openRawClient({ kubeconfig: target.admin.kubeconfig })
      expect((await there.request('GET', `${logicalClusters}/${tenant.name}`)).status).to.equal(404)
      expect(await readyReason(source, tenant.name)).to.equal('Served')
    }
  })

  it('is not moved by its own admins, nor twice at once', async () => {
    const mine = await source.tenant('mine')
    for (const body of [
      { do: 'close', id: 'x', run: 'r', seconds: 60 },
      { do: 'commit', id: 'x', run: 'r' },
      { do: 'reopen', id: 'x' },
    ])
      expect((await step(mine.http, 'mine', body)).status).to.equal(403)
    for (const path of ['/transfer', '/transfer/objects', '/transfer/digests'])
      expect((await mine.http.request('GET', `/clusters/mine${path}`)).status).to.equal(403)
    const tenants = ['transfer', 'mine', '--host-kubeconfig', mine.kubeconfig]
    const asTenant = await runKcp([...tenants, '--to', join(target.rootDir, 'admin.kubeconfig')], { expectCode: 'any' })
    expect(asTenant.code).to.equal(1)
    expect(asTenant.stderr).to.match(/has not published its address/)

    await annotate(source, 'mine', { role: 'source', id: 'other', with: 'https://elsewhere:6443' })
    expect((await transfer('mine')).stderr).to.match(/"mine" is on its way to https:\/\/elsewhere:6443/)
    await annotate(source, 'mine', null)
    expect((await put(mine, 'goes-on')).status).to.equal(201)
  })

  it('takes writes again by itself if the command ends between closing and switching', async () => {
    const brief = await source.tenant('brief')
    const { http } = source.admin
    await annotate(source, 'brief', { role: 'source', id: 'm', with: 'nowhere' })
    const isClosed = async (): Promise<boolean> =>
      (await step(http, 'brief', { do: 'close', id: 'm', run: 'r', seconds: 3 })).status === 200
    await waitFor(isClosed, { what: 'the annotation to be known', deadlineMs: 10_000, intervalMs: 20 })
    const refused = await put(brief, 'now')
    expect([refused.status, refused.headers['retry-after']], refused.text).to.deep.equal([503, '1'])
    expect((await brief.http.request('GET', `${brief.base}${configMaps}`)).status).to.equal(200)
    const isOpen = async (): Promise<boolean> => (await put(brief, 'now')).status === 201
    await waitFor(isOpen, { what: 'writes to be taken again', deadlineMs: 15_000, intervalMs: 100 })
    const late = await step(http, 'brief', { do: 'commit', id: 'm', run: 'r' })
    expect(late.status, late.text).to.equal(409)
    expect(late.text).to.include('the command was too slow')
    expect((await put(brief, 'still')).status).to.equal(201)
  })

  it('is not open before the source has said so, whatever its own admins ask for', async () => {
    await annotateNew('early', { role: 'target', id: 'm', with: 'a source', keyHash: 'ab'.repeat(32) })
    const early = openRawClient({ kubeconfig: await kubeconfigOf('early', target) })
    try {
      const answer = await early.request('GET', `/clusters/early${configMaps}`)
      expect([answer.status, at(answer.json(), 'message')]).to.deep.equal([
        503,
        'logical cluster "early" is not whole yet: it is on its way from a source; if that was broken off, run the same kcp transfer there again',
      ])
      const opened = await step(early, 'early', { do: 'open', id: 'm', key: 'guessed', above: 0 })
      expect([opened.status, at(opened.json(), 'message')]).to.deep.equal([
        403,
        'logicalclusters.kcp.dev "early" is forbidden: this is not the key of the move',
      ])
    } finally {
      await early[Symbol.asyncDispose]()
    }
  })

  const annotateNew = async (name: string, note: object): Promise<void> => {
    const annotations = { 'kcp.dev/transfer': JSON.stringify(note) }
    const body = { apiVersion: 'kcp.dev/v1alpha1', kind: 'LogicalCluster', metadata: { name, annotations } }
    expect((await target.admin.http.request('POST', logicalClusters, { body })).status).to.equal(201)
    const isServed = async (): Promise<boolean> =>
      (await target.admin.http.request('GET', `/clusters/${name}/api`)).status === 200
    await waitFor(isServed, { what: `${name} to be served`, deadlineMs: 10_000, intervalMs: 20 })
  }

  it('that was broken off goes on, or is undone and leaves nothing at the target', async () => {
    const half = await source.tenant('half')
    for (let i = 0; i < 50; i++) await put(half, `c-${i}`)
    // As a command leaves it that was killed after its first round.
    const url = `https://127.0.0.1:${target.port}`
    await annotate(source, 'half', { role: 'source', id: 'm', with: url })
    await annotateNew('half', { role: 'target', id: 'm', with: 'source', keyHash: 'ab'.repeat(32) })
    const undone = await transfer('half', '--abort')
    expect([undone.code, undone.stderr]).to.deep.equal([0, ''])
    expect((await target.admin.http.request('GET', `${logicalClusters}/half`)).status).to.equal(404)
    expect((await put(half, 'goes-on')).status).to.equal(201)
    const moved = await transfer('half')
    expect([moved.code, moved.stderr], moved.stdout).to.deep.equal([0, ''])
    expect((await put(half, 'over-there')).status).to.equal(201)
    await using there = openRawClient({ kubeconfig: await kubeconfigOf('half', target) })
    for (const name of ['c-49', 'goes-on', 'over-there'])
      expect((await there.request('GET', `/clusters/half${configMaps}/${name}`)).status, name).to.equal(200)
  })
})
