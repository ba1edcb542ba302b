// The process behind startLoad: sends GETs at a steady rate until SIGTERM, then prints the result as one line of JSON.
// node test/e2e/load-generator.ts URL PER_SECOND [fresh|kept] [ZONE] `kept`: over connections that are kept. A request
// over one that the server has closed is sent again, as Go's client and browsers do, and counted in `repeated`. ZONE: a
// file with the addresses of the host in the URL, as a JSON list; each new connection takes the next one. What was read
// is used for as long as a DNS record with a short life; connections that are kept stay where they are.
import { readFileSync } from 'node:fs'
import { Agent, get, type ClientRequest } from 'node:http'
import type { Duplex } from 'node:stream'

const [url = '', rate = '50', connections = '', zone] = process.argv.slice(2)
/** Outside of the ports that the system gives to others. */
const ports = connections === 'kept' ? { first: 26_000, count: 6000 } : { first: 12_000, count: 14_000 }
let opened = 0
/** How long the addresses of the host are used: the TTL of its DNS record. */
const cachedMs = 5000
let resolved: { readonly addresses: readonly string[]; readonly atMs: number } = { addresses: [], atMs: -Infinity }
let taken = 0

/** The next address of the host in the URL; undefined: the system looks it up. */
function nextAddress(): string | undefined {
  if (zone === undefined) return undefined
  const atMs = performance.now()
  if (atMs - resolved.atMs > cachedMs)
    resolved = { addresses: JSON.parse(readFileSync(zone, 'utf8')) as string[], atMs }
  return resolved.addresses[taken++ % resolved.addresses.length]
}

/**
 * Each connection has a source port that none had for two minutes. Connection tracking in the node sends a new
 * connection from a port of which it remembers another one to the pod of that one, also when this pod has ended since.
 */
class FreshPorts extends Agent {
  override createConnection(...[options, callback]: Parameters<Agent['createConnection']>): Duplex | null | undefined {
    const localPort = ports.first + (opened++ % ports.count)
    const address = nextAddress()
    return super.createConnection({ ...options, localPort, ...(address !== undefined && { host: address }) }, callback)
  }
}

const agent = new FreshPorts(connections === 'kept' ? { keepAlive: true, maxSockets: 20 } : {})
const timeoutMs = 10_000
const maxSeconds = 3600
const answers: Record<string, number> = {}
const errors: string[] = []
let sent = 0
let failed = 0
let repeated = 0
let open = 0
let stopping = false

function fail(message: string): void {
  failed++
  // One of each kind, however many of another kind came before.
  const isNew = !errors.some((one) => one.endsWith(message))
  if (errors.length < (isNew ? 40 : 20)) errors.push(`${new Date().toISOString()} ${message}`)
}

function request(isAgain = false): void {
  if (!isAgain) sent++
  open++
  let settled = false
  const settle = (error?: string): void => {
    if (settled) return
    settled = true
    open--
    if (error !== undefined) fail(error)
    if (stopping && open === 0) finish()
  }
  const call: ClientRequest = get(url, { agent, timeout: timeoutMs }, (response) => {
    let body = ''
    const address = response.socket.remoteAddress
    response.on('data', (chunk: Buffer) => (body += chunk.toString()))
    response.on('error', (error) => settle(error.message))
    response.on('end', () => {
      if (response.statusCode !== 200) {
        settle(`status ${String(response.statusCode)} from ${address}`)
        return
      }
      answers[body] = (answers[body] ?? 0) + 1
      settle()
    })
  })
  call.on('timeout', () => call.destroy(new Error(`no answer within ${timeoutMs} ms`)))
  call.on('error', (error) => {
    const isClosedByServer = call.reusedSocket && (error as NodeJS.ErrnoException).code === 'ECONNRESET'
    if (!isClosedByServer || settled) {
      settle(error.message)
      return
    }
    repeated++
    request(true)
    settle()
  })
}

function finish(): void {
  console.log(JSON.stringify({ sent, failed, repeated, answers, errors }))
  process.exit(0)
}

const timer = setInterval(() => request(), 1000 / Number(rate))
function stop(): void {
  clearInterval(timer)
  stopping = true
  if (open === 0) finish()
}
process.on('SIGTERM', stop)
setTimeout(stop, maxSeconds * 1000)
