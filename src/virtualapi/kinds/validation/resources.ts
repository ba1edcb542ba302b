// Validation of requests and limits: amounts, requests against limits, and references to claims of the pod.
import type { V1ResourceRequirements } from '@kubernetes/client-node'
import { fieldDuplicate, fieldForbidden, fieldInvalid, fieldRequired } from '#apimachinery/field/index.ts'
import { goQuote } from '#apimachinery/text/index.ts'
import type { StatusCause } from '#apimachinery/status/index.ts'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'
import { quantityOf, tryQuantity } from '#apimachinery/quantity/index.ts'
import { isHugePages, isCountedInUnits, mayOvercommit } from './resource-names.ts'
import { label } from './values.ts'

type Amounts = Readonly<Record<string, string>>
type NameCheck = (path: string, name: string) => StatusCause[]
type Requirements = Data<V1ResourceRequirements>

const nano = 1_000_000_000n
const maxClaimsListed = 100

export const isNegative = (text: string): boolean => quantityOf(text).nanos < 0n

/** Errors for a negative quantity. */
export function nonNegativeQuantity(path: string, text: string): StatusCause[] {
  return isNegative(text) ? [fieldInvalid(path, text, 'must be greater than or equal to 0')] : []
}

/** Errors for a quantity that is not above zero. */
export function positiveQuantity(path: string, text: string): StatusCause[] {
  return quantityOf(text).nanos <= 0n ? [fieldInvalid(path, text, 'must be greater than zero')] : []
}

/** Validates the amount of a resource: not negative, and a whole number if the resource is counted in whole units. */
export function amountCauses(path: string, name: string, text: string): StatusCause[] {
  const causes = nonNegativeQuantity(path, text)
  return isCountedInUnits(name) && quantityOf(text).nanos % nano !== 0n
    ? [...causes, fieldInvalid(path, text, 'must be an integer')]
    : causes
}

/**
 * Validation errors of requests and limits. `nameCauses`: validates the resource names; `claims`: names of the pod's
 * resource claims.
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
    ...Object.entries(limits).flatMap(([name, text]) =>
      quantityCauses(`${path}.limits[${name}]`, name, text, nameCauses),
    ),
    ...Object.entries(requests).flatMap(([name, text]) => [
      ...quantityCauses(`${path}.requests[${name}]`, name, text, nameCauses),
      ...limitCauses(path, name, text, limits),
    ]),
  ]
  if (names.some(isHugePages) && !names.some((name) => name === 'cpu' || name === 'memory'))
    causes.push(fieldForbidden(path, 'HugePages require cpu or memory'))
  return [...causes, ...claimNameCauses(`${path}.claims`, resources.claims, claims)]
}

function quantityCauses(at: string, name: string, text: string, nameCauses: NameCheck): StatusCause[] {
  const causes = [...nameCauses(at, name), ...amountCauses(at, name, text)]
  return isHugePages(name) && !isDivisible(name, text)
    ? [...causes, fieldInvalid(at, text, `${text} is not positive integer multiple of ${name}`)]
    : causes
}

/** True for a whole number of huge pages of the size in the name. As Go's Value(), fractions are rounded up. */
function isDivisible(name: string, text: string): boolean {
  const size = tryQuantity(name.slice('hugepages-'.length))?.nanos ?? 0n
  if (size <= 0n || size % nano !== 0n) return false
  const { nanos } = quantityOf(text)
  const rounded = nanos % nano === 0n ? nanos : nanos + (nano - (nanos % nano))
  return rounded % size === 0n
}

function limitCauses(path: string, name: string, text: string, limits: Amounts): StatusCause[] {
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

/** Validates the claims that a container uses: each at most once, and each must be a claim of the pod. */
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
      // One error for each request of this claim that is already used.
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
    // Each error lists all names; after many errors the list is left out, to bound the size of the response.
    return [...causes, notFound(at, name, ++unknown > maxClaimsListed ? undefined : ofPod)]
  })
}

function notFound(field: string, name: string, ofPod: ReadonlySet<string> | undefined): StatusCause {
  const list = ofPod === undefined ? '' : ofPod.size === 0 ? ' which is empty' : `: ${[...ofPod].sort().join(', ')}`
  const detail = `must be one of the names in pod.spec.resourceClaims${list}`
  return { reason: 'FieldValueNotFound', message: `Not found: ${goQuote(name)}: ${detail}`, field }
}
