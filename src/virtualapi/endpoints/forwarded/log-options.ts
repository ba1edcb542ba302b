// The options of a request for the logs of a pod, checked as kube-apiserver does it.
import { badRequest, invalid, type StatusCause } from '#apimachinery/status/index.ts'
import { fieldForbidden, fieldInvalid } from '#apimachinery/field/index.ts'

/** Throws 400 for an option that is no number or time, and 422 for one that is out of range. */
export function requireLogOptions(query: URLSearchParams, pod: string): void {
  const sinceSeconds = integerOf(query, 'sinceSeconds')
  const sinceTime = timeOf(query)
  const tailLines = integerOf(query, 'tailLines')
  const limitBytes = integerOf(query, 'limitBytes')
  const causes: StatusCause[] = []
  const below = (field: string, value: bigint | undefined, least: bigint, text: string): void => {
    if (value !== undefined && value < least) causes.push(fieldInvalid(field, Number(value), text))
  }
  below('tailLines', tailLines, 0n, 'must be greater than or equal to 0')
  below('limitBytes', limitBytes, 1n, 'must be greater than 0')
  if (sinceSeconds !== undefined && sinceTime)
    causes.push(fieldForbidden('[]', 'at most one of `sinceTime` or `sinceSeconds` may be specified'))
  else below('sinceSeconds', sinceSeconds, 1n, 'must be greater than 0')
  // The feature gate of `stream` is off by default.
  if (query.has('stream')) causes.push(fieldForbidden('stream', 'may not be specified'))
  if (causes.length > 0) throw invalid({ group: '', kind: 'PodLogOptions' }, pod, causes)
}

/**
 * The first value, as Go's strconv.ParseInt reads it for 64 bits; undefined if absent. Throws 400 if it is no such
 * integer.
 */
function integerOf(query: URLSearchParams, name: string): bigint | undefined {
  const text = query.get(name)
  if (text === null) return undefined
  const wrong = (why: string): Error => badRequest(`strconv.ParseInt: parsing ${JSON.stringify(text)}: ${why}`)
  if (!/^[+-]?[0-9]{1,1000}$/.test(text)) throw wrong('invalid syntax')
  const value = BigInt(text.replace(/^\+/, ''))
  if (BigInt.asIntN(64, value) !== value) throw wrong('value out of range')
  return value
}

/** Whether the query has a `sinceTime`. Throws 400 if it is not a valid time. */
function timeOf(query: URLSearchParams): boolean {
  const text = query.get('sinceTime')
  if (text === null || text === '') return false
  const layout = '2006-01-02T15:04:05Z07:00'
  if (!/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/.test(text) || Number.isNaN(Date.parse(text)))
    throw badRequest(
      `parsing time ${JSON.stringify(text)} as "${layout}": cannot parse ${JSON.stringify(text)} as "2006"`,
    )
  return true
}
