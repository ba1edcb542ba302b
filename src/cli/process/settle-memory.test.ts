import { expect } from 'chai'
import { spawnSync, type SpawnSyncReturns } from 'node:child_process'

// Opens files until no descriptor is left, then lets three memory checks run.
const program = `
import { openSync } from 'node:fs'
import { settleMemory } from ${JSON.stringify(new URL('settle-memory.ts', import.meta.url).href)}
let looks = 0
const { memoryUsage } = process
process.memoryUsage = Object.assign(() => (looks++, memoryUsage()), { rss: memoryUsage.rss })
try { for (;;) openSync('/dev/null') } catch (error) { console.log(error.code) }
settleMemory({ firstMs: 1, everyMs: 1 })
setInterval(() => { if (looks >= 3) process.exit() }, 1)
`

// Works for a second, then idles until memory was collected. A machine that is busy with other things may leave it so
// little time that it looks idle while it works: then it says so.
const busyThenIdle = `
import { constants, PerformanceObserver } from 'node:perf_hooks'
import { settleMemory } from ${JSON.stringify(new URL('settle-memory.ts', import.meta.url).href)}
let state = 'busy'
new PerformanceObserver((list) => {
  // A loop without allocations causes no full collection of its own.
  if (!list.getEntries().some(({ detail }) => detail.kind === constants.NODE_PERFORMANCE_GC_MAJOR)) return
  const { user, system } = process.cpuUsage()
  const isStarved = (user + system) / 1000 < 0.5 * performance.now()
  console.log(state === 'busy' && isStarved ? 'starved' : state)
  process.exit()
}).observe({ entryTypes: ['gc'] })
settleMemory({ firstMs: 200, everyMs: 200 })
const end = performance.now() + 1000
const work = () => {
  for (const until = performance.now() + 5; performance.now() < until; );
  if (performance.now() < end) setImmediate(work)
  else state = 'idle'
}
work()
setInterval(() => {}, 10_000)
`

describe('settling memory', () => {
  it('skips a check while clients hold every file descriptor', () => {
    const node = [process.execPath, '--disable-warning=ExperimentalWarning', '--input-type=module', '--eval', program]
    const { status, stdout, stderr } = spawnSync('sh', ['-c', 'ulimit -n 64 && exec "$@"', 'sh', ...node], {
      encoding: 'utf8',
    })
    expect({ status, stdout, stderr }).to.deep.equal({ status: 0, stdout: 'EMFILE\n', stderr: '' })
  })

  it('collects when the process is idle, not while it works', function () {
    this.timeout(120_000)
    const args = ['--disable-warning=ExperimentalWarning', '--input-type=module', '--eval', busyThenIdle]
    const once = (): SpawnSyncReturns<string> =>
      spawnSync(process.execPath, args, { encoding: 'utf8', timeout: 10_000 })
    let ended = once()
    for (let again = 0; again < 10 && ended.stdout === 'starved\n'; again++) ended = once()
    const { status, stdout, stderr } = ended
    expect({ status, stdout, stderr }).to.deep.equal({ status: 0, stdout: 'idle\n', stderr: '' })
  })
})
