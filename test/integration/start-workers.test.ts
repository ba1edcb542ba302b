// `kcp start --workers 2`: a supervisor, the server, and the operator in a process of its own.
import { expect } from 'chai'
import { existsSync, mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { kubectl, runKcp, startKcp, waitFor, type ManagedProcess } from '#test/support/index.ts'
import { openRawClient } from './raw-client.ts'
import { isGone, workersOf } from './replicas.ts'

const deadlineMs = 60_000

describe('kcp start with a process for the operator', function () {
  this.timeout(180_000)
  const dir = mkdtempSync(join(tmpdir(), 'kcp-start-workers-'))
  const rootDir = join(dir, 'root')
  const admin = join(rootDir, 'admin.kubeconfig')
  const audit = join(dir, 'audit.log')
  let kcp: ManagedProcess

  before(async () => {
    const args = ['start', '--root-dir', rootDir, '--port', '0', '--workers', '2', '--audit-log', audit]
    kcp = await startKcp(args, { ready: () => existsSync(admin), name: 'start-workers' })
  })
  after(async () => {
    await kcp.stop()
    rmSync(dir, { recursive: true, force: true })
  })

  /** The processes by number of the worker. */
  const workers = (): Map<string, number> => {
    const found = new Map<string, number>()
    for (const pid of workersOf({ process: kcp })) {
      const index = /KCP_WORKER=(\d)/.exec(readFileSync(`/proc/${pid}/environ`, 'utf8'))?.[1]
      if (index !== undefined) found.set(index, pid)
    }
    return found
  }
  const bothRun = async (): Promise<Map<string, number>> => {
    await waitFor(() => workers().size === 2, { what: 'both workers to run', deadlineMs })
    return workers()
  }
  /** Creates a logical cluster; the operator makes it Ready. */
  const create = async (name: string): Promise<void> => {
    await waitFor(async () => (await runKcp(['create', name, '--root-dir', rootDir])).stdout.includes('it is ready'), {
      what: `logical cluster "${name}" to be Ready`,
      deadlineMs,
    })
  }
  const kill = async (index: string): Promise<void> => {
    const pid = (await bothRun()).get(index)
    if (pid === undefined) throw new Error(`no worker ${index}`)
    process.kill(pid, 'SIGKILL')
    await waitFor(() => !existsSync(`/proc/${pid}`), { what: 'the worker to end', deadlineMs })
  }

  it('makes logical clusters Ready, and shows the metrics of both', async () => {
    await create('first')
    await bothRun()
    await using client = openRawClient({ kubeconfig: admin })
    const { text } = await client.request('GET', '/metrics')
    for (const name of ['kcp_request_duration_seconds_count', 'kcp_members']) expect(text).to.contain(`\n${name}`)
    expect(text.match(/^process_resident_memory_bytes /gm)).to.have.length(1)
  })

  it('opens the audit log again after SIGHUP, and no process ends', async () => {
    const before = await bothRun()
    renameSync(audit, `${audit}.old`)
    process.kill(kcp.pid, 'SIGHUP')
    await waitFor(() => existsSync(audit), { what: 'a new file', deadlineMs })
    await kubectl(admin, ['get', 'lc', 'first'])
    await waitFor(() => readFileSync(audit, 'utf8').includes('/logicalclusters/first'), { what: 'a line', deadlineMs })
    expect(await bothRun()).to.deep.equal(before)
  })

  it('goes on answering while the operator is killed, and starts it again', async () => {
    await kill('2')
    expect((await kubectl(admin, ['get', 'lc', 'first', '-o', 'name'])).stdout).to.contain('first')
    await create('second')
  })

  it('starts the server again, with all that it had', async () => {
    await kill('1')
    await waitFor(async () => (await kubectl(admin, ['get', 'lc', '-o', 'name'])).stdout.split('\n').length === 3, {
      what: 'the server to answer again',
      deadlineMs,
    })
    await create('third')
  })

  it('tells mistakes once, and ends', async () => {
    const { port } = new URL((/server: (\S+)/.exec(readFileSync(admin, 'utf8')) ?? [])[1] ?? '')
    const flags = ['start', '--root-dir', join(dir, 'other'), '--port', port, '--workers', '2']
    const { stderr } = await runKcp(flags, { expectCode: 1 })
    expect(stderr.match(/cannot listen on/g)).to.have.length(1)
    expect(existsSync(join(dir, 'other'))).to.equal(false)
    expect((await runKcp(['start', '--demo', '--workers', '2'], { expectCode: 2 })).stderr).to.contain('one worker')
  })

  it('ends with all its processes', async () => {
    const pids = [...(await bothRun()).values()]
    await kcp.stop()
    expect(await kcp.exited).to.deep.equal({ code: 0, signal: null })
    for (const pid of pids) expect(existsSync(`/proc/${pid}`)).to.equal(false)
  })

  it('leaves no process behind after a second signal, not even one that does not react', async () => {
    await kcp.start()
    const pids = [...(await bothRun()).values()]
    for (const pid of pids) process.kill(pid, 'SIGSTOP')
    process.kill(kcp.pid, 'SIGTERM')
    process.kill(kcp.pid, 'SIGINT')
    expect(await kcp.exited).to.deep.equal({ code: 1, signal: null })
    await waitFor(() => pids.every(isGone), { what: 'the workers to end', deadlineMs })
  })
})
