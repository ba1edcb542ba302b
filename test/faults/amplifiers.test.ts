// A sample of test/long/amplifiers that is short enough for every run of the tests: it shows that the measuring works,
// and finds what became quadratic in a common path.
import { fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { setPriority } from 'node:os'
import { kill } from 'node:process'
import { setTimeout as delay } from 'node:timers/promises'
import { expect } from 'chai'
import { measuredProcess } from '#test/long/amplifiers/measured-process.ts'
import { failureText, runMatrix } from '#test/long/amplifiers/run-matrix.ts'
import { confirmedDoubling, fails, mostWaitMs } from '#test/long/amplifiers/scenario.ts'
import { startSubject } from '#test/long/amplifiers/subject.ts'

describe('a sample of every input of a tenant', function () {
  this.timeout(300_000)

  it('costs at most n log n', async () => {
    const found = await runMatrix({ timeMs: 20_000, oneOf: 97, only: /^(POST|PUT) / })
    expect(found.requests).to.be.greaterThan(20)
    const findings = found.doubled.filter(fails).map(failureText)
    expect(findings, findings.join('\n')).to.deep.equal([])
  })

  it('ends no process through what expressions make of small values, and through selectors of watches', async () => {
    const found = await runMatrix({ timeMs: 25_000, only: /^expressions: |^selector of a watch: / })
    expect(found.unprepared).to.deep.equal([])
    expect(found.screened.length).to.be.greaterThan(8)
    const died = [...found.screened, ...found.doubled].filter(({ points }) => points.some(({ hasDied }) => hasDied))
    expect(died.map(failureText)).to.deep.equal([])
  })
})

describe('a sample of every answer of a server of a tenant', function () {
  this.timeout(300_000)

  it('costs at most n log n', async () => {
    const found = await runMatrix({ timeMs: 25_000, oneOf: 2, only: /^remote: / })
    expect(found.unprepared).to.deep.equal([])
    expect(found.requests).to.be.greaterThan(10)
    const findings = found.doubled.filter(fails).map(failureText)
    expect(findings, findings.join('\n')).to.deep.equal([])
  })
})

describe('the measuring of what inputs cost, while other programs use all processors', function () {
  this.timeout(300_000)
  const children: ChildProcess[] = []
  const start = (name: string): ChildProcess => {
    const child = fork(new URL(`../long/amplifiers/${name}.ts`, import.meta.url))
    children.push(child)
    return child
  }

  before(() => {
    // Of a lower priority, for the sake of the suites beside this one.
    for (let i = 0; i < 3; i++) setPriority(start('busy-process').pid ?? 0, 2)
  })
  after(async () => {
    const exits = children.map((child) => once(child, 'exit'))
    for (const child of children) child.kill('SIGKILL')
    await Promise.all(exits)
  })

  it('finds a quadratic cost, and no linear one', async () => {
    const server = start('growing-server')
    const [port] = (await once(server, 'message')) as [number]
    const send = async ({ path, body = '' }: { path: string; body?: string | object }) => {
      const response = await fetch(`http://127.0.0.1:${port}${path}`, { method: 'POST', body: body as string })
      return { status: response.status, text: await response.text() }
    }
    const process = { pid: server.pid ?? 0, running: true, start: () => Promise.resolve() }
    const measure = await measuredProcess(process, send, { restarted: () => undefined })
    const subject = { measure, prepare: () => Promise.resolve(undefined), worstWait: () => 0 }
    const verdictOf = async (exponent: number) => {
      const steps = (n: number) => [{ name: 'ask', sent: { method: 'POST', path: `/${exponent}`, body: String(n) } }]
      return (await confirmedDoubling(subject, { title: `n^${exponent}`, largest: 2048, steps })).map((verdict) => ({
        fails: fails(verdict),
        text: failureText(verdict),
      }))
    }
    const [linear] = await verdictOf(1)
    let [quadratic] = await verdictOf(2)
    // A processor that is shared may look faster at a larger size, once.
    for (let tries = 0; tries < 3 && quadratic?.fails === false; tries++) [quadratic] = await verdictOf(2)
    expect(linear?.fails, linear?.text).to.equal(false)
    expect(quadratic?.fails, quadratic?.text).to.equal(true)
  })

  it('finds that the neighbour waits for the server, and not that it waits for others', async () => {
    await using subject = await startSubject()
    const ask = () => subject.measure({ method: 'GET', path: '/api/v1/namespaces/default' }, { settle: true })
    const waits: number[] = []
    // One of several, as when a finding is confirmed.
    for (let tries = 0; tries < 5; tries++) {
      const { began, ended } = await ask()
      waits.push(subject.worstWait(began, ended))
    }
    expect(Math.min(...waits), String(waits)).to.be.below(mostWaitMs)
    let waited = 0
    // The neighbour may have had no processor to ask meanwhile.
    for (let tries = 0; tries < 5 && waited <= mostWaitMs; tries++) {
      const asked = ask()
      kill(subject.pid, 'SIGSTOP')
      await delay(5 * mostWaitMs)
      kill(subject.pid, 'SIGCONT')
      const { began, ended } = await asked
      waited = subject.worstWait(began, ended)
    }
    expect(waited).to.be.above(mostWaitMs)
  })
})
