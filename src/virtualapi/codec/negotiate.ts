// Content negotiation: reads the form of the response that the client wants from its Accept header.
import { apiVersionOf } from '#apimachinery/meta/index.ts'
import { goPackage } from './read-object.ts'
import { notAcceptable, statusError } from '#apimachinery/status/index.ts'
import { hasProtobuf } from './protobuf/index.ts'

export interface Representation {
  /** The whole object, kubectl's Table, or metadata only. */
  readonly as: 'Object' | 'Table' | 'PartialObjectMetadata'
  /** The encoding. protobuf exists for whole objects of built-in kinds, and for metadata of all kinds. */
  readonly format: 'json' | 'yaml' | 'protobuf'
  /** Version of meta.k8s.io for Table and PartialObjectMetadata; absent: v1. */
  readonly version?: 'v1beta1'
}

/** The attributes of the resource and of the request that negotiation needs. */
interface Negotiable {
  readonly info: {
    readonly group: string
    readonly version?: string
    readonly kind: string
    readonly builtIn: boolean
  }
  /** The kind of the response; absent: one object. */
  readonly reads?: 'list' | 'watch' | 'deletecollection'
}

interface Clause {
  type: string
  params: Map<string, string>
  quality: number
}

const protobufType = 'application/vnd.kubernetes.protobuf'

/** The media types that we can write, for messages. */
export const supportedMediaTypes = 'application/json, application/yaml'

const whole: Representation = { as: 'Object', format: 'json' }

/**
 * The form of the clause with the highest quality that we can serve. Clients that prefer protobuf for objects without
 * such a form get the JSON that they name next. Throws 406 if no clause can be served, or if the client wants the
 * metadata of a list and the response is one object, or the reverse.
 */
export function negotiate(accept: string | undefined, negotiable: Negotiable): Representation {
  if (accept === undefined || accept === 'application/json' || accept === '*/*' || accept.trim() === '') return whole
  const clauses = accept.split(',').map(parseClause)
  // The sort is stable: of equal qualities the first clause wins.
  if (clauses.some(({ quality }) => quality !== 1)) clauses.sort((a, b) => b.quality - a.quality)
  for (const { type, params } of clauses) {
    const as = params.get('as') ?? ''
    if (type === protobufType && as === '' && inProtobuf(negotiable)) return { as: 'Object', format: 'protobuf' }
    const format = type === protobufType && isMetadata(as) ? 'protobuf' : formatOf(type)
    if (format === undefined) continue
    if (as === '') return format === 'json' ? whole : { as: 'Object', format }
    const form = formOf(as, params, negotiable)
    if (form !== undefined) return { ...form, format }
  }
  throw refused(clauses, negotiable)
}

/**
 * The format that the client prefers for a response of any kind. An error has no other form (`as`), but always has a
 * protobuf form. `hasProtobuf`: true if whole objects of the requested kind have a protobuf form. Never throws.
 */
export function preferredFormat(
  accept: string | undefined,
  { isError, hasProtobuf: inProtobuf }: { readonly isError: boolean; readonly hasProtobuf: boolean },
): Representation['format'] {
  if (accept === undefined || !/yaml|protobuf/.test(accept)) return 'json'
  const isKnown = ({ type, params }: Clause): boolean => {
    const as = params.get('as') ?? ''
    // Clients of discovery ask for forms (`as`) that only discovery documents have.
    if (as !== '' && (isError || (as !== 'Table' && !isMetadata(as)))) return false
    if (type !== protobufType) return formatOf(type) !== undefined
    return as === '' ? isError || inProtobuf : isMetadata(as)
  }
  const known = accept.split(',').map(parseClause).filter(isKnown)
  const [best] = known.sort((a, b) => b.quality - a.quality)
  if (best?.type === protobufType) return 'protobuf'
  return best === undefined ? 'json' : (formatOf(best.type) ?? 'json')
}

function inProtobuf({ info: { group, version = '', kind, builtIn } }: Negotiable): boolean {
  return builtIn && hasProtobuf(apiVersionOf({ group, version }), kind)
}

const isMetadata = (as: string): boolean => as === 'PartialObjectMetadata' || as === 'PartialObjectMetadataList'

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
  { info, reads }: Negotiable,
): Omit<Representation, 'format'> | undefined {
  const version = params.get('v')
  if (params.get('g') !== 'meta.k8s.io' || (version !== 'v1' && version !== 'v1beta1')) return undefined
  const versioned = version === 'v1beta1' ? ({ version } as const) : {}
  if (as === 'Table') return { as, ...versioned }
  if (as !== 'PartialObjectMetadata' && as !== 'PartialObjectMetadataList') return undefined
  if (reads !== 'watch') requireSameCardinality(as, info, reads !== undefined)
  return { as: 'PartialObjectMetadata', ...versioned }
}

/** Throws 406 for PartialObjectMetadata if the response is a list, and for PartialObjectMetadataList if it is not. */
function requireSameCardinality(as: string, { group, kind, builtIn }: Negotiable['info'], isList: boolean): void {
  if ((as === 'PartialObjectMetadataList') === isList) return
  const listSuffix = isList ? 'List' : ''
  const goType = builtIn ? `${goPackage(group)}.${kind}` : 'unstructured.Unstructured'
  throw notAcceptable(
    `you requested ${as}, but the requested object is ${isList ? 'a' : 'not a'} list (*${goType}${listSuffix})`,
  )
}

/** kube-apiserver checks media types first; for built-in kinds that error has a message of its own. */
function refused(clauses: readonly Clause[], { info, reads }: Negotiable): Error {
  if (!info.builtIn || clauses.some(({ type }) => formatOf(type) !== undefined))
    return notAcceptable(`only the following media types are accepted: ${supportedMediaTypes}`)
  const streams = reads === 'list' || reads === 'watch' ? ', application/json;stream=watch' : ''
  const message = `406: Not Acceptable\n\nAvailable representations: ${supportedMediaTypes}${streams}`
  return statusError(406, 'NotAcceptable', message, { details: {} })
}
