// The process behind startLoad: sends GETs at a steady rate until SIGTERM, then prints the result as one line of JSON.
//   node test/e2e/load-generator.ts URL PER_SECOND [kept]
// `kept`: over connections that are kept. A request over one that the server has closed is sent again, as Go's client and browsers do, and
// counted in `repeated`.
import { Agent, get, type ClientRequest } from 'node:http'

const [url = '', rate = '50', connections = ''] = process.argv.slice(2)
const agent = connections === 'kept' ? new Agent({ keepAlive: true, maxSockets: 20 }) : false
const timeoutMs = 3000
const maxSeconds = 600
const answers: Record<string, number> = {}
const errors: string[] = []
let sent = 0
let failed = 0
let repeated = 0
let open = 0
let stopping = false

function fail(message: string): void {
  failed++
  if (errors.length < 20) errors.push(`${new Date().toISOString()} ${message}`)
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
    response.on('data', (chunk: Buffer) => (body += chunk.toString()))
    response.on('error', (error) => settle(error.message))
    response.on('end', () => {
      if (response.statusCode !== 200) {
        settle(`status ${String(response.statusCode)}`)
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
