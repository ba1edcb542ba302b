// Three replicas of `kcp apiserver` on a real host: every request is answered by the owner of its logical cluster,
// whichever replica it was sent to.
import { expect } from 'chai'
import { readFileSync } from 'node:fs'
import { request } from 'node:https'
import { parse } from 'yaml'
import { bucketCount } from '#store/ownership/index.ts'
import { kubectl, waitFor } from '#test/support/index.ts'
import { openRawClient, type RawClient } from './raw-client.ts'
import { startReplicas, type ReplicaSet, type RunningReplica } from './replicas.ts'
import { framesOf } from './web-socket-frames.ts'

describe('three replicas of kcp apiserver', function () {
  this.timeout(300_000)
  let set: ReplicaSet
  let owner: RunningReplica
  let other: RunningReplica
  let through: RawClient
  let direct: RawClient
  let kubeconfig: string
  const base = '/clusters/acme'
  const collection = `${base}/api/v1/namespaces/default/configmaps`

  before(async () => {
    set = await startReplicas(3)
    await set.create('acme')
    await waitFor(async () => (await set.leases()).reduce((sum, { claims }) => sum + claims.size, 0) === bucketCount, {
      what: 'every bucket to have one owner',
      deadlineMs: 30_000,
    })
    owner = await set.ownerOf('acme')
    other = set.replicas.find((one) => one !== owner) ?? owner
    kubeconfig = await set.kubeconfig('acme', other)
    through = openRawClient({ kubeconfig, host: other.address })
    direct = openRawClient({ kubeconfig: await set.kubeconfig('acme', owner), host: owner.address })
  })
  after(async () => {
    await through[Symbol.asyncDispose]()
    await direct[Symbol.asyncDispose]()
    await set[Symbol.asyncDispose]()
  })

  it('share the buckets evenly', async () => {
    const sizes = (await set.leases()).map(({ claims }) => claims.size)
    expect(sizes).to.have.length(3)
    expect(Math.max(...sizes) / Math.min(...sizes)).to.be.at.most(1.3)
  })

  it('pass every verb on, with body, status and headers', async () => {
    const created = await through.request('POST', collection, { body: { metadata: { name: 'a' }, data: { k: 'ü' } } })
    expect(created.status).to.equal(201)
    expect(created.headers['audit-id']).to.be.a('string')
    const read = await through.request('GET', `${collection}/a`)
    expect(read.json()).to.deep.equal((await direct.request('GET', `${collection}/a`)).json())
    expect(read.json()).to.have.nested.property('data.k', 'ü')
    const patch = { headers: ['content-type', 'application/merge-patch+json'], body: { data: { more: 'x' } } }
    const patched = (await through.request('PATCH', `${collection}/a`, patch)).json()
    expect(patched).to.have.nested.property('data.more', 'x')
    const updated = await through.request('PUT', `${collection}/a`, { body: { ...patched, data: {} } })
    expect(updated.status).to.equal(200)
    expect((await through.request('PUT', `${collection}/a`, { body: patched })).status).to.equal(409)
    const [head, same] = [await through.request('HEAD', base), await direct.request('HEAD', base)]
    expect([head.status, head.text, head.headers['content-length']]).to.deep.equal([
      ...[same.status, '', same.headers['content-length']],
    ])
    expect((await through.request('GET', `${collection}/none`)).json()).to.have.property('reason', 'NotFound')
    const listed = await through.request('GET', collection, { headers: ['accept-encoding', 'gzip'] })
    expect(listed.status).to.equal(200)
    expect((await through.request('DELETE', `${collection}/a`)).status).to.equal(200)
    expect((await through.request('DELETE', `${collection}?labelSelector=none`)).status).to.equal(200)
    expect((await through.request('GET', `${base}/openapi/v2`)).body.length).to.be.greaterThan(500_000)
  })

  it('pass on large bodies and large lists', async () => {
    const text = 'x'.repeat(900_000)
    for (const name of ['large-1', 'large-2', 'large-3'])
      expect(
        (await through.request('POST', collection, { body: { metadata: { name }, data: { text } } })).status,
      ).to.equal(201)
    const tooLarge = { metadata: { name: 'large-4' }, data: { text: text.repeat(5) } }
    expect((await through.request('POST', collection, { body: tooLarge })).status).to.equal(413)
    const list = (await through.request('GET', collection)).json() as { items: { metadata: { name: string } }[] }
    expect(list.items.map(({ metadata }) => metadata.name)).to.include.members(['large-1', 'large-2', 'large-3'])
    await through.request('DELETE', `${collection}?fieldSelector=metadata.name!%3Dkube-root-ca.crt`)
  })

  it('pass on watches, and the end of a client', async () => {
    await using watch = await through.watch(`${collection}?watch=true&fieldSelector=metadata.name%3Dseen`)
    expect(watch.status).to.equal(200)
    await direct.request('POST', collection, { body: { metadata: { name: 'seen' } } })
    expect((await watch.next())?.type).to.equal('ADDED')
    await through.request('DELETE', `${collection}/seen`)
    expect((await watch.next())?.type).to.equal('DELETED')
    await using short = await through.watch(`${collection}?watch=true&timeoutSeconds=1&resourceVersion=0`)
    expect((await short.rest()).map(({ type }) => type)).to.deep.equal(['ADDED'])
  })

  it('keep the connection between them when a client sends many headers', async () => {
    await using watch = await through.watch(`${collection}?watch=true&fieldSelector=metadata.name%3Dafter`)
    const headers = (count: number): string[] =>
      Array.from({ length: count }, (_, i) => [`x-long-${i}`, String(i).padEnd(5000, 'q')]).flat()
    const answers = []
    for (const count of [1, 20, 24, 26, 28, 34, 44])
      answers.push((await through.request('GET', collection, { headers: headers(count) })).status)
    expect(answers).to.deep.equal([200, 200, 200, 431, 431, 431, 431])
    await direct.request('POST', collection, { body: { metadata: { name: 'after' } } })
    expect((await watch.next())?.type).to.equal('ADDED')
    await direct.request('DELETE', `${collection}/after`)
  })

  it('pass on upgrades: a watch over a WebSocket, and the refusal of an exec', async () => {
    const handshake = [
      ...['Upgrade', 'websocket', 'Sec-WebSocket-Version', '13'],
      ...['Sec-WebSocket-Key', 'dGhlIHNhbXBsZSBub25jZQ==', 'Origin', 'https://127.0.0.1'],
    ]
    const { status, headers, socket } = await through.upgrade(
      `${collection}?watch=true&fieldSelector=metadata.name%3Dframe`,
      handshake,
    )
    expect(status).to.equal(101)
    expect(headers['sec-websocket-accept']).to.equal('s3pPLMBiTxaQ9kYGzzhZRbK+xOo=')
    await direct.request('POST', collection, { body: { metadata: { name: 'frame' } } })
    const frame = await framesOf(socket!).next()
    expect((frame.value as { payload: Buffer }).payload.toString()).to.include('"name":"frame"')
    socket!.destroy()
    await kubectl(kubeconfig, ['run', 'web', '--image=nginx'])
    const { stderr } = await kubectl(kubeconfig, ['exec', 'web', '--', 'ls'], { expectCode: 1 })
    expect(stderr).to.include('pod web does not have a host assigned')
  })

  it('know the client by its own credentials, whichever replica it asks', async () => {
    const whoAmI = ['auth', 'whoami', '-o', 'json']
    const name = async (file: string, args: readonly string[]): Promise<string> => {
      const { status } = JSON.parse((await kubectl(file, args)).stdout) as {
        status: { userInfo: { username: string } }
      }
      return status.userInfo.username
    }
    expect(await name(kubeconfig, whoAmI)).to.equal('admin')
    const token = (await kubectl(kubeconfig, ['create', 'token', 'default'])).stdout.trim()
    await using anonymous = openRawClient({ port: other.port, host: other.address })
    const asked = { headers: ['authorization', `Bearer ${token}`, 'content-type', 'application/json'] }
    const review = { apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' }
    const reviews = 'apis/authentication.k8s.io/v1/selfsubjectreviews'
    for (const path of [`${base}/${reviews}`, `/${reviews}`]) {
      const answer = await anonymous.request('POST', path, { ...asked, body: review })
      expect(answer.json()).to.have.nested.property('status.userInfo.username', 'system:serviceaccount:default:default')
    }
    // Without a path, the certificate says which logical cluster is meant; health is of the process itself.
    const inner = collection.slice(base.length)
    expect((await through.request('GET', inner)).text).to.equal((await direct.request('GET', inner)).text)
    expect((await through.request('GET', inner)).status).to.equal(200)
    for (const client of [through, direct]) expect((await client.request('GET', '/readyz')).status).to.equal(200)
    expect((await anonymous.request('GET', collection)).status).to.equal(403)
    const forged = { headers: ['x-remote-user', 'admin', 'x-remote-group', 'system:masters'] }
    expect((await anonymous.request('GET', collection, forged)).status).to.equal(403)
    expect((await anonymous.request('GET', collection, { headers: ['authorization', 'Bearer x'] })).status).to.equal(
      401,
    )
  })

  it('refuse the headers of a hop from every client, and a client on the port for replicas', async () => {
    const replicas = await set.leases()
    for (const url of [collection, '/readyz', '/clusters/none/api', '/api/v1/namespaces'])
      for (const header of ['x-kcp-hop-certificates', 'X-KCP-Hop-Address', 'x-kcp-hop-anything'])
        for (const client of [through, direct])
          expect((await client.request('GET', url, { headers: [header, ''] })).status, `${url} ${header}`).to.equal(400)
    const upgrade = await through.upgrade(`${collection}?watch=true`, [
      'Upgrade',
      'websocket',
      'x-kcp-hop-address',
      '1',
    ])
    expect(upgrade.status).to.equal(400)
    for (const { address } of replicas)
      for (const identity of [{}, identityIn(kubeconfig)]) {
        const { promise, resolve } = Promise.withResolvers<string | undefined>()
        const asked = request(`https://${address}/readyz`, { ...identity, rejectUnauthorized: false, agent: false })
        asked.on('response', ({ statusCode }) => resolve(`answered ${statusCode}`))
        asked.on('error', ({ code }: NodeJS.ErrnoException) => resolve(code))
        asked.end()
        expect(await promise).to.be.oneOf(refusals)
      }
  })

  it('answer lists and watches over all logical clusters from each of them', async () => {
    await set.create('bob', { owner: 'admin' })
    const names = new Set<string>()
    for (const replica of set.replicas) {
      const file = await set.installationKubeconfig('*', replica)
      await using all = openRawClient({ kubeconfig: file, host: replica.address })
      const list = (await all.request('GET', '/clusters/*/api/v1/configmaps?labelSelector=all')).json()
      const { resourceVersion } = list['metadata'] as { resourceVersion: string }
      expect((list['items'] as unknown[]).length).to.equal(names.size)
      await using watch = await all.watch(
        `/clusters/*/api/v1/configmaps?watch=true&labelSelector=all&resourceVersion=${resourceVersion}`,
      )
      for (const name of ['acme', 'bob']) {
        const object = { metadata: { name: `through-${replica.port}`, labels: { all: '' } } }
        const path = `/clusters/${name}/api/v1/namespaces/default/configmaps`
        await using one = openRawClient({ kubeconfig: await set.kubeconfig(name, replica), host: replica.address })
        expect((await one.request('POST', path, { body: object })).status).to.equal(201)
        const event = await watch.next()
        expect(event?.object.metadata.annotations?.['kcp.dev/logical-cluster']).to.equal(name)
        names.add(`${name}/${replica.port}`)
      }
    }
  })

  it('share the APIs of one logical cluster with consumers that other replicas own, and show all to the provider', async () => {
    const consumers = ['share-a', 'share-b', 'share-c', 'share-d']
    await Promise.all(consumers.map((name) => set.create(name)))
    const owners = new Set(await Promise.all(consumers.map((name) => set.ownerOf(name))))
    expect(owners.size, 'owners of the consumers').to.be.greaterThan(1)
    const apis = '/apis/apis.kcp.io/v1alpha2'
    const definition = {
      metadata: { name: 'gears.example.io' },
      spec: {
        group: 'example.io',
        scope: 'Namespaced',
        names: { plural: 'gears', kind: 'Gear' },
        versions: [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: { type: 'object' } } }],
      },
    }
    const send = async (client: RawClient, path: string, body: object): Promise<void> => {
      const { status, text } = await client.request('POST', path, { body })
      expect(status, text).to.equal(201)
    }
    await send(through, `${base}/apis/apiextensions.k8s.io/v1/customresourcedefinitions`, definition)
    const resources = [{ name: 'gears', group: 'example.io', crd: 'gears.example.io' }]
    await send(through, `${base}${apis}/apiexports`, {
      apiVersion: 'apis.kcp.io/v1alpha2',
      kind: 'APIExport',
      metadata: { name: 'gears' },
      spec: { resources },
    })
    const rbac = `${base}/apis/rbac.authorization.k8s.io/v1`
    const rules = [{ apiGroups: ['apis.kcp.io'], resources: ['apiexports'], verbs: ['bind'] }]
    await send(through, `${rbac}/clusterroles`, { metadata: { name: 'bind' }, rules })
    await send(through, `${rbac}/clusterrolebindings`, {
      metadata: { name: 'bind' },
      subjects: [{ kind: 'Group', apiGroup: 'rbac.authorization.k8s.io', name: 'system:authenticated' }],
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'bind' },
    })
    const registration = `${base}/apis/admissionregistration.k8s.io/v1`
    const resourceRules = [{ apiGroups: ['*'], apiVersions: ['*'], resources: ['gears'], operations: ['CREATE'] }]
    const validations = [{ expression: "object.metadata.name != 'denied'" }]
    await send(through, `${registration}/validatingadmissionpolicies`, {
      metadata: { name: 'gears' },
      spec: { matchConstraints: { resourceRules }, validations },
    })
    await send(through, `${registration}/validatingadmissionpolicybindings`, {
      metadata: { name: 'gears' },
      spec: { policyName: 'gears', validationActions: ['Deny'] },
    })
    const denied = { apiVersion: 'example.io/v1', kind: 'Gear', metadata: { name: 'denied' } }
    const untilAnswered = async (client: RawClient, name: string, code: number): Promise<void> => {
      const path = `/clusters/${name}/apis/example.io/v1/namespaces/default/gears?dryRun=All`
      await waitFor(async () => (await client.request('POST', path, { body: denied })).status === code, {
        what: `${code} by a policy of the provider in ${name}`,
        deadlineMs: 20_000,
      })
    }
    for (const name of consumers) {
      await using client = openRawClient({ kubeconfig: await set.kubeconfig(name, other), host: other.address })
      const spec = { reference: { export: { path: 'acme', name: 'gears' } }, admission: { policies: 'Accepted' } }
      await send(client, `/clusters/${name}${apis}/apibindings`, {
        apiVersion: 'apis.kcp.io/v1alpha2',
        kind: 'APIBinding',
        metadata: { name: 'gears' },
        spec,
      })
      const gears = `/clusters/${name}/apis/example.io/v1/namespaces/default/gears`
      await waitFor(async () => (await client.request('GET', gears)).status === 200, {
        what: `the bound resource in ${name}`,
        deadlineMs: 20_000,
      })
      await send(client, gears, { apiVersion: 'example.io/v1', kind: 'Gear', metadata: { name: 'one' } })
      await untilAnswered(client, name, 422)
    }
    // Policies act wherever the provider is, and so do their changes.
    const gone = await through.request('DELETE', `${registration}/validatingadmissionpolicybindings/gears`)
    expect(gone.status, gone.text).to.equal(200)
    for (const name of consumers) {
      await using client = openRawClient({ kubeconfig: await set.kubeconfig(name, other), host: other.address })
      await untilAnswered(client, name, 201)
    }
    const view = '/services/apiexport/acme/gears/clusters'
    for (const client of [through, direct]) {
      const shown = (await client.request('GET', `${view}/*/apis/example.io/v1/gears`)).json() as {
        items: { metadata: { annotations: Record<string, string> } }[]
      }
      expect(shown.items.map(({ metadata }) => metadata.annotations['kcp.io/cluster'])).to.have.members(consumers)
      const written = await client.request(
        'DELETE',
        `${view}/${consumers[client === through ? 0 : 1] ?? ''}/apis/example.io/v1/namespaces/default/gears/one`,
      )
      expect(written.status, written.text).to.equal(200)
      consumers.splice(client === through ? 0 : 1, 1)
      await waitFor(
        async () => {
          const { text } = await client.request('GET', `${view}/*/apis/example.io/v1/gears`)
          return (JSON.parse(text) as { items: object[] }).items.length === consumers.length
        },
        { what: 'the deletion to be seen', deadlineMs: 10_000 },
      )
    }
  })

  it('write each event of an audit log once, and show all of them, whichever replica is asked', async () => {
    const audit = {
      omitStages: ['RequestReceived'],
      rules: [{ level: 'Request', verbs: ['create'] }],
      readable: true,
    }
    await set.host.kubectl(['patch', 'lc/acme', '--type=merge', '-p', JSON.stringify({ spec: { audit } })])
    await waitFor(async () => (await through.request('GET', `${base}/audit`)).status === 200, {
      what: 'the audit log of acme',
      deadlineMs: 10_000,
    })
    for (const [name, client] of Object.entries({ 'by-owner': direct, 'by-other': through }))
      await client.request('POST', collection, { headers: ['audit-id', name], body: { metadata: { name } } })
    for (const client of [direct, through]) {
      const { text } = await client.request('GET', `${base}/audit`)
      const ids = text
        .split('\n')
        .slice(0, -1)
        .map((line) => (JSON.parse(line) as { auditID: string }).auditID)
      expect(ids.filter((id) => id.startsWith('by-'))).to.deep.equal(['by-owner', 'by-other'])
    }
  })

  it('answer through the aggregated API of the host too', async () => {
    const path = `/apis/virtual.kcp.dev/v1alpha1/logicalclusters/bob/proxy/api/v1/namespaces/default/configmaps`
    const { stdout } = await kubectl(set.host.kubeconfig, ['get', '--raw', path])
    expect((JSON.parse(stdout) as { items: unknown[] }).items.length).to.be.at.least(3)
  })
})

/** What a TLS server answers to a client without a certificate that it wants, depending on who notices first. */
const refusals = [
  ...['ECONNRESET', 'EPIPE', 'ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED', 'ERR_SSL_TLSV1_ALERT_UNKNOWN_CA'],
  ...['ERR_SSL_SSLV3_ALERT_BAD_CERTIFICATE', 'ERR_SSL_SSL/TLS_ALERT_CERTIFICATE_REQUIRED'],
]

function identityIn(kubeconfig: string): { cert: Buffer; key: Buffer } {
  const { users } = parse(readFileSync(kubeconfig, 'utf8')) as { users: { user: Record<string, string> }[] }
  const decode = (name: string): Buffer => Buffer.from(users[0]?.user[name] ?? '', 'base64')
  return { cert: decode('client-certificate-data'), key: decode('client-key-data') }
}
