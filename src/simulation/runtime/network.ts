// The simulated network: HTTP requests between simulated pods, by address. One for all members of a process.

export interface HttpRequest {
  readonly method: string
  readonly path: string
  /** Who asks, for the log of the pod. */
  readonly from: string
  /** How many Services the request came through already. */
  readonly depth: number
}

export interface HttpAnswer {
  readonly status: number
  readonly body: string
}

/** A running pod. */
export interface Host {
  /** Rejects if nothing listens on the port. */
  request(port: number, request: HttpRequest): Promise<HttpAnswer>
}

export class Network {
  readonly #hosts = new Map<string, Host>()

  add(address: string, host: Host): void {
    this.#hosts.set(address, host)
  }

  remove(address: string, host: Host): void {
    if (this.#hosts.get(address) === host) this.#hosts.delete(address)
  }

  /** Rejects if no pod runs at the address. */
  async request(address: string, port: number, request: HttpRequest): Promise<HttpAnswer> {
    const host = this.#hosts.get(address)
    if (host === undefined) throw new Error(`connect ECONNREFUSED ${address}:${port}`)
    return await host.request(port, request)
  }
}
