import { expect } from 'chai'
import { spawnSync } from 'node:child_process'

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

describe('settling memory', () => {
  it('skips a check while clients hold every file descriptor', () => {
    const node = [process.execPath, '--disable-warning=ExperimentalWarning', '--input-type=module', '--eval', program]
    const { status, stdout, stderr } = spawnSync('sh', ['-c', 'ulimit -n 64 && exec "$@"', 'sh', ...node], {
      encoding: 'utf8',
    })
    expect({ status, stdout, stderr }).to.deep.equal({ status: 0, stdout: 'EMFILE\n', stderr: '' })
  })
})
