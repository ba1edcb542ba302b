// Connections that say nothing of use: opened, held, half closed and reset, before, within and after a TLS handshake,
// in all orders, from ten addresses.
import { connect, type Socket } from 'node:net'
import { connect as connectTls, type TLSSocket } from 'node:tls'

const stages = ['nothing', 'part of a handshake', 'no handshake', 'handshake'] as const
const ends = ['close', 'half close', 'reset', 'hold'] as const

export interface HostileConnections {
  readonly host?: string
  readonly port: number
  readonly count: number
  /** Those that are opened at a time. */
  readonly parallel: number
  /** For the order. */
  readonly seed: number
  /** Asked now and then; true: no more are opened. */
  readonly isOver?: () => boolean
}

export interface Outcome {
  /** Those that the other side has not ended yet. */
  readonly open: Set<Socket>
  /** Those that could not be opened. */
  readonly refused: number
}

const addresses = Array.from({ length: 10 }, (_, i) => `127.0.77.${i + 1}`)
/** The first bytes of a ClientHello. */
const someHandshake = Buffer.from('16030100f8010000f40303', 'hex')
const openMs = 5000

/** Resolves when all were opened, and did what they do. Those that wait for the other side stay open. */
export async function openHostileConnections(options: HostileConnections): Promise<Outcome> {
  const { count, parallel, seed, isOver = () => false } = options
  const random = generator(seed)
  const open = new Set<Socket>()
  let [left, refused] = [count, 0]
  const worker = async (): Promise<void> => {
    while (left-- > 0 && !isOver()) if (!(await openOne(options, random, open))) refused++
  }
  await Promise.all(Array.from({ length: parallel }, worker))
  return { open, refused }
}

async function openOne(
  { host = '127.0.0.1', port }: HostileConnections,
  random: () => number,
  open: Set<Socket>,
): Promise<boolean> {
  const pick = <T>(of: readonly T[]): T => of[Math.floor(random() * of.length)] as T
  const [localAddress, stage, end] = [pick(addresses), pick(stages), pick(ends)]
  const socket = connect({ host, port, localAddress, allowHalfOpen: true })
  const connected = await settled(socket, 'connect')
  if (!connected) return false
  open.add(socket)
  const ended = (): void => {
    open.delete(socket)
    socket.destroy()
  }
  for (const event of ['end', 'close']) socket.once(event, ended)
  // Read, or nothing tells that the other side has closed it.
  if (stage !== 'handshake') socket.resume()
  if (stage === 'part of a handshake') socket.write(someHandshake)
  else if (stage === 'no handshake') socket.write('GET / HTTP/1.1\r\n\r\n')
  else if (stage === 'handshake') await shakeHands(socket, ended)
  if (end === 'close') socket.destroy()
  else if (end === 'half close') socket.end()
  else if (end === 'reset') socket.resetAndDestroy()
  return true
}

async function shakeHands(raw: Socket, ended: () => void): Promise<void> {
  const secure = connectTls({ socket: raw, rejectUnauthorized: false, ALPNProtocols: ['kcp-gateway/1'] })
  secure.once('end', ended)
  await settled(secure, 'secureConnect')
  secure.resume()
}

function settled(socket: Socket | TLSSocket, event: 'connect' | 'secureConnect'): Promise<boolean> {
  return new Promise((resolve) => {
    const settle = (isThere: boolean): void => {
      clearTimeout(timer)
      resolve(isThere)
    }
    const timer = setTimeout(() => settle(false), openMs)
    socket.on('error', () => settle(false))
    socket.once('close', () => settle(false))
    socket.once(event, () => settle(true))
  })
}

/** Mulberry32: the same numbers for the same seed. */
function generator(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let t = Math.imul(state ^ (state >>> 15), 1 | state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32
  }
}
