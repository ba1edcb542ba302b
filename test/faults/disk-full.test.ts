// kcp start on a full disk: writes are refused with a Status, reads continue, and nothing acknowledged is lost.
import { expect } from 'chai'
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort, startKcp, waitFor, type ManagedProcess } from '#test/support/index.ts'
import { openClient, type ApiResponse, type Client } from './client.ts'

const collection = '/api/v1/namespaces/default/configmaps'
const sizeMb = 24

describe('kcp start on a full disk', function () {
  this.timeout(180_000)
  let dir: string
  let disk: string
  let mounted = false
  let kcp: ManagedProcess
  let client: Client
  const acknowledged = new Map<string, string>()

  before(async function () {
    dir = mkdtempSync(join(tmpdir(), 'kcp-full-'))
    disk = join(dir, 'disk')
    mkdirSync(disk)
    const { status } = spawnSync('mount', ['-t', 'tmpfs', '-o', `size=${sizeMb}m`, 'kcp-full', disk])
    if (status !== 0) this.skip()
    mounted = true
    const rootDir = join(disk, 'root')
    const admin = join(rootDir, 'admin.kubeconfig')
    kcp = await startKcp(['start', '--root-dir', rootDir, '--port', String(await freePort())], {
      name: 'kcp-full',
      ready: async () => {
        if (!existsSync(admin)) return false
        using probe = openClient(admin, '')
        return (await probe.request('GET', '/readyz')).status === 200
      },
    })
    client = openClient(admin)
  })
  after(async () => {
    if (mounted) {
      client[Symbol.dispose]()
      await kcp.stop()
      spawnSync('umount', [disk])
    }
    rmSync(dir, { recursive: true, force: true })
  })

  const write = async (name: string): Promise<ApiResponse> => {
    const value = `${name}.${'x'.repeat(200_000)}`
    const response = await client.request('POST', collection, { body: { metadata: { name }, data: { value } } })
    if (response.status === 201) acknowledged.set(name, value)
    return response
  }
  const expectAll = async (): Promise<void> => {
    const { status, body } = await client.request('GET', collection)
    expect(status).to.equal(200)
    const found = new Map(body.items?.map(({ metadata, data }) => [metadata?.name ?? '', data?.['value'] ?? '']))
    for (const [name, value] of acknowledged) expect(found.get(name) === value, `"${name}" is as it was`).to.equal(true)
  }

  it('refuses writes with a Status that says why, continues to read and delete, and accepts writes again when there is space', async () => {
    let refused: ApiResponse | undefined
    for (let i = 0; i < 400 && refused === undefined; i++) {
      const response = await write(`fill-${i}`)
      if (response.status !== 201) refused = response
    }
    expect(refused?.status).to.equal(507)
    expect(refused?.body).to.deep.include({ kind: 'Status', code: 507 })
    expect(refused?.body.message).to.match(/full/)
    expect(acknowledged.size).to.be.greaterThan(10)
    await expectAll()
    expect(kcp.running).to.equal(true)
    // None of the refused writes took effect.
    const { body } = await client.request('GET', collection)
    const names = body.items?.map(({ metadata }) => metadata?.name ?? '') ?? []
    expect(names.filter((name) => name.startsWith('fill-') && !acknowledged.has(name))).to.deep.equal([])
    const gone = [...acknowledged.keys()].slice(0, 10)
    for (const name of gone) {
      const { status, body: answer } = await client.request('DELETE', `${collection}/${name}`)
      expect(status, answer.message).to.equal(200)
      acknowledged.delete(name)
    }
    await waitFor(async () => (await write(`again-${acknowledged.size}`)).status === 201, {
      what: 'a write where there is room',
      deadlineMs: 20_000,
    })
    await expectAll()
  })

  it('loses nothing if another program fills the disk to the last byte, and kcp is killed and restarted', async () => {
    const filler = join(disk, 'filler')
    try {
      for (let i = 0; i < sizeMb * 16; i++) writeFileSync(filler, Buffer.alloc(64 * 1024), { flag: 'a' })
    } catch (error) {
      expect(error).to.have.property('code', 'ENOSPC')
    }
    const responses = await Promise.all(Array.from({ length: 30 }, (_, i) => write(`late-${i}`)))
    for (const { status } of responses) expect(status).to.be.oneOf([201, 507])
    await expectAll()
    await kcp.kill()
    rmSync(filler)
    await kcp.start()
    await expectAll()
    await waitFor(async () => (await write('after')).status === 201, { what: 'a write', deadlineMs: 10_000 })
  })
})
