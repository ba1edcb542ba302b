// `kcp start --store etcd` and `--store postgres`: what their users see, and whose data they refuse.
import { expect } from 'chai'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  freePort,
  kubectl,
  runKcp,
  startCluster,
  startEtcd,
  startKcp,
  startStoreServer,
  waitFor,
  type Etcd,
  type StoreServer,
} from '#test/support/index.ts'
import { startInstance, type KcpInstance } from './kcp-instance.ts'

for (const name of ['etcd', 'postgres'] as const)
  describe(`logical clusters in a server (${name})`, function () {
    this.timeout(120_000)
    const stack = new AsyncDisposableStack()
    let server: StoreServer
    let kcp: KcpInstance
    let dir = ''
    before(async () => {
      dir = mkdtempSync(join(tmpdir(), 'kcp-server-store-'))
      stack.defer(() => rmSync(dir, { recursive: true, force: true }))
      server = stack.use(await startStoreServer(name))
      kcp = stack.use(await startInstance(server.flags))
    })
    after(() => stack.disposeAsync())

    it('are there after a restart, with Secrets that the server does not show', async () => {
      const acme = await kcp.tenant('acme')
      await acme.kubectl(['create', 'secret', 'generic', 'hidden', '--from-literal=word=sesame'])
      await acme.kubectl(['create', 'configmap', 'shown', '--from-literal=word=plain'])
      await kcp.process.kill()
      await kcp.process.start()
      const { stdout } = await acme.kubectl(['get', 'secret', 'hidden', '-o', 'jsonpath={.data.word}'])
      expect(Buffer.from(stdout, 'base64').toString()).to.equal('sesame')
      const raw = await server.raw()
      expect(raw)
        .to.contain('plain')
        .and.not.contain('sesame')
        .and.not.contain(Buffer.from('sesame').toString('base64'))
    })

    it('are read from memory while the server is away, and writes say so until it is back', async () => {
      const acme = await kcp.tenant('away')
      const maps = `${acme.base}/api/v1/namespaces/default/configmaps`
      expect((await acme.http.request('POST', maps, { body: { metadata: { name: 'known' } } })).status).to.equal(201)
      await server.kill()
      expect((await acme.http.request('GET', `${maps}/known`)).status).to.equal(200)
      const refused = await acme.http.request('POST', maps, { body: { metadata: { name: 'late' } } })
      expect(refused.status, refused.text).to.equal(503)
      expect(refused.text.toLowerCase()).to.contain(name)
      await server.start()
      const written = async (): Promise<boolean> =>
        (await acme.http.request('POST', maps, { body: { metadata: { generateName: 'after-' } } })).status === 201
      await waitFor(written, { what: 'writes to go on', deadlineMs: 30_000 })
      const { items } = (await acme.http.request('GET', maps)).json() as { items: { metadata: { name: string } }[] }
      expect(items.map(({ metadata }) => metadata.name))
        .to.include('known')
        .and.not.include('late')
    })

    it('are refused to another installation, and its directory to an embedded store', async () => {
      expect(await refusal(join(dir, 'other'), server.flags)).to.match(
        /holds the data of the installation [0-9a-f]{16}/,
      )
      expect(await refusal(kcp.rootDir, [])).to.match(/kcp\.db/)
    })
  })

/** What `kcp start` says when it refuses to start. */
async function refusal(rootDir: string, args: readonly string[]): Promise<string> {
  const port = String(await freePort())
  const run = await runKcp(['start', '--root-dir', rootDir, '--port', port, ...args], {
    expectCode: 'any',
    timeoutMs: 30_000,
  })
  expect(run.code).to.be.oneOf([1, 2])
  return run.stderr
}

