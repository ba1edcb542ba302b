// Loaded into the measured server with `node --import`: writes how much processor time the main thread used between two
// ticks of a timer. That is the length of the longest pass of its event loop, whatever else the machine does meanwhile.
import { writeSync, openSync } from 'node:fs'
import process from 'node:process'
import { isMainThread } from 'node:worker_threads'

const tickMs = 5
/** Shorter passes are of no interest, milliseconds. */
const reportedMs = 10
const path = process.env['KCP_PASS_PROBE']

if (isMainThread && path !== undefined) {
  const file = openSync(path, 'a')
  let last = process.threadCpuUsage()
  setInterval(() => {
    const used = process.threadCpuUsage(last)
    last = process.threadCpuUsage()
    const ms = (used.user + used.system) / 1000
    const at = performance.timeOrigin + performance.now()
    if (ms >= reportedMs) writeSync(file, `${JSON.stringify({ at, ms })}\n`)
  }, tickMs).unref()
}
