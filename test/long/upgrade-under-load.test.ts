// `helm upgrade` of the chart on a real host while client-go sends 200 requests a second to a logical cluster through
// the host's API and follows one watch: no acknowledged write may be lost, no event missed, and no error left after
// client-go's own retries. KCP_STEADY_SECONDS (default 150): how long; KCP_TEST_UPGRADES (default 2): upgrades
// meanwhile.
import { expect } from 'chai'
import { setTimeout as delay } from 'node:timers/promises'
import { ensureGoClients } from '#test/clients/go-program.ts'
import { startChartHost, type ChartInstallation } from '#test/e2e/chart-installation.ts'
import { needsNodes, runCommand } from '#test/support/index.ts'

const seconds = Number(process.env['KCP_STEADY_SECONDS'] ?? 150)
const upgrades = Number(process.env['KCP_TEST_UPGRADES'] ?? 2)

/** The number of writers in scenario `steady`; each writes a ConfigMap of its own. */
const writers = 20

/** What scenario `steady` of test/clients/go prints. */
interface Steady {
  readonly requests: number
  readonly writes: number
  readonly refused: number
  readonly errors: Readonly<Record<string, number>>
  readonly lost: readonly string[]
  readonly gaps: readonly string[]
  readonly events: number
  readonly longestMs: number
}

describe('helm upgrade, uninstall and install under load', function () {
  this.timeout(seconds * 1000 + 900_000)
  const stack = new AsyncDisposableStack()
  let chart: ChartInstallation
  let program = ''

  before(async function () {
    await needsNodes(this)
    program = await ensureGoClients('go.mod')
    chart = stack.use(await startChartHost())
    await chart.install('install')
  })
  after(() => stack.disposeAsync())

  /** Sends requests to a logical cluster for this long while `disturb` runs, and resolves with what the client saw. */
  const steady = async (name: string, forSeconds: number, disturb: () => Promise<void>): Promise<Steady> => {
    const user = `owner-of-${name}`
    await chart.createLogicalCluster(name, user)
    const client = runCommand(program, [await chart.tenant(name, user), 'steady'], {
      env: { KCP_STEADY_SECONDS: String(forSeconds) },
      expectCode: 'any',
      timeoutMs: forSeconds * 1000 + 120_000,
    })
    const [{ code, stdout, stderr }] = await Promise.all([client, disturb()])
    const result = JSON.parse(stdout.trim().split('\n').at(-1) ?? '') as Steady
    console.log(`      ${JSON.stringify(result)}`)
    // The client also exits with 1 if there are `gaps`.
    if (result.gaps.length === 0) expect(code, stderr.slice(-2000)).to.equal(0)
    expect(result.lost).to.deep.equal([])
    return result
  }
  const timed = async (title: string, work: () => Promise<unknown>): Promise<void> => {
    const began = performance.now()
    await work()
    console.log(`      ${title}: ${((performance.now() - began) / 1000).toFixed(1)} s`)
  }

  it('loses nothing, and no client sees an error', async () => {
    const result = await steady('upgraded', seconds, async () => {
      for (let upgrade = 1; upgrade <= upgrades; upgrade++) {
        await delay((seconds * 1000) / (upgrades + 1) / 2)
        // Another value changes the pods of both Deployments: they are replaced one by one.
        const level = upgrade % 2 === 1 ? 'debug' : 'info'
        const levels = [`apiserver.logLevel=${level}`, `operator.logLevel=${level}`]
        await timed(`upgrade ${upgrade}`, () => chart.install('upgrade', ...levels))
      }
    })
    expect(result.gaps).to.deep.equal([])
    expect(result.errors).to.deep.equal({})
    expect(result.writes).to.be.greaterThan(seconds * 25)
  })

  it('loses nothing when it is uninstalled and installed again, and the watch goes on', async () => {
    const result = await steady('reinstalled', 90, async () => {
      await delay(10_000)
      await timed('uninstall', () => chart.helm(['uninstall', 'kcp', '--wait']))
      await timed('install', () => chart.install('install'))
    })
    // No server answers between uninstall and install.
    expect(Object.keys(result.errors)).not.to.deep.equal([])
    // The watch shows only the last state of what changed while it was cut: it may miss one state of each writer.
    expect(result.gaps.length).to.be.at.most(writers)
  })
})
