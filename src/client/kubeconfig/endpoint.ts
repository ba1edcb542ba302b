// The address, the CA and our credentials for an API server.
import type { Duplex } from 'node:stream'

export interface Endpoint {
  /** `https://host:port`, with a path if the API is not at the root. */
  readonly server: string
  /** PEM. Absent: the CAs of the system. */
  readonly ca?: string | Buffer
  /** PEM. `cert` and `key` are both present or both absent. */
  readonly cert?: string | Buffer
  readonly key?: string | Buffer
  readonly token?: string
  /** Name to expect in the server's certificate instead of the host in `server`. */
  readonly serverName?: string
  /** Do not verify the server's certificate. Only from the kubeconfig of the person who runs the program. */
  readonly insecureSkipTlsVerify?: boolean
  /** An HTTP proxy through which the server is reached. Only from the kubeconfig of the person who runs the program. */
  readonly proxyUrl?: string
  /**
   * Opens a connection to the server, in which plain HTTP is spoken: `server` begins with `http:` then. Absent: the
   * address in `server` is connected to.
   */
  readonly dial?: () => Promise<Duplex>
  /** Sent with every request, such as `authorization: Basic ...`. Lower-case names. */
  readonly headers?: Readonly<Record<string, string>>
}

/** An API server whose credentials may change during the connection (exec plugins, projected tokens). */
export interface EndpointSource {
  /**
   * The endpoint with credentials that are valid now. Called again `refreshAfterMs` after the last call, and after a
   * 401 with `refused: true`.
   */
  endpoint(options?: { readonly refused?: boolean }): Promise<Endpoint>
  /** Milliseconds until the credentials must be read again; undefined if they never change. */
  readonly refreshAfterMs?: number
}
