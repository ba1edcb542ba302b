import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { bootId, identifyProcess, isAlive } from './process-identity.ts'
import { startProcess } from './process.ts'
import { readRecords, runVariable, writeRecord, type RunRecord } from './run-record.ts'
import { acquireRun, newRun, sweepRuns } from './run.ts'

describe('runs', () => {
  const before = process.env.KCP_CACHE
  let cache = ''
  const children: ChildProcess[] = []
  beforeEach(() => {
    cache = mkdtempSync(join(tmpdir(), 'kcp-runs-'))
    process.env.KCP_CACHE = cache
  })
  afterEach(() => {
    for (const child of children.splice(0)) child.kill('SIGKILL')
    expect(readRecords()).to.deep.equal([])
    if (before === undefined) delete process.env.KCP_CACHE
    else process.env.KCP_CACHE = before
    rmSync(cache, { recursive: true })
  })

  async function sleeper(env: Record<string, string> = {}): Promise<ChildProcess> {
    const child = spawn('sleep', ['60'], { env: { ...process.env, ...env } })
    children.push(child)
    await once(child, 'spawn')
    return child
  }

  function abandoned(change: Partial<RunRecord>): RunRecord {
    const owner = { pid: process.pid, startTicks: '1' } // our pid, but another process
    const { slot, clusters, resources } = { slot: 0, clusters: [], resources: [] }
    const record = { id: 'abc123', bootId: bootId(), owner, slot, createdAt: '', clusters, resources, ...change }
    writeRecord(record)
    return record
  }

  it('have addresses of their own while they last', async () => {
    await using one = await newRun()
    await using two = await newRun()
    expect(one.record.slot).to.not.equal(two.record.slot)
    expect(one.id).to.match(/^[0-9a-z]{6}$/)
  })

  it('end with their last holder and leave no folder behind', async () => {
    const { run, release } = await acquireRun()
    const second = run.hold()
    await release()
    expect(run.stopped).to.equal(false)
    await second()
    expect(run.stopped).to.equal(true)
    expect(existsSync(run.dir)).to.equal(false)
    const next = await acquireRun()
    expect(next.run.id).to.not.equal(run.id)
    await next.release()
  })

  it('are shared by concurrent callers, also after an earlier run has ended', async () => {
    await (await acquireRun()).release()
    const asked = await Promise.all([acquireRun(), acquireRun(), acquireRun()])
    expect(new Set(asked.map(({ run }) => run.id)).size).to.equal(1)
    await Promise.all(asked.map(({ release }) => release()))
  })

  it('are swept when their owner is dead: recorded and marked processes, folders', async () => {
    const recorded = await sleeper()
    const marked = await sleeper({ [runVariable]: 'abc123' })
    const identities = [recorded, marked].map(({ pid }) => identifyProcess(pid!)!)
    const path = join(cache, 'left')
    mkdirSync(path)
    writeFileSync(join(path, 'file'), 'x')
    abandoned({
      resources: [
        { type: 'directory', path, scope: 'east' },
        { type: 'process', name: 'sleep', scope: 'east', ...identities[0]! },
      ],
    })
    expect(await sweepRuns({ log: () => undefined })).to.deep.equal(['abc123'])
    expect(identities.map(isAlive)).to.deep.equal([false, false])
    expect(existsSync(path)).to.equal(false)
  })

  it('never kill a process that only reuses the pid of a recorded one', async () => {
    const other = await sleeper()
    const stranger = { pid: other.pid!, startTicks: '1' }
    abandoned({ resources: [{ type: 'process', name: 'etcd', scope: 'east', ...stranger }] })
    await sweepRuns({ log: () => undefined })
    expect(isAlive(identifyProcess(other.pid!)!)).to.equal(true)
  })

  it('of another boot are swept without killing any pid', async () => {
    const other = await sleeper({ [runVariable]: 'abc123' })
    const identity = identifyProcess(other.pid!)!
    abandoned({ bootId: 'before', resources: [{ type: 'process', name: 'x', scope: 'east', ...identity }] })
    expect(await sweepRuns({ log: () => undefined })).to.deep.equal(['abc123'])
    expect(isAlive(identity)).to.equal(true)
  })

  it('are not swept while a person keeps them or their owner lives', async () => {
    await using mine = await newRun()
    await using kept = await newRun({ keepAs: 'mine' })
    expect(await sweepRuns()).to.deep.equal([])
    expect(readRecords().map(({ id }) => id)).to.have.members([mine.id, kept.id])
  })

  it('start processes that are ready, log their output, and end them by pid', async () => {
    const ready = join(cache, 'ready')
    // Ready once it handles SIGTERM.
    const script = 'trap "exit 7" TERM; echo $$ > "$1"; while :; do sleep 0.02; done'
    const started = await startProcess({
      name: 'server',
      command: 'sh',
      args: ['-c', script, 'sh', ready],
      ready: () => {
        const [server, ...others] = readRecords()[0]?.resources ?? []
        if (server?.type !== 'process' || others.length > 0 || !existsSync(ready)) return false
        return readFileSync(ready, 'utf8').trim() === String(server.pid)
      },
    })
    const { pid } = started
    expect(started.running).to.equal(true)
    expect(await started.kill()).to.deep.equal({ code: null, signal: 'SIGKILL' })
    await started.start()
    expect(started.pid).to.not.equal(pid)
    expect(await started.stop()).to.deep.equal({ code: 7, signal: null })
    expect(await started.stop()).to.deep.equal({ code: 7, signal: null })
  })

  it('report the end of its log when a process ends before it is ready', async () => {
    const args = ['-c', 'echo "port in use" >&2; exit 1']
    const failing = startProcess({ name: 'server', command: 'sh', args, ready: () => false })
    const error = String(await failing.catch((reason: unknown) => reason))
    expect(error).to.contain('could not start "server"').and.contain('code 1').and.contain('port in use')
  })

  it('leave no process when a start is aborted', async () => {
    const signal = AbortSignal.timeout(100)
    const starting = startProcess({ name: 's', command: 'sleep', args: ['60'], ready: () => false }, { signal })
    expect(String(await starting.catch((reason: unknown) => reason))).to.contain('TimeoutError')
  })
})
