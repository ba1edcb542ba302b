// `kcp migrate-store`: all objects arrive, nothing else changes for tenants, and an interruption loses nothing.
import { expect } from 'chai'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { kcpProgram, runKcp, startKcp, startStoreServer, waitFor } from '#test/support/index.ts'
import { startInstance } from './kcp-instance.ts'

interface Listed {
  readonly metadata: { readonly resourceVersion: string }
  readonly items: readonly {
    readonly metadata: { readonly name: string; readonly uid: string; resourceVersion?: string }
  }[]
}

for (const kind of ['etcd', 'postgres'] as const)
  describe(`the data of kcp start that go into a server (${kind}) and back`, function () {
    this.timeout(180_000)
    it('are the same for a tenant, and watches from before list again', async () => {
      await using server = await startStoreServer(kind)
      await using file = await startInstance()
      const { rootDir } = file
      const acme = await file.tenant('acme')
      const maps = `${acme.base}/api/v1/namespaces/default/configmaps`
      await acme.kubectl(['create', 'secret', 'generic', 'hidden', '--from-literal=word=sesame'])
      for (let n = 0; n < 700; n++)
        await acme.http.request('POST', maps, { body: { metadata: { name: `m${n}` }, data: { n: String(n) } } })
      const list = async (): Promise<Listed> => (await acme.http.request('GET', maps)).json() as unknown as Listed
      const before = await list()
      // A watch from before this deletion could never learn of it in the new store.
      await acme.http.request('DELETE', `${maps}/m0`)
      const latest = await list()
      const migrate = (...more: string[]): ReturnType<typeof runKcp> =>
        runKcp(['migrate-store', '--root-dir', rootDir, ...server.flags, ...more], { expectCode: 'any' })
      const running = await migrate()
      expect([running.code, running.stderr]).to.satisfy(
        ([code, text]: [number, string]) => code === 1 && /in use by process/.test(text),
      )
      await file.process.stop()

      // Killed in the middle, it goes on. On a fast machine it may have ended before.
      const broken = spawn(kcpProgram, ['migrate-store', '--root-dir', rootDir, ...server.flags], { stdio: 'ignore' })
      const ended = once(broken, 'exit')
      const mark = join(rootDir, 'data', 'migrating')
      await waitFor(() => existsSync(mark), { what: 'the migration to begin', deadlineMs: 60_000, intervalMs: 1 })
      await sleep(100)
      broken.kill('SIGKILL')
      const [, by] = (await ended) as [number | null, string | null]
      if (by === 'SIGKILL' && existsSync(mark)) {
        const start = ['start', '--root-dir', rootDir, '--port', String(file.port)]
        expect((await runKcp(start, { expectCode: 'any' })).stderr).to.contain('kcp migrate-store runs')
        const moved = await migrate()
        expect(moved.code, moved.stderr).to.equal(0)
      }
      expect((await migrate()).stderr).to.contain('are elsewhere already')
      // As if it had been killed at its very end.
      writeFileSync(mark, '1')
      expect((await migrate()).code).to.equal(0)
      expect(existsSync(mark)).to.equal(false)

      const check = async (args: readonly string[]): Promise<void> => {
        await using _kcp = await startKcp(['start', '--root-dir', rootDir, '--port', String(file.port), ...args], {
          ready: async () => (await acme.http.request('GET', maps).catch(() => undefined))?.status === 200,
        })
        const found = await list()
        const plain = ({ items }: Listed): unknown =>
          items.map(({ metadata: { resourceVersion: _, ...rest }, ...object }) => ({ ...object, metadata: rest }))
        expect(plain(found)).to.deep.equal(plain(latest))
        expect(Number(found.metadata.resourceVersion)).to.be.at.least(Number(latest.metadata.resourceVersion))
        const since = `watch=1&resourceVersion=${before.metadata.resourceVersion}&timeoutSeconds=5`
        expect((await acme.http.request('GET', `${maps}?${since}`)).text).to.match(/"code":410/)
        const { stdout } = await acme.kubectl(['get', 'secret', 'hidden', '-o', 'jsonpath={.data.word}'])
        expect(Buffer.from(stdout, 'base64').toString()).to.equal('sesame')
      }
      await check(server.flags)
      const more = kind === 'etcd' ? ['--etcd-prefix', '/other'] : ['--postgres-schema', 'other']
      const wrong = await runKcp(['migrate-store', '--root-dir', rootDir, ...server.flags, ...more, '--back'], {
        expectCode: 'any',
      })
      expect(wrong.stderr).to.match(
        /the logical clusters of .* are in (etcd below \/kcp|PostgreSQL in schema kcp), not/,
      )
      const placeFile = join(rootDir, 'data', `in-${kind}`)
      const place = readFileSync(placeFile)
      const back = await migrate('--back')
      expect(back.code, back.stderr).to.equal(0)
      writeFileSync(mark, '1')
      writeFileSync(placeFile, place)
      expect((await migrate('--back')).code).to.equal(0)
      expect(existsSync(mark)).to.equal(false)
      expect(readdirSync(join(rootDir, 'data')).filter((name) => name.startsWith('in-'))).to.deep.equal([])
      expect(existsSync(join(rootDir, 'data', 'kcp.db'))).to.equal(true)
      await check([])
      expect((await migrate('--back')).stderr).to.contain('has a database already')
    })

    it('are refused by a place that has others', async () => {
      await using server = await startStoreServer(kind)
      await using other = await startInstance(server.flags)
      await other.process.stop()
      await using file = await startInstance()
      await file.process.stop()
      const { stderr, code } = await runKcp(['migrate-store', '--root-dir', file.rootDir, ...server.flags], {
        expectCode: 'any',
      })
      expect(code).to.equal(1)
      expect(stderr).to.match(/holds the data of|has data already/)
      expect(existsSync(join(file.rootDir, 'data', 'kcp.db'))).to.equal(true)
    })
  })
