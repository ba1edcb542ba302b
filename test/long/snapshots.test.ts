// Snapshots of a logical cluster under writes are of one moment; copies and restores that are killed at any moment leave
// nothing, or all of it after they have gone on. Needs a build.
import { expect } from 'chai'
import { createReadStream, existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { contentOf, readSnapshot } from '#snapshot/index.ts'
import {
  freePort,
  kcpProgram,
  kubectl,
  runKcp,
  startKcp,
  startProcess,
  waitFor,
  type ManagedProcess,
} from '#test/support/index.ts'
import { openRawClient, type RawClient } from '#test/integration/raw-client.ts'

const objects = Number(process.env['KCP_TEST_OBJECTS'] ?? 10_000)
const kills = Number(process.env['KCP_TEST_ROUNDS'] ?? 12)

describe('snapshots under writes and kills', function () {
  this.timeout(1_800_000)
  const dir = mkdtempSync(join(tmpdir(), 'kcp-long-snapshots-'))
  const rootDir = join(dir, 'root')
  const adminFile = join(rootDir, 'admin.kubeconfig')
  const path = '/clusters/large/api/v1/namespaces/default/configmaps'
  let port: number
  let kcp: ManagedProcess
  let admin: RawClient
  /** Of each object, each acknowledged write: revision and content. */
  const writes = new Map<string, { revision: number; text: string }[]>()

  before(async () => {
    port = await freePort()
    await start()
    await kubectl(adminFile, ['create', '-f', '-'], {
      input: { apiVersion: 'kcp.dev/v1alpha1', kind: 'LogicalCluster', metadata: { name: 'large' } },
    })
    await kubectl(adminFile, ['wait', '--for=condition=Ready', 'lc/large', '--timeout=30s'])
    const names = Array.from({ length: objects }, (_, i) => `c-${i}`)
    const queue = names.values()
    const fill = async (): Promise<void> => {
      for (const name of queue) await write('POST', name, 'first')
    }
    await Promise.all(Array.from({ length: 16 }, fill))
  })
  after(async () => {
    await admin[Symbol.asyncDispose]()
    await kcp.kill()
    rmSync(dir, { recursive: true, force: true })
  })

  it('a snapshot holds exactly what was acknowledged up to its revision, and nothing later', async () => {
    let isOver = false
    const writer = async (lane: number): Promise<void> => {
      for (let i = 0; !isOver; i++) {
        await write('PUT', `c-${(i * 4 + lane) % objects}`, `${lane}-${i}`)
        await delay(15)
      }
    }
    const writing = [0, 1, 2, 3].map(writer)
    for (let round = 0; round < 5; round++) {
      const file = join(dir, `round-${round}.kcp.tar.zst`)
      await runKcp(['snapshot', 'create', 'large', '-o', file, '--root-dir', rootDir])
      let revision = 0
      const seen = new Map<string, { revision: number; text: string }>()
      for await (const item of readSnapshot(createReadStream(file))) {
        if ('manifest' in item) revision = Number(item.manifest.revision)
        else if (item.resource === 'configmaps') {
          const { place, object } = contentOf(item)
          if (!place.name.startsWith('c-')) continue
          const { metadata, data } = object as unknown as {
            metadata: { resourceVersion: string }
            data: { text: string }
          }
          seen.set(place.name, { revision: Number(metadata.resourceVersion), text: data.text })
        }
      }
      expect(seen.size).to.equal(objects)
      // Writes whose acknowledgement is still under way are known a moment later.
      await delay(500)
      for (const [name, history] of writes) {
        const expected = history.filter((one) => one.revision <= revision).at(-1)
        expect(seen.get(name), `${name} at ${revision}`).to.deep.equal(expected)
      }
    }
    isOver = true
    await Promise.all(writing)
  })

  it('a copy of a server that is killed is not seen before it is whole', async () => {
    for (let round = 0; round < kills; round++) {
      const name = `copy-${round}`
      await kubectl(adminFile, ['create', '-f', '-'], {
        input: {
          apiVersion: 'kcp.dev/v1alpha1',
          kind: 'LogicalCluster',
          metadata: { name },
          spec: { source: { logicalClusterRef: { name: 'large' } } },
        },
      })
      const kubeconfig = (await runKcp(['kubeconfig', name, '--root-dir', rootDir])).stdout
      const file = join(dir, `${name}.kubeconfig`)
      writeFileSync(file, kubeconfig)
      await delay(Math.random() * 3000)
      await kcp.kill()
      await start()
      await using tenant = openRawClient({ kubeconfig: file })
      const whole = async (): Promise<boolean> => {
        const answer = await tenant.request('GET', `/clusters/${name}/api/v1/namespaces/default/configmaps`)
        if (answer.status !== 200) {
          expect(answer.status, answer.text).to.be.oneOf([401, 403, 404, 429, 503])
          return false
        }
        const { items } = answer.json() as unknown as { items: { metadata: { name: string } }[] }
        expect(items.filter(({ metadata }) => metadata.name.startsWith('c-'))).to.have.length(objects)
        return true
      }
      await waitFor(whole, { what: `${name} to be whole`, deadlineMs: 120_000, intervalMs: 20 })
      await kubectl(adminFile, ['delete', 'lc', name, '--wait=false'])
    }
  })

  it('a restore that is killed keeps users waiting, and ends with the objects of the snapshot when it runs again', async () => {
    const file = join(dir, 'whole.kcp.tar.zst')
    await runKcp(['snapshot', 'create', 'large', '-o', file, '--root-dir', rootDir])
    const kubeconfig = join(dir, 'large.kubeconfig')
    writeFileSync(kubeconfig, (await runKcp(['kubeconfig', 'large', '--root-dir', rootDir])).stdout)
    await using tenant = openRawClient({ kubeconfig })
    const restore = ['snapshot', 'restore', file, '--into', 'large', '--yes', '--root-dir', rootDir]
    for (let round = 0; round < kills; round++) {
      for (let i = 0; i < 200; i++) await write('PUT', `c-${(round * 200 + i) % objects}`, `later ${round}`)
      const child = await startProcess({ name: `restore-${round}`, command: kcpProgram, args: restore }, {})
      await delay(200 + Math.random() * 2500)
      await child.kill()
      const annotation = '{.metadata.annotations.kcp\\.dev/restoring}'
      const { stdout } = await kubectl(adminFile, ['get', 'lc', 'large', '-o', `jsonpath=${annotation}`])
      const seen = await tenant.request('GET', path)
      expect(seen.status, stdout).to.equal(stdout === '' ? 200 : 503)
      await runKcp(restore)
      const diff = await runKcp(['snapshot', 'diff', file, 'large', '--root-dir', rootDir, '-o', 'json'], {
        expectCode: 'any',
      })
      const found = JSON.parse(diff.stdout) as { resource: string }[]
      expect(found.filter(({ resource }) => resource !== 'events')).to.deep.equal([])
    }
  })

  it('a snapshot whose command is killed leaves no file under its name', async () => {
    for (let round = 0; round < kills; round++) {
      const file = join(dir, `killed-${round}.kcp.tar.zst`)
      const args = ['snapshot', 'create', 'large', '-o', file, '--root-dir', rootDir]
      const child = await startProcess({ name: `save-${round}`, command: kcpProgram, args }, {})
      await delay(100 + Math.random() * 1200)
      await child.kill()
      if (existsSync(file)) expect((await runKcp(['snapshot', 'verify', file])).code).to.equal(0)
    }
  })

  async function start(): Promise<void> {
    kcp = await startKcp(['start', '--root-dir', rootDir, '--port', String(port)], {
      name: 'kcp',
      ready: async (signal) => {
        if (!existsSync(adminFile)) return false
        await using client = openRawClient({ port })
        return (await client.request('GET', '/readyz', { signal }).catch(() => undefined))?.status === 200
      },
    })
    admin = openRawClient({ kubeconfig: adminFile })
  }

  async function write(method: 'POST' | 'PUT', name: string, text: string): Promise<void> {
    const body = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name }, data: { text } }
    const answer = await admin.request(method, method === 'POST' ? path : `${path}/${name}`, { body })
    expect(answer.status, answer.text).to.be.oneOf([200, 201])
    const { metadata } = answer.json() as { metadata: { resourceVersion: string } }
    const history = writes.get(name) ?? []
    history.push({ revision: Number(metadata.resourceVersion), text })
    writes.set(name, history)
  }
})
