// The quiet tenant, in a process of its own: three small GETs and a create, 30 requests a second, whatever becomes of the
// others. Started with the path of its kubeconfig; sends `{ at, ms }` for each request.
import { openRawClient } from '../../integration/raw-client.ts'

/** One request: when it was sent, by the clock of all processes, and how long it took, milliseconds. */
export interface Waited {
  readonly at: number
  readonly ms: number
}

const periodMs = 1000 / 30
const kept = 200

const kubeconfig = process.argv[2] ?? ''
const base = `/clusters/${process.argv[3] ?? ''}/api/v1/namespaces/default/configmaps`
const client = openRawClient({ kubeconfig })
let number = 0

async function ask(): Promise<void> {
  const name = `quiet-${Math.floor(number / 4) % kept}`
  const began = performance.now()
  if (number++ % 4 !== 0) await client.request('GET', `${base}/${name}`)
  // What is there is refused (409), at about the cost of a create.
  else await client.request('POST', base, { body: { metadata: { name }, data: { a: 'b' } } })
  process.send?.({ at: performance.timeOrigin + began, ms: performance.now() - began } satisfies Waited)
}

setInterval(() => void ask().catch(() => undefined), periodMs)
process.once('disconnect', () => process.exit())
