// The quiet tenant, in a process of its own: three small GETs and a create, 30 requests a second, whatever becomes of
// the others. Started with the path of its kubeconfig, the name of its logical cluster and the pid of the server, of
// which it is sent another when the server was started again; sends `Waited` for each request.
import { openRawClient } from '#test/integration/raw-client.ts'
import { delayedMs } from './server-usage.ts'

/** One request: when it was sent, by the clock of all processes, and how long it took, milliseconds. */
export interface Waited {
  readonly at: number
  readonly tookMs: number
  /** Without the time in which the server or this process had no processor, because other programs had it. */
  readonly ms: number
}

const periodMs = 1000 / 30
const kept = 200

const kubeconfig = process.argv[2] ?? ''
const base = `/clusters/${process.argv[3] ?? ''}/api/v1/namespaces/default/configmaps`
let server = Number(process.argv[4])
const client = openRawClient({ kubeconfig })
let number = 0

const othersMs = (): number => delayedMs(server) + delayedMs(process.pid)

async function ask(): Promise<void> {
  const name = `quiet-${Math.floor(number / 4) % kept}`
  const began = performance.now()
  const othersBefore = othersMs()
  if (number++ % 4 !== 0) await client.request('GET', `${base}/${name}`)
  // What is there is refused (409), at about the cost of a create.
  else await client.request('POST', base, { body: { metadata: { name }, data: { a: 'b' } } })
  const tookMs = performance.now() - began
  const ms = Math.max(0, tookMs - Math.max(0, othersMs() - othersBefore))
  process.send?.({ at: performance.timeOrigin + began, tookMs, ms } satisfies Waited)
}

setInterval(() => void ask().catch(() => undefined), periodMs)
process.on('message', (pid: number) => (server = pid))
process.once('disconnect', () => process.exit())
