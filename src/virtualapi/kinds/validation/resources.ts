// Requests and limits: amounts that can be, requests within limits, claims that the pod has.
import type { V1ResourceRequirements } from '@kubernetes/client-node'
import { fieldDuplicate, fieldForbidden, fieldInvalid, fieldRequired } from '../../../apimachinery/field/index.ts'
import { goQuote } from '../../../apimachinery/text/index.ts'
import type { StatusCause } from '../../../apimachinery/status/index.ts'
import type { Data } from '../../resources/typed/data.ts'
import { quantityOf, tryQuantity } from '../../resources/typed/quantity.ts'
import { isHugePages, isWhole, mayOvercommit } from './resource-names.ts'
import { label } from './values.ts'

type Amounts = Readonly<Record<string, string>>
type NameCheck = (path: string, name: string) => StatusCause[]
type Requirements = Data<V1ResourceRequirements>

const nano = 1_000_000_000n
const maxClaimsListed = 100

export const isNegative = (text: string): boolean => quantityOf(text).nanos < 0n

/** A quantity that may not be negative. */
export function nonNegativeQuantity(path: string, text: string): StatusCause[] {
  return isNegative(text) ? [fieldInvalid(path, text, 'must be greater than or equal to 0')] : []
}

/** A quantity above zero. */
export function positiveQuantity(path: string, text: string): StatusCause[] {
  return quantityOf(text).nanos <= 0n ? [fieldInvalid(path, text, 'must be greater than zero')] : []
}

/** The amount of a resource: not negative, and whole where the resource comes one by one. */
export function amountCauses(path: string, name: string, text: string): StatusCause[] {
  const causes = nonNegativeQuantity(path, text)
  return isWhole(name) && quantityOf(text).nanos % nano !== 0n
    ? [...causes, fieldInvalid(path, text, 'must be an integer')]
    : causes
}

/**
 * What is wrong with requests and limits. `nameCauses`: which resources these may be; `claims`: names of claims that
 * the pod has.
 */
export function resourceCauses(
  path: string,
  resources: Requirements | undefined,
  nameCauses: NameCheck,
  claims: ReadonlySet<string>,
): StatusCause[] {
  if (resources === undefined) return []
  const { limits = {}, requests = {} } = resources
  const names = [...Object.keys(limits), ...Object.keys(requests)]
  const causes = [
    ...Object.entries(limits).flatMap(([name, text]) => oneCauses(`${path}.limits[${name}]`, name, text, nameCauses)),
    ...Object.entries(requests).flatMap(([name, text]) => [
      ...oneCauses(`${path}.requests[${name}]`, name, text, nameCauses),
      ...againstLimit(path, name, text, limits),
    ]),
  ]
  if (names.some(isHugePages) && !names.some((name) => name === 'cpu' || name === 'memory'))
    causes.push(fieldForbidden(path, 'HugePages require cpu or memory'))
  return [...causes, ...claimNameCauses(`${path}.claims`, resources.claims, claims)]
}

function oneCauses(at: string, name: string, text: string, nameCauses: NameCheck): StatusCause[] {
  const causes = [...nameCauses(at, name), ...amountCauses(at, name, text)]
  return isHugePages(name) && !isDivisible(name, text)
    ? [...causes, fieldInvalid(at, text, `${text} is not positive integer multiple of ${name}`)]
    : causes
}

/** Whole pages of the size that the name tells. */
function isDivisible(name: string, text: string): boolean {
  const size = tryQuantity(name.slice('hugepages-'.length))?.nanos ?? 0n
  if (size <= 0n || size % nano !== 0n) return false
  const { nanos } = quantityOf(text)
  const rounded = nanos % nano === 0n ? nanos : nanos + (nano - (nanos % nano))
  return rounded % size === 0n
}

function againstLimit(path: string, name: string, text: string, limits: Amounts): StatusCause[] {
  const limit = limits[name]
  const at = `${path}.requests`
  if (limit === undefined)
    return mayOvercommit(name)
      ? []
      : [fieldRequired(`${path}.limits`, 'Limit must be set for non overcommitable resources')]
  const request = quantityOf(text).nanos
  const most = quantityOf(limit).nanos
  if (request !== most && !mayOvercommit(name))
    return [fieldInvalid(at, text, `must be equal to ${name} limit of ${limit}`)]
  return request > most ? [fieldInvalid(at, text, `must be less than or equal to ${name} limit of ${limit}`)] : []
}

/** Claims that a container uses: each once, and each one of the pod's. */
function claimNameCauses(path: string, claims: Requirements['claims'], ofPod: ReadonlySet<string>): StatusCause[] {
  const whole = new Set<string>()
  const parts = new Set<string>()
  const namesInPart = new Map<string, number>()
  let unknown = 0
  return (claims ?? []).flatMap(({ name, request = '' }, index) => {
    const at = `${path}[${index}]`
    if (name === '') return [fieldRequired(at)]
    const causes: StatusCause[] = []
    if (whole.has(name)) causes.push(fieldDuplicate(at, name))
    else if (request === '') {
      // Once for each of its requests that is used already.
      causes.push(...new Array<StatusCause>(namesInPart.get(name) ?? 0).fill(fieldDuplicate(at, name)))
      whole.add(name)
    } else {
      const key = `${name}/${request}`
      causes.push(...label(`${at}.request`, request))
      if (parts.has(key)) causes.push(fieldDuplicate(at, key))
      else namesInPart.set(name, (namesInPart.get(name) ?? 0) + 1)
      parts.add(key)
    }
    if (ofPod.has(name)) return causes
    // All names each time is too much to say of many claims.
    return [...causes, notFound(at, name, ++unknown > maxClaimsListed ? undefined : ofPod)]
  })
}

function notFound(field: string, name: string, ofPod: ReadonlySet<string> | undefined): StatusCause {
  const list = ofPod === undefined ? '' : ofPod.size === 0 ? ' which is empty' : `: ${[...ofPod].sort().join(', ')}`
  const detail = `must be one of the names in pod.spec.resourceClaims${list}`
  return { reason: 'FieldValueNotFound', message: `Not found: ${goQuote(name)}: ${detail}`, field }
}
