// Which form of the answer the client wants, from its Accept header.
import { notAcceptable } from '../../apimachinery/status/index.ts'

export interface Representation {
  /** The kind as asked: the object, kubectl's Table, or metadata alone. */
  readonly as: 'Object' | 'Table' | 'PartialObjectMetadata'
  readonly format: 'json' | 'yaml'
}

interface Clause {
  type: string
  params: Map<string, string>
}

/** What answers can be written in, for messages. */
export const supportedMediaTypes = 'application/json, application/yaml'

/**
 * The first clause we can serve; clients list them by preference. Protobuf is decoded but not produced, so clients that
 * prefer it get the JSON they name next. Throws 406 where nothing named is served.
 */
export function negotiate(accept: string | undefined): Representation {
  if (accept === undefined || accept.trim() === '') return { as: 'Object', format: 'json' }
  for (const clause of accept.split(',').map(parseClause)) {
    const format = formatOf(clause.type)
    if (format === undefined) continue
    const as = clause.params.get('as')
    if (as === undefined) return { as: 'Object', format }
    const known = transformOf(as, clause.params)
    if (known !== undefined) return { as: known, format }
  }
  throw notAcceptable(`only the following media types are accepted: ${supportedMediaTypes}`)
}

function parseClause(text: string): Clause {
  const [type = '', ...rest] = text.split(';').map((part) => part.trim())
  const params = new Map<string, string>()
  for (const part of rest) {
    const [name = '', value = ''] = part.split('=')
    params.set(name.toLowerCase(), value)
  }
  return { type: type.toLowerCase(), params }
}

function formatOf(type: string): 'json' | 'yaml' | undefined {
  if (type === 'application/json' || type === '*/*' || type === 'application/*') return 'json'
  return type === 'application/yaml' ? 'yaml' : undefined
}

function transformOf(as: string, params: ReadonlyMap<string, string>): Representation['as'] | undefined {
  if (params.get('g') !== 'meta.k8s.io' || params.get('v') !== 'v1') return undefined
  if (as === 'Table') return 'Table'
  return as === 'PartialObjectMetadata' || as === 'PartialObjectMetadataList' ? 'PartialObjectMetadata' : undefined
}
