// Which form of the answer the client wants, from its Accept header.
import { goPackage } from './read-object.ts'
import { notAcceptable, statusError } from '../../apimachinery/status/index.ts'

export interface Representation {
  /** The kind as asked: the object, kubectl's Table, or metadata alone. */
  readonly as: 'Object' | 'Table' | 'PartialObjectMetadata'
  readonly format: 'json' | 'yaml'
  /** Of meta.k8s.io, for tables and metadata; v1 where absent. */
  readonly version?: 'v1beta1'
}

/** Of the resource and the request, what decides over forms. */
interface Asked {
  readonly info: { readonly group: string; readonly kind: string; readonly builtIn: boolean }
  /** What is answered: one object where absent. */
  readonly reads?: 'list' | 'watch' | 'deletecollection'
}

interface Clause {
  type: string
  params: Map<string, string>
  quality: number
}

/** What answers can be written in, for messages. */
export const supportedMediaTypes = 'application/json, application/yaml'

const whole: Representation = { as: 'Object', format: 'json' }

/**
 * The clause we can serve that the client likes best. Protobuf is decoded but not produced, so clients that prefer it
 * get the JSON they name next. Throws 406 where nothing named is served, or metadata of a list for that of an object.
 */
export function negotiate(accept: string | undefined, asked: Asked): Representation {
  if (accept === undefined || accept === 'application/json' || accept === '*/*' || accept.trim() === '') return whole
  const clauses = accept.split(',').map(parseClause)
  // Sorting is stable: of equals the first counts.
  if (clauses.some(({ quality }) => quality !== 1)) clauses.sort((a, b) => b.quality - a.quality)
  for (const { type, params } of clauses) {
    const format = formatOf(type)
    if (format === undefined) continue
    const as = params.get('as') ?? ''
    if (as === '') return format === 'json' ? whole : { as: 'Object', format }
    const form = formOf(as, params, asked)
    if (form !== undefined) return { ...form, format }
  }
  throw refused(clauses, asked)
}

/** Whether an answer, of what kind ever, is to be YAML. Never throws. */
export function prefersYaml(accept: string | undefined): boolean {
  if (accept?.includes('yaml') !== true) return false
  const clauses = accept.split(',').map(parseClause)
  const [best] = clauses.filter(({ type }) => formatOf(type) !== undefined).sort((a, b) => b.quality - a.quality)
  return best !== undefined && formatOf(best.type) === 'yaml'
}

function parseClause(text: string): Clause {
  const [type = '', ...rest] = text.split(';').map((part) => part.trim())
  const params = new Map<string, string>()
  for (const part of rest) {
    const [name = '', value = ''] = part.split('=')
    params.set(name.toLowerCase(), value)
  }
  const quality = Number(params.get('q') ?? 1)
  return { type: type.toLowerCase(), params, quality: Number.isFinite(quality) ? quality : 1 }
}

function formatOf(type: string): 'json' | 'yaml' | undefined {
  if (type === 'application/json' || type === '*/*' || type === 'application/*') return 'json'
  return type === 'application/yaml' ? 'yaml' : undefined
}

function formOf(
  as: string,
  params: ReadonlyMap<string, string>,
  { info, reads }: Asked,
): Omit<Representation, 'format'> | undefined {
  const version = params.get('v')
  if (params.get('g') !== 'meta.k8s.io' || (version !== 'v1' && version !== 'v1beta1')) return undefined
  const old = version === 'v1beta1' ? ({ version } as const) : {}
  if (as === 'Table') return { as, ...old }
  if (as !== 'PartialObjectMetadata' && as !== 'PartialObjectMetadataList') return undefined
  if (reads !== 'watch') requireSameNumber(as, info, reads !== undefined)
  return { as: 'PartialObjectMetadata', ...old }
}

/** Throws 406 for metadata of one object where there is a list, and the other way round. */
function requireSameNumber(as: string, { group, kind, builtIn }: Asked['info'], isList: boolean): void {
  if ((as === 'PartialObjectMetadataList') === isList) return
  const listSuffix = isList ? 'List' : ''
  const goType = builtIn ? `${goPackage(group)}.${kind}` : 'unstructured.Unstructured'
  throw notAcceptable(
    `you requested ${as}, but the requested object is ${isList ? 'a' : 'not a'} list (*${goType}${listSuffix})`,
  )
}

/** A real server refuses media types it does not know before it looks at forms, in other words, for built-in kinds. */
function refused(clauses: readonly Clause[], { info, reads }: Asked): Error {
  if (!info.builtIn || clauses.some(({ type }) => formatOf(type) !== undefined))
    return notAcceptable(`only the following media types are accepted: ${supportedMediaTypes}`)
  const streams = reads === 'list' || reads === 'watch' ? ', application/json;stream=watch' : ''
  const message = `406: Not Acceptable\n\nAvailable representations: ${supportedMediaTypes}${streams}`
  return statusError(406, 'NotAcceptable', message, { details: {} })
}