describe('logical clusters in an etcd', function () {
  this.timeout(120_000)
  const stack = new AsyncDisposableStack()
  let etcd: Etcd
  let kcp: KcpInstance
  let dir = ''
  const inEtcd = (...more: string[]): string[] => ['--store', 'etcd', '--etcd-servers', etcd.urls.join(), ...more]
  before(async () => {
    dir = mkdtempSync(join(tmpdir(), 'kcp-etcd-store-'))
    stack.defer(() => rmSync(dir, { recursive: true, force: true }))
    etcd = stack.use(await startEtcd())
    kcp = stack.use(await startInstance(inEtcd()))
  })
  after(() => stack.disposeAsync())

  it('come from another installation with revisions above those that they had, or without passing requests on', async () => {
    await using source = await startInstance()
    const to = ['--root-dir', source.rootDir, '--to', join(kcp.rootDir, 'admin.kubeconfig')]
    const revisionOf = (text: string): number =>
      Number((JSON.parse(text) as { metadata: { resourceVersion: string } }).metadata.resourceVersion)
    for (const [name, ...more] of [['moved'], ['cut', '--forward-days', '0']] as const) {
      const tenant = await source.tenant(name)
      const maps = `${tenant.base}/api/v1/namespaces/default/configmaps`
      await tenant.http.request('POST', maps, { body: { metadata: { name: 'one' } } })
      const before = revisionOf((await tenant.http.request('GET', maps)).text)
      expect((await runKcp(['transfer', name, ...to, ...more])).stdout).to.contain(`"${name}" has moved`)
      const file = join(dir, `${name}.kubeconfig`)
      writeFileSync(file, (await runKcp(['kubeconfig', name, '--root-dir', kcp.rootDir])).stdout)
      const { stdout } = await kubectl(file, ['get', 'configmaps', '-o', 'json'])
      expect(
        revisionOf((await kubectl(file, ['get', '--raw', maps.slice(tenant.base.length)])).stdout),
      ).to.be.greaterThan(before)
      expect(stdout).to.contain('"name": "one"')
      const old = await tenant.http.request('GET', `${maps}/one`)
      if (name === 'moved') expect(old.status, old.text).to.equal(200)
      else {
        expect(old.status, old.text).to.equal(410)
        expect(old.text).to.contain('ask for a kubeconfig there')
      }
    }
  })

  it('of an embedded store are not forgotten by a start with etcd', async () => {
    await using embedded = await startInstance()
    await embedded.process.stop()
    expect(await refusal(embedded.rootDir, inEtcd('--etcd-prefix', '/other'))).to.match(
      /take it there with kcp migrate-store/,
    )
  })

  it('need flags that fit together, and files that can be read', async () => {
    const rootDir = join(dir, 'fresh')
    expect(await refusal(rootDir, ['--store', 'etcd'])).to.match(/needs --etcd-servers/)
    expect(await refusal(rootDir, ['--store', 'postgres'])).to.match(/needs --postgres-servers/)
    const inPostgres = ['--store', 'postgres', '--postgres-servers', 'db:5432']
    expect(await refusal(kcp.rootDir, inPostgres)).to.match(/are in etcd: run kcp migrate-store --back first/)
    expect(await refusal(rootDir, inPostgres.slice(2))).to.match(/only used with --store postgres/)
    for (const more of ['--postgres-certfile=a', '--postgres-tls=off --postgres-cafile=a', '--postgres-history=0'])
      expect(await refusal(rootDir, [...inPostgres, ...more.split(' ')])).to.match(
        /used together|only used with|1 or more/,
      )
    for (const wrong of ['a/b', 'kcp:secret@db', 'db:x', ''])
      expect(await refusal(rootDir, [...inPostgres.slice(0, 3), wrong])).to.match(/--postgres-servers/)
    expect(await refusal(rootDir, ['--etcd-servers', etcd.urls.join()])).to.match(/only used with --store etcd/)
    expect(await refusal(rootDir, inEtcd('--etcd-certfile', 'a'))).to.match(/used together/)
    expect(await refusal(rootDir, inEtcd('--etcd-cafile', join(dir, 'none')))).to.match(/cannot read .*none/)
    writeFileSync(join(dir, 'ca.pem'), 'no certificate')
    const secured = inEtcd('--etcd-cafile', join(dir, 'ca.pem')).map((arg) => arg.replace('http:', 'https:'))
    expect(await refusal(rootDir, secured)).to.match(/etcd|certificate|PEM/i)
    const closed = `http://127.0.0.1:${await freePort()}`
    expect(await refusal(rootDir, ['--store', 'etcd', '--etcd-servers', closed])).to.match(/etcd: .*ECONNREFUSED/)
    for (const wrong of ['ftp://x', 'http://a,https://b', 'http://a/path', 'nonsense'])
      expect(await refusal(rootDir, ['--store', 'etcd', '--etcd-servers', wrong])).to.match(/--etcd-servers/)
  })

  it('of a host keep the former keys of Secrets: seal-key reseal and drop are refused', async () => {
    await using host = await startCluster({ name: 'etcdseal' })
    const address = host.hostAddress
    const port = String(await freePort(address))
    const listening = ['--port', port, '--bind-address', address, '--advertise-address', address]
    await using apiserver = await startKcp(['apiserver', ...listening, ...inEtcd('--etcd-prefix', '/hosted')], {
      env: { KUBECONFIG: host.kubeconfig },
    })
    await waitFor(() => apiserver.log().includes('is ready'), { what: 'kcp to be ready', deadlineMs: 120_000 })
    const step = (name: string): ReturnType<typeof runKcp> =>
      runKcp(['seal-key', name, '--host-kubeconfig', host.kubeconfig], { expectCode: 'any' })
    const keys = async (): Promise<Record<string, string>> => {
      const { stdout } = await kubectl(host.kubeconfig, ['get', 'secret', 'kcp-keys', '-n', 'kcp-system', '-o', 'json'])
      return (JSON.parse(stdout) as { data: Record<string, string> }).data
    }
    for (const name of ['add', 'use']) expect((await step(name)).code, name).to.equal(0)
    const before = await keys()
    expect(Object.keys(before)).to.include('seal.former-1')
    for (const name of ['reseal', 'drop']) {
      const { code, stderr } = await step(name)
      expect([code, stderr], name).to.satisfy(
        ([status, text]: [number, string]) => status === 1 && /are in etcd.*former keys are kept/.test(text),
      )
    }
    expect(await keys()).to.deep.equal(before)
  })
})
