// The self-check of the gateway: from time to time it opens a connection to itself, as its peers do.
import type { Identity } from './identity.ts'
import { dialSecurely } from './peer-dialer.ts'

export interface AcceptCheckOptions {
  /** The gateway's port; undefined before it listens. */
  readonly port: () => number | undefined
  readonly identity: () => Identity | undefined
  /** Milliseconds between two connections. Default 2000. */
  readonly everyMs?: number
  /** Milliseconds without a successful connection after which the gateway counts as taking none. Default 8000. */
  readonly maxAgeMs?: number
}

const connectMs = 3000

export class AcceptCheck implements Disposable {
  readonly #options: AcceptCheckOptions
  readonly #maxAgeMs: number
  readonly #timer: NodeJS.Timeout
  #takenAt = performance.now()
  #isConnecting = false

  constructor(options: AcceptCheckOptions) {
    this.#options = options
    const { everyMs = 2000, maxAgeMs = 8000 } = options
    this.#maxAgeMs = maxAgeMs
    this.#timer = setInterval(() => void this.#check(), everyMs).unref()
  }

  get takesConnections(): boolean {
    return performance.now() - this.#takenAt < this.#maxAgeMs
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer)
  }

  async #check(): Promise<void> {
    const { port, identity } = this.#options
    const [listeningAt, own] = [port(), identity()]
    if (this.#isConnecting || listeningAt === undefined || own === undefined) return
    this.#isConnecting = true
    if (await isTaken(listeningAt, own)) this.#takenAt = performance.now()
    this.#isConnecting = false
  }
}

/**
 * Whether the server at this local port completes a TLS handshake. No request follows, because only peers may send one.
 */
function isTaken(port: number, { context }: Identity): Promise<boolean> {
  return new Promise((resolve) => {
    // Any certificate is accepted: only the handshake matters.
    const { raw, secure, leg } = dialSecurely({ host: '127.0.0.1', port, context })
    const settle = (isOpen: boolean): void => {
      clearTimeout(timer)
      leg.reset()
      resolve(isOpen)
    }
    const timer = setTimeout(() => settle(false), connectMs)
    raw.on('error', () => settle(false))
    secure.on('error', () => settle(false))
    secure.once('close', () => settle(false))
    secure.once('secureConnect', () => settle(true))
  })
}
