// ListOptions of a query, decoded and validated as kube-apiserver does, before anything is read.
import { integerOfText, type Int64 } from '#apimachinery/meta/index.ts'
import { fieldForbidden, fieldNotSupported } from '#apimachinery/field/index.ts'
import { badRequest, invalid, type StatusCause } from '#apimachinery/status/index.ts'
import { isTrue } from '#virtualapi/request/parse-request.ts'

export interface ListOptions {
  /** The requested resourceVersion; empty if it is not given. */
  readonly resourceVersion: string
  readonly match: '' | 'Exact' | 'NotOlderThan'
  /** Maximum of objects; zero or less: no limit. */
  readonly limit: number
  /** The timeout of a watch, seconds; zero or less: the server chooses. */
  readonly timeoutSeconds: number
  /** The continue token; empty: from the beginning. */
  readonly token: string
  /** undefined: not given. */
  readonly sendInitialEvents: boolean | undefined
  readonly bookmarks: boolean
}

/** The options of a list or of a watch. Throws 400 for an invalid integer, 422 for options that exclude each other. */
export function listOptionsOf(query: URLSearchParams, kind: 'list' | 'watch'): ListOptions {
  const initial = query.get('sendInitialEvents')
  const given = {
    resourceVersion: query.get('resourceVersion') ?? '',
    match: query.get('resourceVersionMatch') ?? '',
    limit: integerOf(query, 'limit'),
    timeoutSeconds: integerOf(query, 'timeoutSeconds'),
    token: query.get('continue') ?? '',
    sendInitialEvents: initial === null ? undefined : isTrue(initial),
    bookmarks: isTrue(query.get('allowWatchBookmarks')),
  }
  const options = kind === 'watch' ? withWatchDefaults(given) : given
  const causes = kind === 'watch' ? watchCauses(options) : listCauses(options)
  if (causes.length > 0) throw invalid({ group: 'meta.k8s.io', kind: 'ListOptions' }, '', causes)
  return options as ListOptions
}

type Given = Omit<ListOptions, 'match'> & { readonly match: string }

/** A watch without a resourceVersion sends the initial state first, and then its bookmark (KEP-3157). */
function withWatchDefaults(given: Given): Given {
  const { resourceVersion, match, sendInitialEvents } = given
  const hasPosition = resourceVersion !== '' && resourceVersion !== '0'
  if (hasPosition || match !== '' || sendInitialEvents !== undefined) return given
  return { ...given, sendInitialEvents: true, match: 'NotOlderThan' }
}

const field = 'resourceVersionMatch'

function listCauses({ match, resourceVersion, token, sendInitialEvents }: Given): StatusCause[] {
  const causes: StatusCause[] = []
  if (match !== '') {
    if (resourceVersion === '')
      causes.push(fieldForbidden(field, `${field} is forbidden unless resourceVersion is provided`))
    if (token !== '') causes.push(fieldForbidden(field, `${field} is forbidden when continue is provided`))
    if (match !== 'Exact' && match !== 'NotOlderThan')
      causes.push(fieldNotSupported(field, match, ['Exact', 'NotOlderThan', '']))
    if (match === 'Exact' && resourceVersion === '0')
      causes.push(fieldForbidden(field, `${field} "exact" is forbidden for resourceVersion "0"`))
  }
  if (sendInitialEvents !== undefined)
    causes.push(fieldForbidden('sendInitialEvents', 'sendInitialEvents is forbidden for list'))
  return causes
}

function watchCauses({ match, token, sendInitialEvents }: Given): StatusCause[] {
  const causes: StatusCause[] = []
  if (sendInitialEvents !== undefined && match !== 'NotOlderThan')
    causes.push(fieldForbidden(field, `sendInitialEvents requires setting ${field} to NotOlderThan`))
  if (match === '') return causes
  if (sendInitialEvents === undefined)
    causes.push(fieldForbidden(field, `${field} is forbidden for watch unless sendInitialEvents is provided`))
  if (match !== 'NotOlderThan') causes.push(fieldNotSupported(field, match, ['NotOlderThan']))
  if (token !== '') causes.push(fieldForbidden(field, `${field} is forbidden when continue is provided`))
  return causes
}

const maxInt64 = 2n ** 63n - 1n

/** The integer in the query, rounded beyond 2^53; 0 if absent. Throws 400 with Go's message if it is no int64. */
export function integerOf(query: URLSearchParams, name: string): number {
  return Number(int64Of(query, name))
}

/** The integer in the query; 0 if absent. Throws 400 with Go's message if it is no int64. */
export function int64Of(query: URLSearchParams, name: string): Int64 {
  const text = query.get(name)
  if (text === null) return 0
  const why = !/^[+-]?[0-9]+$/.test(text)
    ? 'invalid syntax'
    : BigInt(text.replace('+', '')) > maxInt64 || BigInt(text.replace('+', '')) < -maxInt64 - 1n
      ? 'value out of range'
      : undefined
  if (why !== undefined) throw badRequest(`strconv.ParseInt: parsing ${JSON.stringify(text)}: ${why}`)
  return integerOfText(text.replace('+', ''))
}
