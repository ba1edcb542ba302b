// Where pods in the member reach their logical clusters: the bytes of their connections, which are TLS from end to end,
// are passed on to the installation.
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net'
import { pipeSockets } from '#network/sockets/index.ts'
import type { Logger } from '#telemetry/index.ts'
import { dialInstallation, type InstallationAddress } from './dial.ts'

export interface ApiEntranceOptions {
  readonly installation: Pick<InstallationAddress, 'url'>
  /** Port 0: any free port. */
  readonly port: number
  /** Connections at a time. Default 2000. */
  readonly maxConnections?: number
  /** Connections of one pod at a time. Default 200. */
  readonly maxPerPod?: number
  readonly log: Logger
}

/** Milliseconds between two warnings. */
const warnAgainMs = 30_000

export class ApiEntrance implements AsyncDisposable {
  readonly #options: Required<ApiEntranceOptions>
  readonly #server: Server
  /** Open connections by the address of the pod. */
  readonly #open = new Map<string, number>()
  readonly #life = new AbortController()
  #warnedAt = -Infinity

  private constructor(options: ApiEntranceOptions) {
    this.#options = { maxConnections: 2000, maxPerPod: 200, ...options }
    this.#server = createServer({ noDelay: true }, (socket) => void this.#pass(socket))
    this.#server.maxConnections = this.#options.maxConnections
  }

  static async open(options: ApiEntranceOptions): Promise<ApiEntrance> {
    const entrance = new ApiEntrance(options)
    const { promise, resolve, reject } = Promise.withResolvers<undefined>()
    entrance.#server.once('error', reject)
    entrance.#server.listen(options.port, () => resolve(undefined))
    await promise
    return entrance
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#life.abort()
    const { promise, resolve } = Promise.withResolvers<undefined>()
    this.#server.close(() => resolve(undefined))
    await promise
  }

  async #pass(socket: Socket): Promise<void> {
    socket.on('error', () => undefined)
    const pod = socket.remoteAddress ?? ''
    const open = this.#open.get(pod) ?? 0
    if (open >= this.#options.maxPerPod) {
      this.#warn('a pod has too many connections to its API', { pod, open })
      socket.destroy()
      return
    }
    this.#open.set(pod, open + 1)
    try {
      const remote = await dialInstallation(this.#options.installation)
      await pipeSockets(socket, remote, { signal: this.#life.signal })
    } catch (error) {
      this.#warn('a connection of a pod did not reach the installation', { pod, error })
      socket.destroy()
    } finally {
      const left = (this.#open.get(pod) ?? 1) - 1
      if (left > 0) this.#open.set(pod, left)
      else this.#open.delete(pod)
    }
  }

  /** Warns once for all connections of a while. */
  #warn(message: string, fields: Record<string, unknown>): void {
    if (performance.now() - this.#warnedAt < warnAgainMs) return
    this.#warnedAt = performance.now()
    this.#options.log.warn(message, fields)
  }
}
