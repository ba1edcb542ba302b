// No input of a tenant costs more than n log n, and no neighbour waits: every list, map and text of every request the
// server documents, what decides, selects and defines, and what servers of tenants answer. KCP_AMPLIFIERS_ONLY: a
// pattern of titles; KCP_AMPLIFIERS_ONE_OF: only one of so many, evenly, and KCP_AMPLIFIERS_PIECE: which one, from 0;
// KCP_AMPLIFIERS_DIR: where the tables are written; KCP_AMPLIFIERS_PAIRS=1: two at a time; KCP_AMPLIFIERS_MEMORY: the
// MiB that the server may have.
import { expect } from 'chai'
import { fails } from './scenario.ts'
import { failureText, keepResults, runMatrix } from './run-matrix.ts'

const only = process.env['KCP_AMPLIFIERS_ONLY']
const oneOf = Number(process.env['KCP_AMPLIFIERS_ONE_OF'] ?? 1)
const piece = Number(process.env['KCP_AMPLIFIERS_PIECE'] ?? 0)
const memoryMiB = process.env['KCP_AMPLIFIERS_MEMORY']
const minutes = Number(process.env['KCP_AMPLIFIERS_MINUTES'] ?? 40)

describe('every input of a tenant', function () {
  this.timeout((minutes + 10) * 60_000)

  it('costs at most n log n, and lets no neighbour wait 100 ms', async () => {
    const found = await runMatrix({
      timeMs: minutes * 60_000,
      oneOf,
      piece,
      pairs: process.env['KCP_AMPLIFIERS_PAIRS'] === '1',
      ...(memoryMiB === undefined ? {} : { memoryMiB: Number(memoryMiB) }),
      ...(only === undefined ? {} : { only: new RegExp(only) }),
      say: (text) => void process.stderr.write(`${text}\n`),
    })
    process.stderr.write(`${keepResults(found)}: ${found.scenarios} of ${found.planned} scenarios\n`)
    expect(found.doubled.filter(fails).map(failureText)).to.deep.equal([])
  })
})
