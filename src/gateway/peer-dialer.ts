// Opens connections to Services of other members through their gateways.
import { connect as connectTcp, type Socket } from 'node:net'
import { connect as connectTls, type SecureContext, type TLSSocket } from 'node:tls'
import { secureLeg, type Leg } from './leg.ts'
import type { Peer } from './peers.ts'
import { readLine } from './read-line.ts'
import { gatewayProtocol, maxLineBytes, requestLine, tryParseAnswer, type Refusal, type Target } from './wire.ts'

/** The other gateway refused the connection and gave a reason; every other failure is a plain Error. */
export class RefusedByPeer extends Error {
  readonly reason: Refusal
  constructor(reason: Refusal) {
    super(`the other gateway refuses: ${reason}`)
    this.reason = reason
  }
}

const handshakeMs = 10_000
/** Milliseconds to wait for a response: the other gateway tries three endpoints, two seconds each. */
const answerMs = 10_000
export const keepAliveMs = 30_000

export class PeerDialer {
  #context: SecureContext | undefined
  /**
   * The TLS session of the last connection to each address: resuming it saves both sides the signatures of a full
   * handshake.
   */
  readonly #sessions = new Map<string, { readonly ticket: Buffer; readonly fingerprint: string }>()

  /** Makes new connections present this identity. */
  use(context: SecureContext): void {
    this.#context = context
    // A resumed connection would count as a connection with the former certificate.
    this.#sessions.clear()
  }

  /**
   * Resolves with a connection to the target. Rejects if there is none, with RefusedByPeer if the other gateway gives a
   * reason.
   */
  async dial(peer: Peer, target: Target): Promise<Leg> {
    const leg = await this.#handshake(peer)
    try {
      leg.stream.write(requestLine(target))
      const answer = tryParseAnswer(await readLine(leg.stream, { maxBytes: maxLineBytes, timeoutMs: answerMs }))
      if (answer === undefined) throw new Error('the other gateway sent an answer that this one does not understand')
      if (!answer.ok) throw new RefusedByPeer(answer.reason)
      return leg
    } catch (error) {
      leg.reset()
      throw error
    }
  }

  #handshake(peer: Peer): Promise<Leg> {
    const { address, member, fingerprints } = peer
    const context = this.#context
    if (address === undefined) throw new Error(`the gateway of "${member}" has no address yet`)
    if (context === undefined) throw new Error('this gateway has no identity yet')
    const { host, port } = address
    const sessionKey = `${member} ${host} ${port}`
    const known = this.#sessions.get(sessionKey)
    const { raw, secure, leg } = dialSecurely({ host, port, context, ...(known && { session: known.ticket }) })
    return new Promise((resolve, reject) => {
      let isSettled = false
      const fail = (error: Error): void => {
        if (isSettled) return
        isSettled = true
        clearTimeout(timer)
        this.#sessions.delete(sessionKey)
        leg.reset()
        reject(error)
      }
      const timer = setTimeout(() => fail(new Error(`the gateway of "${member}" does not answer`)), handshakeMs)
      raw.on('error', fail)
      // These listeners stay: an error without a listener would end the process.
      secure.on('error', fail)
      secure.once('close', () => fail(new Error(`the gateway of "${member}" ended the connection`)))
      // A resumed connection shows no certificate: its other end has the certificate of the first connection.
      const presented = (): string | undefined =>
        secure.isSessionReused() ? known?.fingerprint : secure.getPeerX509Certificate()?.fingerprint256
      secure.on('session', (ticket) => {
        const fingerprint = presented()
        if (this.#context === context && fingerprint !== undefined)
          this.#sessions.set(sessionKey, { ticket, fingerprint })
      })
      secure.once('secureConnect', () => {
        const fingerprint = presented()
        if (fingerprint === undefined || !fingerprints.has(fingerprint)) {
          fail(new Error(`the server at the address of "${member}" has another certificate`))
          return
        }
        if (secure.alpnProtocol !== gatewayProtocol) {
          fail(new Error(`the gateway of "${member}" speaks another protocol`))
          return
        }
        clearTimeout(timer)
        isSettled = true
        resolve(leg)
      })
    })
  }
}

interface Dialed {
  readonly host: string
  readonly port: number
  readonly context: SecureContext
  /** The session ticket of an earlier connection. */
  readonly session?: Buffer
}

/** Begins a connection to a gateway. The caller compares certificates: no authority is trusted. */
export function dialSecurely({ host, port, context, session }: Dialed): { raw: Socket; secure: TLSSocket; leg: Leg } {
  const raw = connectTcp({
    host,
    port,
    noDelay: true,
    keepAlive: true,
    keepAliveInitialDelay: keepAliveMs,
    allowHalfOpen: true,
  })
  const secure = connectTls({
    socket: raw,
    secureContext: context,
    ALPNProtocols: [gatewayProtocol],
    rejectUnauthorized: false,
    checkServerIdentity: () => undefined,
    ...(session && { session }),
  })
  return { raw, secure, leg: secureLeg(secure, raw) }
}
