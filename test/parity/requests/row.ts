// One request to both servers. `<<name.path>>` in paths, headers and bodies is replaced by the value at that path in an
// earlier answer of the same server; `{ns}` by the topic's own namespace.

export interface Row {
  /** The key of known differences; repeated titles get a number. */
  readonly title: string
  readonly method: string
  readonly path: string
  /** An array is sent as several headers. */
  readonly headers?: Readonly<Record<string, string | readonly string[]>>
  /** An object is sent as JSON. */
  readonly body?: string | Uint8Array | object
  /** Saves the answer under this name. */
  readonly save?: string
  /** Saves the answer's headers under this name, in lower case. */
  readonly saveHeaders?: string
  /** Repeats the request until the answer has this status, for up to 30 s: for the work of controllers. */
  readonly until?: number
  /** The next rows do not wait for this answer: for slow reads. */
  readonly background?: boolean
  /** A watch: reads this many events (the end of the stream counts as one) while the next rows go on. */
  readonly events?: number
  /** Compares only the status. */
  readonly statusOnly?: boolean
  /** Compares only the status and the headers. */
  readonly headersOnly?: boolean
}

/** Requests in the order in which they are sent, in a namespace of their own. */
export interface Topic {
  readonly name: string
  readonly rows: readonly Row[]
}

export interface RowOptions extends Partial<Omit<Row, 'method' | 'path' | 'title'>> {
  /** Precedes the request line in the title. */
  readonly what?: string
  /** Content-Type of the body. */
  readonly type?: string
  readonly accept?: string
}

function row(method: string, path: string, { what, type, accept, headers = {}, ...rest }: RowOptions = {}): Row {
  const all = {
    ...(type === undefined ? {} : { 'Content-Type': type }),
    ...(accept === undefined ? {} : { Accept: accept }),
  }
  const shown = accept === undefined ? '' : ` as ${accept}`
  const line = `${method} ${path}${shown}`
  return {
    title: what === undefined ? line : `${what}: ${line}`,
    method,
    path,
    headers: { ...all, ...headers },
    ...rest,
  }
}

export const get = (path: string, options?: RowOptions): Row => row('GET', path, options)
export const send = (method: string, path: string, options?: RowOptions): Row => row(method, path, options)
export const post = (path: string, body: Row['body'], options?: RowOptions): Row =>
  row('POST', path, { ...(body === undefined ? {} : { body }), type: 'application/json', ...options })
export const put = (path: string, body: Row['body'], options?: RowOptions): Row =>
  row('PUT', path, { ...(body === undefined ? {} : { body }), type: 'application/json', ...options })
export const del = (path: string, body?: Row['body'], options?: RowOptions): Row =>
  row('DELETE', path, { ...(body === undefined ? {} : { body, type: 'application/json' }), ...options })
export const watch = (path: string, events: number, options?: RowOptions): Row =>
  row('GET', path, { events, ...options })

export const patchTypes = {
  json: 'application/json-patch+json',
  merge: 'application/merge-patch+json',
  strategic: 'application/strategic-merge-patch+json',
  apply: 'application/apply-patch+yaml',
} as const

export const patch = (type: keyof typeof patchTypes, path: string, body: Row['body'], options: RowOptions = {}): Row =>
  row('PATCH', path, {
    ...(body === undefined ? {} : { body }),
    type: patchTypes[type],
    ...options,
    what: `${options.what === undefined ? '' : `${options.what}, `}${type}`,
  })
