// A backup of thousands of logical clusters while they are used, restored on an empty machine by the words of
// docs/disaster.md; and between `kcp start` and a host, both ways. Needs a build. KCP_TEST_CLUSTERS says how many.
import { expect } from 'chai'
import {
  createReadStream,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { createClient, type Transport } from '#client/index.ts'
import { openDirect, openInstallation } from '#cli/commands/installation.ts'
import type { InstallationFlags } from '#cli/commands/flags.ts'
import {
  contentOf,
  differences,
  keyOf,
  readSnapshot,
  snapshotPath,
  type Content,
  type Difference,
  type SnapshotManifest,
} from '#snapshot/index.ts'
import { freePort, runKcp, startCluster, startKcp, waitFor, type ManagedProcess } from '#test/support/index.ts'
import { openRawClient } from '#test/integration/raw-client.ts'

const count = Number(process.env['KCP_TEST_CLUSTERS'] ?? 10_000)
/** A host takes each logical cluster as objects of its etcd, through its API server. */
const hosted = Math.min(count, Number(process.env['KCP_TEST_HOSTED_CLUSTERS'] ?? 300))
const lanes = 16

describe(`a backup of ${count} logical clusters`, function () {
  this.timeout(7_200_000)
  const { signal } = new AbortController()
  const dir = mkdtempSync(join(tmpdir(), 'kcp-long-backup-'))
  const running: ManagedProcess[] = []
  const say = (text: string): void => void process.stderr.write(`    ${text}\n`)
  after(async () => {
    for (const one of running) await one.kill()
    rmSync(dir, { recursive: true, force: true })
  })

  it('is taken under writes, and makes of an empty machine with its keys the same installation', async () => {
    const rootDir = join(dir, 'first')
    const first = await startInstallation(rootDir)
    const began = performance.now()
    await make(rootDir, count)
    say(`${count} logical clusters made in ${seconds(began)} s`)
    let isOver = false
    let acknowledged = 0
    const writing = Array.from({ length: 4 }, async (_, lane) => {
      await using admin = openRawClient({ kubeconfig: join(rootDir, 'admin.kubeconfig') })
      for (let i = 0; !isOver; i++) {
        const path = `/clusters/${nameOf((i * 4 + lane) % count)}/api/v1/namespaces/default/configmaps`
        const body = { metadata: { name: `w-${lane}-${i}` }, data: { text: String(i) } }
        const answer = await admin.request('POST', path, { body })
        expect(answer.status, answer.text).to.equal(201)
        acknowledged++
        await delay(20)
      }
    })
    const folder = join(dir, 'backup')
    const saving = performance.now()
    const made = await runKcp(['backup', '-o', folder, '--root-dir', rootDir], { timeoutMs: 3_600_000 })
    say(`${made.stdout.split('\n')[0] ?? ''} (${seconds(saving)} s, ${acknowledged} writes meanwhile)`)
    isOver = true
    await Promise.all(writing)
    expect(readdirSync(join(folder, 'clusters')).length).to.equal(count + 1)
    say(`${(bytesIn(join(folder, 'clusters')) / 1024 / 1024).toFixed(1)} MiB`)
    await first.kill()

    const empty = join(dir, 'second')
    mkdirSync(empty)
    for (const key of ['pki', 'seal.key']) cpSync(join(rootDir, key), join(empty, key), { recursive: true })
    rmSync(rootDir, { recursive: true, force: true })
    const second = await startInstallation(empty)
    const restoring = performance.now()
    const restored = await runKcp(['restore', folder, '--root-dir', empty], { timeoutMs: 3_600_000 })
    say(`${restored.stdout.trim()} (${seconds(restoring)} s)`)
    const index = JSON.parse(readFileSync(join(folder, 'backup.json'), 'utf8')) as Index
    await using opened = await open({ rootDir: empty })
    const ids = await opened.ids()
    for (const { object } of index.logicalClusters) expect(ids.get(object.metadata.name)).to.equal(object.metadata.uid)
    const comparing = performance.now()
    const compared = await compare(folder, index, opened.transport, 'same')
    say(`${compared} objects compared in ${seconds(comparing)} s: all equal`)
    await second.kill()
  })

  it(`goes from kcp start to a host and back, with the same objects (${hosted} logical clusters)`, async () => {
    const rootDir = join(dir, 'embedded')
    const first = await startInstallation(rootDir)
    await make(rootDir, hosted)
    const out = join(dir, 'out')
    await runKcp(['backup', '-o', out, '--root-dir', rootDir])
    await first.kill()

    await using host = await startCluster({ name: 'backuphost' })
    const address = host.hostAddress
    const port = await freePort(address)
    const env = { KUBECONFIG: host.kubeconfig }
    const listening = ['--port', String(port), '--bind-address', address, '--advertise-address', address]
    await using apiserver = await startKcp(['apiserver', ...listening], { env })
    await using operator = await startKcp(['operator'], { env })
    for (const program of [apiserver, operator])
      await waitFor(() => program.log().includes('is ready'), { what: 'kcp to be ready', deadlineMs: 120_000 })
    const there = ['--host-kubeconfig', host.kubeconfig]
    const began = performance.now()
    await runKcp(['restore', out, ...there], { timeoutMs: 3_600_000 })
    say(`${hosted} logical clusters restored into a host in ${seconds(began)} s`)
    const index = JSON.parse(readFileSync(join(out, 'backup.json'), 'utf8')) as Index
    {
      await using opened = await open({ hostKubeconfig: host.kubeconfig })
      say(`${await compare(out, index, opened.transport, 'other')} objects compared in the host: all equal`)
    }
    const back = join(dir, 'back')
    await runKcp(['backup', '-o', back, ...there], { timeoutMs: 3_600_000 })

    const last = join(dir, 'last')
    const third = await startInstallation(last)
    await runKcp(['restore', back, '--root-dir', last], { timeoutMs: 3_600_000 })
    await using opened = await open({ rootDir: last })
    say(`${await compare(out, index, opened.transport, 'other')} objects compared after the way back: all equal`)
    await third.kill()
  })

  interface Index {
    readonly logicalClusters: readonly {
      readonly object: { readonly metadata: { readonly name: string; readonly uid: string } }
      readonly file: string
    }[]
  }

  const nameOf = (i: number): string => `lc-${i}`
  const seconds = (began: number): string => ((performance.now() - began) / 1000).toFixed(1)

  function bytesIn(folder: string): number {
    return readdirSync(folder).reduce((sum, name) => sum + statSync(join(folder, name)).size, 0)
  }

  async function startInstallation(rootDir: string): Promise<ManagedProcess> {
    const port = await freePort()
    const adminFile = join(rootDir, 'admin.kubeconfig')
    const kcp = await startKcp(['start', '--root-dir', rootDir, '--port', String(port)], {
      name: `kcp-${port}`,
      readyDeadlineMs: 120_000,
      ready: async (life) => {
        if (!existsSync(adminFile)) return false
        await using client = openRawClient({ port })
        return (await client.request('GET', '/readyz', { signal: life }).catch(() => undefined))?.status === 200
      },
    })
    running.push(kcp)
    return kcp
  }

  /** Logical clusters with objects of several kinds, with owners, Secrets and custom resources here and there. */
  async function make(rootDir: string, clusters: number): Promise<void> {
    const numbers = Array.from({ length: clusters }, (_, i) => i).values()
    const fill = async (): Promise<void> => {
      await using admin = openRawClient({ kubeconfig: join(rootDir, 'admin.kubeconfig') })
      const post = async (path: string, body: object): Promise<void> => {
        for (;;) {
          const answer = await admin.request('POST', path, { body })
          // A logical cluster that was just made is served a moment later.
          if ([404, 429, 503].includes(answer.status)) {
            await delay(50)
            continue
          }
          expect(answer.status, answer.text).to.equal(201)
          return
        }
      }
      for (const i of numbers) {
        const name = nameOf(i)
        await post('/clusters/root/apis/kcp.dev/v1alpha1/logicalclusters', {
          apiVersion: 'kcp.dev/v1alpha1',
          kind: 'LogicalCluster',
          metadata: { name, labels: { group: String(i % 7) } },
          spec: { owners: [{ kind: 'User', name: `user-${i}` }] },
        })
        const base = `/clusters/${name}/api/v1/namespaces/default`
        for (const c of [0, 1, 2])
          await post(`${base}/configmaps`, { metadata: { name: `c-${c}` }, data: { text: `${i} ${c}`.repeat(20) } })
        await post(`${base}/secrets`, { metadata: { name: 'key' }, stringData: { key: `treasure ${i}` } })
        const template = { metadata: { labels: { a: 'b' } }, spec: { containers: [{ name: 'c', image: 'c' }] } }
        if (i % 10 === 0)
          await post(`/clusters/${name}/apis/apps/v1/namespaces/default/deployments`, {
            metadata: { name: 'web' },
            spec: { replicas: 0, selector: { matchLabels: { a: 'b' } }, template },
          })
      }
    }
    await Promise.all(Array.from({ length: lanes }, fill))
  }

  async function open(
    flags: InstallationFlags,
  ): Promise<AsyncDisposable & { readonly transport: Transport; ids(): Promise<Map<string, string>> }> {
    const installation = await openInstallation(flags, signal)
    const transport = await openDirect(installation)
    return {
      transport,
      async ids() {
        const gvr = { group: 'kcp.dev', version: 'v1alpha1', resource: 'logicalclusters' }
        const { items } = await installation.clusters.list(gvr, { signal })
        return new Map(items.map(({ metadata }) => [metadata.name ?? '', metadata.uid ?? '']))
      },
      async [Symbol.asyncDispose]() {
        await transport[Symbol.asyncDispose]()
        await installation[Symbol.asyncDispose]()
      },
    }
  }

  /**
   * Compares each object of each logical cluster with that of the backup; returns how many. `other`: ids and uids are
   * others.
   */
  async function compare(folder: string, index: Index, transport: Transport, ids: 'same' | 'other'): Promise<number> {
    const waiting = [...index.logicalClusters]
    let objects = 0
    const next = async (): Promise<void> => {
      for (let one = waiting.pop(); one !== undefined; one = waiting.pop()) {
        const { name } = one.object.metadata
        const then = await contentIn(createReadStream(join(folder, one.file)))
        const client = createClient(transport, { basePath: `/clusters/${name}` })
        const now = await contentIn(await client.stream(snapshotPath, { signal }))
        expect(now.manifest.logicalCluster.id === then.manifest.logicalCluster.id).to.equal(ids === 'same')
        const found = differences(then, now).filter((one) => !isOwn(one))
        expect(found, name).to.deep.equal([])
        objects += then.objects.size
      }
    }
    await Promise.all(Array.from({ length: 4 }, next))
    return objects
  }

  /** What an installation writes itself: its authority, its own address. Events tell of another time. */
  function isOwn({ resource, namespace, name }: Difference): boolean {
    const isAddress = ['endpoints', 'endpointslices.discovery.k8s.io'].includes(resource)
    return (
      resource === 'events' ||
      name === 'kube-root-ca.crt' ||
      (isAddress && namespace === 'default' && name === 'kubernetes')
    )
  }

  async function contentIn(source: AsyncIterable<Uint8Array>): Promise<Content> {
    let manifest: SnapshotManifest | undefined
    const objects = new Map<string, ReturnType<typeof contentOf>>()
    for await (const item of readSnapshot(source)) {
      if ('manifest' in item) manifest = item.manifest
      else {
        const one = contentOf(item)
        objects.set(keyOf(one.place), one)
      }
    }
    if (manifest === undefined) throw new Error('the snapshot is empty')
    return { manifest, objects }
  }
})
