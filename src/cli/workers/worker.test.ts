import { expect } from 'chai'
import { fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { socketsPrefix, variables, type ToSupervisor, type ToWorker } from './messages.ts'

describe('a worker', function () {
  this.timeout(60_000)
  const dir = mkdtempSync(join(tmpdir(), 'kcp-worker-test-'))
  const sockets = mkdtempSync(join(tmpdir(), socketsPrefix))
  const file = new URL('worker.ts', import.meta.url).href
  const started: ChildProcess[] = []
  after(() => {
    for (const child of started) child.kill('SIGKILL')
    for (const one of [dir, sockets]) rmSync(one, { recursive: true, force: true })
  })

  /** Starts a process that runs this program with `tryWorker` and a registry `metrics`. */
  function start(program: string): ChildProcess {
    const path = join(dir, `${started.length}.ts`)
    const metrics = import.meta.resolve('#telemetry/index.ts')
    const imports = `import { tryWorker } from ${JSON.stringify(file)}; import { createMetrics } from ${JSON.stringify(metrics)}\n`
    writeFileSync(path, `${imports}const metrics = createMetrics()\n${program}\nsetInterval(() => undefined, 1e6)`)
    const env = { ...process.env, [variables.index]: '1', [variables.sockets]: sockets }
    const child = fork(path, { env, execArgv: [] })
    started.push(child)
    return child
  }

  /** Resolves with the next message of a kind. */
  async function next<K extends ToSupervisor['kind']>(
    child: ChildProcess,
    kind: K,
  ): Promise<ToSupervisor & { kind: K }> {
    for (;;) {
      const [message] = (await once(child, 'message')) as [ToSupervisor]
      if (message.kind === kind) return message as ToSupervisor & { kind: K }
    }
  }

  function tell(child: ChildProcess, message: ToWorker): void {
    child.send(message)
  }

  it('gives signs of life before it serves', async () => {
    const { kind } = await next(start('tryWorker()'), 'alive')
    expect(kind).to.equal('alive')
  })

  it('ends if its supervisor was gone before it was loaded', async () => {
    const child = start('while (process.connected) await new Promise((resolve) => setImmediate(resolve))\ntryWorker()')
    child.disconnect()
    expect(await once(child, 'exit')).to.deep.equal([1, null])
    expect(existsSync(sockets)).to.equal(false)
  })

  it('survives SIGHUP, and opens its files again if the supervisor asks for it', async () => {
    const child = start(
      `process.on('SIGHUP', () => metrics.gauge({ name: 'reopened', help: 'h' }).set(1)); tryWorker().shared(metrics)`,
    )
    await next(child, 'alive')
    tell(child, { kind: 'reopen' })
    tell(child, { kind: 'ask', id: 1 })
    const { snapshot } = await next(child, 'snapshot')
    expect(snapshot.map((metric) => (metric as { name: string }).name)).to.deep.equal(['reopened'])
    const other = start('tryWorker().shared(metrics)')
    await next(other, 'alive')
    other.kill('SIGHUP')
    tell(other, { kind: 'ask', id: 2 })
    expect((await next(other, 'snapshot')).id).to.equal(2)
  })

  it('answers without metrics if one of them throws', async () => {
    const child = start(
      `metrics.gauge({ name: 'bad', help: 'h', read: () => { throw new Error('bad') } }); tryWorker().shared(metrics)`,
    )
    for (const id of [1, 2]) {
      tell(child, { kind: 'ask', id })
      expect(await next(child, 'snapshot')).to.deep.equal({ kind: 'snapshot', id, snapshot: [] })
    }
  })
})
