// Moves of a logical cluster between two installations while the command, the source or the target is killed at any
// moment: afterwards one of them has every acknowledged write, the other takes none. Needs a build.
import { expect } from 'chai'
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import {
  freePort,
  kcpProgram,
  runKcp,
  startKcp,
  startProcess,
  waitFor,
  type ManagedProcess,
} from '#test/support/index.ts'
import { openRawClient, type RawClient } from '#test/integration/raw-client.ts'

const objects = Number(process.env['KCP_TEST_OBJECTS'] ?? 2000)
const rounds = Number(process.env['KCP_TEST_ROUNDS'] ?? 18)
const configMaps = '/api/v1/namespaces/default/configmaps'
const logicalClusters = '/clusters/root/apis/kcp.dev/v1alpha1/logicalclusters'

interface Place {
  readonly rootDir: string
  readonly port: number
  readonly adminFile: string
  process: ManagedProcess
  admin: RawClient
}

describe('moves between installations under kills', function () {
  this.timeout(3_600_000)
  const dir = mkdtempSync(join(tmpdir(), 'kcp-long-transfer-'))
  let source: Place
  let target: Place

  const start = (rootDir: string, port: number): Promise<ManagedProcess> => {
    const file = join(rootDir, 'admin.kubeconfig')
    return startKcp(['start', '--root-dir', rootDir, '--port', String(port)], {
      name: `kcp-${port}`,
      ready: async (signal) => {
        if (!existsSync(file)) return false
        await using client = openRawClient({ port })
        return (await client.request('GET', '/readyz', { signal })).status === 200
      },
    })
  }
  const open = async (name: string): Promise<Place> => {
    const [rootDir, port] = [join(dir, name), await freePort()]
    const process = await start(rootDir, port)
    const adminFile = join(rootDir, 'admin.kubeconfig')
    return { rootDir, port, adminFile, process, admin: openRawClient({ kubeconfig: adminFile }) }
  }
  const restart = async (place: Place): Promise<void> => {
    await place.process.kill()
    place.process = await start(place.rootDir, place.port)
    await place.admin[Symbol.asyncDispose]()
    place.admin = openRawClient({ kubeconfig: place.adminFile })
  }

  before(async () => {
    source = await open('source')
    target = await open('target')
  })
  after(async () => {
    for (const { process, admin } of [source, target]) {
      await admin[Symbol.asyncDispose]()
      await process.kill()
    }
    rmSync(dir, { recursive: true, force: true })
  })

  for (const victim of ['command', 'source', 'target'] as const) {
    it(`lose nothing and write nowhere twice when the ${victim} is killed`, async () => {
      for (let round = 0; round < rounds; round++) await moveWithKill(victim, `${victim}-${round}`, round)
    })
  }

  /** `round` chooses the moment of the kill: evenly over the time that a move takes. */
  async function moveWithKill(victim: 'command' | 'source' | 'target', name: string, round: number): Promise<void> {
    await create(name)
    const kubeconfig = join(dir, `${name}.kubeconfig`)
    writeFileSync(kubeconfig, (await runKcp(['kubeconfig', name, '--root-dir', source.rootDir])).stdout)
    const acknowledged = new Map<string, string>()
    let isOver = false
    const isStopped = (): boolean => isOver
    const write = async (lane: number): Promise<void> => {
      let client = openRawClient({ kubeconfig })
      for (let i = 0; !isStopped(); i++) {
        // Each name is written once, so that a write which was taken twice is seen as a conflict or a second object.
        const [object, text] = [`w-${lane}-${i}`, `${lane}-${i}`]
        for (let isDone = false; !isDone && !isOver;) {
          const answer = await client
            .request('POST', `/clusters/${name}${configMaps}`, { body: { metadata: { name: object }, data: { text } } })
            .catch(() => undefined)
          if (answer?.status === 201) acknowledged.set(object, text)
          // 409: the write before was taken, and its answer was lost.
          isDone = answer?.status === 201 || answer?.status === 409
          if (isDone) continue
          await client[Symbol.asyncDispose]()
          client = openRawClient({ kubeconfig })
          await delay(20)
        }
        await delay(15)
      }
      await client[Symbol.asyncDispose]()
    }
    const writing = [0, 1, 2].map(write)
    const to = ['--to', target.adminFile]
    const command = await startProcess({
      name: `transfer-${name}`,
      command: kcpProgram,
      args: ['transfer', name, '--root-dir', source.rootDir, ...to],
    })
    await delay(200 + (round / rounds) * 2500)
    if (victim === 'command') await command.kill()
    else {
      await restart(victim === 'source' ? source : target)
      await delay(500)
      await command.kill()
    }
    // Whatever is left is ended by the same command, or undone.
    const undoes = round % 3 === 2
    const ended = await runKcp(
      ['transfer', name, '--root-dir', source.rootDir, ...to, ...(undoes ? ['--abort'] : [])],
      {
        expectCode: 'any',
      },
    )
    const isMoved = ended.code === 0 ? !undoes : /has moved already/.test(ended.stderr)
    expect(ended.code === 0 || isMoved || /is not on its way/.test(ended.stderr), ended.stderr).to.equal(true)
    const written = acknowledged.size
    await waitFor(() => Promise.resolve(acknowledged.size > written + 10), {
      what: `writes to ${name} after the move`,
      deadlineMs: 60_000,
      intervalMs: 50,
    })
    isOver = true
    await Promise.all(writing)
    await requireOneWriter(name, isMoved)
    const place = isMoved ? target : source
    const list = (await place.admin.request('GET', `/clusters/${name}${configMaps}`)).json() as unknown as {
      items: { metadata: { name: string }; data?: { text: string } }[]
    }
    const found = new Map(list.items.map((item) => [item.metadata.name, item.data?.text]))
    for (let i = 0; i < objects; i++) expect(found.get(`c-${i}`), `c-${i} of ${name}`).to.equal('first')
    for (const [object, text] of acknowledged) expect(found.get(object), `${object} of ${name}`).to.equal(text)
    for (const { admin } of [source, target]) await admin.request('DELETE', `${logicalClusters}/${name}`)
  }

  /** One place takes a write, and the other one refuses it or does not have the logical cluster. */
  async function requireOneWriter(name: string, isMoved: boolean): Promise<void> {
    const [serves, other] = isMoved ? [target, source] : [source, target]
    const write = (place: Place) =>
      place.admin.request('POST', `/clusters/${name}${configMaps}`, { body: { metadata: { name: 'one-writer' } } })
    expect((await write(serves)).status).to.equal(201)
    expect((await write(other)).status).to.equal(isMoved ? 503 : 404)
  }

  async function create(name: string): Promise<void> {
    const body = { apiVersion: 'kcp.dev/v1alpha1', kind: 'LogicalCluster', metadata: { name } }
    expect((await source.admin.request('POST', logicalClusters, { body })).status).to.equal(201)
    const isServed = async (): Promise<boolean> =>
      (await source.admin.request('GET', `/clusters/${name}/api`)).status === 200
    await waitFor(isServed, { what: `${name} to be served`, deadlineMs: 20_000, intervalMs: 20 })
    const queue = Array.from({ length: objects }, (_, i) => `c-${i}`).values()
    const fill = async (): Promise<void> => {
      for (const object of queue)
        await source.admin.request('POST', `/clusters/${name}${configMaps}`, {
          body: { metadata: { name: object }, data: { text: 'first' } },
        })
    }
    await Promise.all(Array.from({ length: 16 }, fill))
  }
})
