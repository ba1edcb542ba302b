// The answer of the tests' webhook server to a ConversionReview. Version v1 of its kind has `spec.hostPort`, later ones
// have `spec.host` and `spec.port`.

type Json = Record<string, unknown>

interface Review {
  readonly apiVersion: string
  readonly kind: string
  readonly request: { readonly uid: string; readonly desiredAPIVersion: string; readonly objects: readonly Json[] }
}

/** The answer to a review at this path: what its objects become, and how the response differs from a correct one. */
export function conversionResponse(review: Review, [behaviour = '', argument = '']: readonly string[]): Json {
  const { uid, desiredAPIVersion, objects } = review.request
  const convertedObjects = objects.map((object) => changed(behaviour, converted(object, desiredAPIVersion)))
  const response = { uid, convertedObjects, result: { status: 'Success' } }
  const { apiVersion, kind } = review
  return { apiVersion, kind, response, ...oddResponse(behaviour, argument, review, response) }
}

function oddResponse(behaviour: string, argument: string, review: Review, response: Json): Json {
  switch (behaviour) {
    case 'refuse':
      return { response: { ...response, result: { status: 'Failure', message: argument } } }
    case 'unfinished':
      return { response: { ...response, result: {} } }
    case 'fewer':
      return { response: { ...response, convertedObjects: [] } }
    case 'other-uid':
      return { response: { ...response, uid: 'another' } }
    case 'no-response':
      return { response: null }
    case 'other-kind':
      return { kind: 'Nonsense' }
    case 'other-review':
      return { apiVersion: 'apiextensions.k8s.io/v2' }
    case 'tell':
      return { response: { ...response, result: { status: 'Failure', message: JSON.stringify(comparable(review)) } } }
    default:
      return {}
  }
}

function converted(object: Json, apiVersion: string): Json {
  const { spec = {} } = object as { spec?: Json }
  const { hostPort, host, port, ...rest } = spec
  if (apiVersion.endsWith('/v1')) {
    const joined = host === undefined && port === undefined ? {} : { hostPort: `${String(host)}:${String(port)}` }
    return { ...object, apiVersion, spec: { ...rest, ...joined } }
  }
  const [name, number] = typeof hostPort === 'string' ? hostPort.split(':') : []
  const split = hostPort === undefined ? { host, port } : { host: name, port: number }
  return { ...object, apiVersion, spec: { ...rest, ...split } }
}

function changed(behaviour: string, object: Json): Json {
  const { metadata = {} } = object as { metadata?: Json }
  const withMeta = (more: Json): Json => ({ ...object, metadata: { ...metadata, ...more } })
  switch (behaviour) {
    case 'mark':
      return withMeta({
        labels: { version: String(object['apiVersion']).replace(/^.*\//, '') },
        annotations: { 'example.com/converted': 'yes' },
        finalizers: ['example.com/not-taken'],
        generation: 77,
      })
    case 'rename':
      return withMeta({ name: 'another' })
    case 'move':
      return withMeta({ namespace: 'another' })
    case 'new-uid':
      return withMeta({ uid: 'another' })
    case 'no-labels':
      return withMeta({ labels: undefined, annotations: null })
    case 'odd-label':
      return withMeta({ labels: { '-a-': '-b-' } })
    case 'odd-annotation':
      return withMeta({ annotations: { '-a-': 'b' } })
    case 'number-label':
      return withMeta({ labels: { a: 1 } })
    case 'list-labels':
      return withMeta({ labels: [] })
    case 'no-meta': {
      const { metadata: _dropped, ...rest } = object
      return rest
    }
    case 'text-meta':
      return { ...object, metadata: 'text' }
    case 'other-version':
      return { ...object, apiVersion: 'example.com/v9' }
    case 'other-object-kind':
      return { ...object, kind: 'Another' }
    case 'no-kind': {
      const { kind: _dropped, ...rest } = object
      return rest
    }
    case 'inflate':
      return { ...object, spec: { large: 'x'.repeat(1_000_000) } }
    case 'unknown-field':
      return { ...object, unknown: 1, spec: { ...(object['spec'] as Json), unknown: { a: 1 } } }
    default:
      return object
  }
}

/** The review without what differs between two servers. */
function comparable({ apiVersion, kind, request: { uid, ...request }, ...rest }: Review): unknown {
  const objects = request.objects.map(({ metadata, ...object }) => {
    const { uid: own, creationTimestamp, managedFields, ...others } = (metadata ?? {}) as Json
    const has = { uid: !!own, created: creationTimestamp != null, managed: managedFields !== undefined }
    return sorted({ ...object, metadata: others, has })
  })
  return { apiVersion, kind, hasUid: uid !== '', request: sorted({ ...request, objects }), rest: sorted(rest) }
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted)
  if (typeof value !== 'object' || value === null) return value
  const members = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))
  return Object.fromEntries(members.map(([name, one]) => [name, sorted(one)]))
}
