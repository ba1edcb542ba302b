// What one needs to reach an API server: where it is, whom to believe, what to show.

export interface Endpoint {
  /** `https://host:port`, with a path where the API does not live at the root. */
  readonly server: string
  /** PEM. Absent: the system's authorities. */
  readonly ca?: string | Buffer
  /** PEM, both or none. */
  readonly cert?: string | Buffer
  readonly key?: string | Buffer
  readonly token?: string
  /** Name to expect in the server's certificate instead of the host in `server`. */
  readonly serverName?: string
  /** The server's certificate is not verified. Only ever from a person's own kubeconfig. */
  readonly insecureSkipTlsVerify?: boolean
  /** Sent with every request, such as `authorization: Basic ...`. Lower-case names. */
  readonly headers?: Readonly<Record<string, string>>
}

/** An API server whose credentials may change while we talk to it (exec plugins, projected tokens). */
export interface EndpointSource {
  /**
   * The endpoint with credentials valid now. Asked again at `refreshAfterMs` after an answer, and after a 401: the former ones
   * were `refused` then.
   */
  endpoint(options?: { readonly refused?: boolean }): Promise<Endpoint>
  /** Undefined: the credentials never change. */
  readonly refreshAfterMs?: number
}
