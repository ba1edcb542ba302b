// Validation of requests and limits: amounts, requests against limits, and references to claims of the pod.
import type { V1ResourceRequirements } from '@kubernetes/client-node'
import { quantityOf, tryQuantity } from '#apimachinery/quantity/index.ts'
import { goQuote } from '#apimachinery/text/index.ts'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'
import { label, nonNegativeQuantity } from './basic-rules.ts'
import { isCountedInUnits, isHugePages, mayOvercommit } from './resource-names.ts'
import type { Report, Rule } from './vocabulary.ts'

type Requirements = Data<V1ResourceRequirements>
type ClaimNames = ReadonlySet<string>

const nano = 1_000_000_000n
const maxClaimsListed = 100

/** The amount of the resource `name`: not negative, and a whole number if the resource is counted in whole units. */
export const amount: Rule<string, string> = (text, report, name) => {
  report.check(nonNegativeQuantity, text)
  if (isCountedInUnits(name) && quantityOf(text).nanos % nano !== 0n) report.invalid('', text, 'must be an integer')
}

/**
 * Requests and limits whose names follow `resourceName`. The context of the rule is the set of names of the pod's
 * resource claims.
 */
export function resourceRequirements(resourceName: Rule<string>): Rule<Requirements | undefined, ClaimNames> {
  const quantity: Rule<string, string> = (text, report, name) => {
    report.check(resourceName, name)
    amount(text, report, name)
    if (isHugePages(name) && !isDivisible(name, text))
      report.invalid('', text, `${text} is not positive integer multiple of ${name}`)
  }
  return (resources, report, claims) => {
    if (resources === undefined) return
    const { limits = {}, requests = {} } = resources
    for (const name in limits) report.at(`limits[${name}]`, quantity, limits[name] ?? '', name)
    for (const name in requests) {
      report.at(`requests[${name}]`, quantity, requests[name] ?? '', name)
      compareWithLimit(name, resources, report)
    }
    const names = [...Object.keys(limits), ...Object.keys(requests)]
    if (names.some(isHugePages) && !names.includes('cpu') && !names.includes('memory'))
      report.forbidden('', 'HugePages require cpu or memory')
    report.at('claims', claimNames, resources.claims, claims)
  }
}

/** True for a whole number of huge pages of the size in the name. As in Go's Value(), fractions are rounded up. */
function isDivisible(name: string, text: string): boolean {
  const size = tryQuantity(name.slice('hugepages-'.length))?.nanos ?? 0n
  if (size <= 0n || size % nano !== 0n) return false
  const { nanos } = quantityOf(text)
  const rounded = nanos % nano === 0n ? nanos : nanos + (nano - (nanos % nano))
  return rounded % size === 0n
}

function compareWithLimit(name: string, { limits, requests }: Requirements, report: Report): void {
  const limit = limits?.[name]
  const text = requests?.[name] ?? ''
  if (limit === undefined) {
    if (!mayOvercommit(name)) report.required('limits', 'Limit must be set for non overcommitable resources')
    return
  }
  const request = quantityOf(text).nanos
  const most = quantityOf(limit).nanos
  if (request !== most && !mayOvercommit(name))
    report.invalid('requests', text, `must be equal to ${name} limit of ${limit}`)
  else if (request > most) report.invalid('requests', text, `must be less than or equal to ${name} limit of ${limit}`)
}

/** The claims that a container uses: each may occur once, and must be a claim of the pod. */
const claimNames: Rule<Requirements['claims'], ClaimNames> = (claims, report, ofPod) => {
  const whole = new Set<string>()
  const parts = new Set<string>()
  const namesInPart = new Map<string, number>()
  let unknown = 0
  for (const [index, { name, request = '' }] of (claims ?? []).entries()) {
    if (name === '') {
      report.required(index)
      continue
    }
    if (whole.has(name)) report.duplicate(index, name)
    else if (request === '') {
      // One error for each request of this claim that is already used.
      for (let count = namesInPart.get(name) ?? 0; count > 0; count--) report.duplicate(index, name)
      whole.add(name)
    } else {
      const key = `${name}/${request}`
      report.at(`[${index}].request`, label, request)
      if (parts.has(key)) report.duplicate(index, key)
      else namesInPart.set(name, (namesInPart.get(name) ?? 0) + 1)
      parts.add(key)
    }
    // Each error lists all names; after many errors the list is left out, to bound the size of the response.
    if (!ofPod.has(name)) notFound(report, index, name, ++unknown > maxClaimsListed ? undefined : ofPod)
  }
}

function notFound(report: Report, index: number, name: string, ofPod: ClaimNames | undefined): void {
  const list = ofPod === undefined ? '' : ofPod.size === 0 ? ' which is empty' : `: ${[...ofPod].sort().join(', ')}`
  const detail = `must be one of the names in pod.spec.resourceClaims${list}`
  report.add({
    reason: 'FieldValueNotFound',
    message: `Not found: ${goQuote(name)}: ${detail}`,
    field: report.path(index),
  })
}
