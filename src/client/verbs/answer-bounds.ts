// Bounds on the size and the duration of an answer, by the kind of its request. Servers such as members are not
// trusted: their answers cost the process that asks, and so all its users.

export interface AnswerBound {
  readonly kind: 'small' | 'discovery' | 'object' | 'list' | 'schema' | 'watch' | 'stream'
  /** Bytes of a successful answer. */
  readonly maxBytes: number
  /** Time for the whole answer, milliseconds. */
  readonly withinMs: number
  /** False: any content type. */
  readonly isJson: boolean
}

const [kib, mib, second] = [1024, 1024 * 1024, 1000]

const bounds = {
  /** Versions, keys, reviews, tokens. */
  small: { kind: 'small', maxBytes: 256 * kib, withinMs: 15 * second, isJson: true },
  discovery: { kind: 'discovery', maxBytes: mib, withinMs: 15 * second, isJson: true },
  /** An object of etcd has 1.5 MiB at most, most often as protobuf, which is shorter than JSON. */
  object: { kind: 'object', maxBytes: 8 * mib, withinMs: 60 * second, isJson: true },
  /** A page of a list: a client asks for smaller ones where one is too large. Metrics have no pages. */
  list: { kind: 'list', maxBytes: 16 * mib, withinMs: 120 * second, isJson: true },
  /** One OpenAPI document. */
  schema: { kind: 'schema', maxBytes: 16 * mib, withinMs: 60 * second, isJson: true },
  /** Each event is bounded by who reads it. */
  watch: { kind: 'watch', maxBytes: Infinity, withinMs: Infinity, isJson: true },
  /** Logs and what pods say: passed on as they are read. */
  stream: { kind: 'stream', maxBytes: Infinity, withinMs: Infinity, isJson: false },
} as const satisfies Record<AnswerBound['kind'], AnswerBound>

/** Bytes of an answer that is no success: a Status. */
export const maxErrorBytes = 256 * kib

const streamed: ReadonlySet<string> = new Set(['log', 'exec', 'attach', 'portforward', 'proxy'])
const reviews: ReadonlySet<string> = new Set(['authentication.k8s.io', 'authorization.k8s.io'])

/** The bound of the answer to a request. `path`: with its query. */
export function answerBoundOf({ method, path }: { readonly method: string; readonly path: string }): AnswerBound {
  const [bare = '', query = ''] = path.split('?')
  const [root, ...rest] = bare.split('/').filter((part) => part !== '')
  if (root === 'openapi') return bounds.schema
  if (root !== 'api' && root !== 'apis') return bounds.small
  const [group, steps] = root === 'api' ? ['', rest.slice(1)] : [rest[0] ?? '', rest.slice(2)]
  if (steps.length === 0) return bounds.discovery
  const [resource = '', name, subresource] =
    steps[0] === 'namespaces' && steps.length > 2 && !isOfNamespace(steps[2]) ? steps.slice(2) : steps
  const isOne = resource !== '' && name !== undefined
  if (isOne && streamed.has(subresource ?? '')) return bounds.stream
  if (reviews.has(group) || subresource === 'token') return bounds.small
  if (isOne) return bounds.object
  if (method === 'GET' && isWatch(query)) return bounds.watch
  return method === 'GET' || method === 'DELETE' ? bounds.list : bounds.object
}

/** `namespaces/NAME/status` is a part of the namespace, and no collection in it. */
function isOfNamespace(step: string | undefined): boolean {
  return step === 'status' || step === 'finalize'
}

function isWatch(query: string): boolean {
  const value = new URLSearchParams(query).get('watch')
  return value !== null && value !== 'false' && value !== '0'
}
