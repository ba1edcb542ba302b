// Measures the start, and the memory of an idle process.
import { median, rounded } from './statistics.ts'
import { startKcpUnderTest } from './kcp-under-test.ts'
import { residentMiB, withChildren } from './process-usage.ts'
import { sleep } from '#async/index.ts'
import type { Measurement } from './measurement.ts'

const rounds = 3

/** Time from the command to the first answer to kubectl, and resident memory five seconds later. */
export const start: Measurement = {
  name: 'start',
  describes: 'kcp start: command to first kubectl answer, and idle memory',
  async run({ signal }) {
    const seconds: number[] = []
    const memory: number[] = []
    for (let round = 0; round < rounds; round++) {
      await using kcp = await startKcpUnderTest()
      seconds.push(kcp.startSeconds)
      await sleep(5000, signal)
      memory.push(residentMiB(withChildren(kcp.pid)))
    }
    return { 'start seconds': rounded(median(seconds)), 'idle MiB': rounded(median(memory)) }
  },
}
