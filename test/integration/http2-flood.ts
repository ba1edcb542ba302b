// A program that floods a server over HTTP/2, forked by its test so that it does not slow down the neighbour there. Its
// message tells how many answers came, by status.
import { connect, type ClientHttp2Session } from 'node:http2'
import { argv } from 'node:process'

export interface Flood {
  readonly port: number
  readonly path: string
  /** PEM; absent: without a certificate. */
  readonly cert?: string
  readonly key?: string
  readonly connections: number
  readonly requests: number
  /** Connections are opened again so often. */
  readonly rounds: number
  /** The client takes no byte of a body. */
  readonly zeroWindow?: boolean
  /** Streams are reset as soon as they are open. */
  readonly resets?: boolean
}

const roundMs = 4000
const flood = JSON.parse(argv[2] ?? '{}') as Flood
const statuses: Record<string, number> = {}

for (let round = 0; round < flood.rounds; round++) {
  const sessions = Array.from({ length: flood.connections }, open)
  await Promise.race([Promise.all(sessions.map(ask)), new Promise((resolve) => setTimeout(resolve, roundMs))])
  for (const session of sessions) session.destroy()
}
process.send?.(statuses, () => process.exit())

function open(): ClientHttp2Session {
  const { port, cert, key, zeroWindow = false } = flood
  const tls = { rejectUnauthorized: false, ...(cert !== undefined && key !== undefined && { cert, key }) }
  const settings = zeroWindow ? { settings: { initialWindowSize: 0 } } : {}
  return connect(`https://127.0.0.1:${port}`, { ...tls, ...settings }).on('error', () => undefined)
}

async function ask(session: ClientHttp2Session): Promise<void> {
  await new Promise((resolve) => session.once('remoteSettings', resolve).once('close', resolve))
  await Promise.all(Array.from({ length: flood.requests }, () => askOne(session)))
}

function askOne(session: ClientHttp2Session): Promise<void> {
  const { path, resets = false } = flood
  return new Promise((resolve) => {
    if (session.destroyed || session.closed) {
      resolve()
      return
    }
    const stream = session.request({ ':path': path })
    stream.on('error', () => undefined)
    stream.once('close', resolve)
    stream.once('response', (headers) => {
      const status = String(headers[':status'])
      statuses[status] = (statuses[status] ?? 0) + 1
    })
    if (resets) stream.close(8)
    else stream.resume()
  })
}
