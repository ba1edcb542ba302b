// The cost of calls while a program runs: cel-go's defaults and the table of Kubernetes' libraries.
import type { CallCost } from '#apimachinery/cel/evaluate/plan.ts'
import { sizeOf } from '#apimachinery/cel/library/standard.ts'
import { CelList, CelMap, CelObject, CelOptional, type Value } from '#apimachinery/cel/values/value.ts'
import { lookAt, lookAtText, stepsOfEntry } from '#apimachinery/cel/values/work.ts'

const traversal = 0.1
const regexLength = 0.25
const authorizationCheck = 350_000
const listCreation = 10
const structCreation = 40

function size(value: Value | undefined): number {
  if (value instanceof CelObject) return value.size ?? 1
  return value === undefined ? 1 : (sizeOf(value) ?? 1)
}

function sizeWithin(value: Value | undefined): number {
  return value instanceof CelOptional && value.value !== undefined ? sizeWithin(value.value) : size(value)
}

const scan = (length: number, times = 1): number => Math.ceil(length * times * traversal)
const scanFirst =
  (times = 1): CallCost =>
  ([first]) =>
    scan(size(first), times)

const matching = (text: number, pattern: number): number =>
  Math.ceil((1 + text) * traversal) * Math.ceil(pattern * regexLength)

// All that a value holds, as a tree. Text counts in bytes here.
function traverse(value: Value): number {
  if (typeof value === 'string') {
    lookAtText(value.length)
    return Math.trunc(Buffer.byteLength(value) * traversal)
  }
  if (value instanceof Uint8Array) return Math.trunc(value.length * traversal)
  let total = 0
  if (value instanceof CelList) {
    lookAt(value.size * (1 + value.depth))
    for (let i = 0; i < value.size; i++) total += traverse(value.at(i))
    return total
  }
  if (!(value instanceof CelMap)) return 1
  lookAt(value.size * stepsOfEntry)
  for (const key of value.keys()) total += traverse(key) + traverse(value.find(key) ?? null)
  return total
}

const traverseFirst: CallCost = ([first = null]) => traverse(first)
const smaller: CallCost = ([a, b]) => scan(Math.min(sizeWithin(a), sizeWithin(b)))

/** A selector is parsed into requirements: at worst one for every second character. */
export function selectorCost(length: number): number {
  return listCreation + scan(length) + Math.ceil(Math.ceil(length * 0.5) * (listCreation + structCreation))
}

const contained =
  (overloadId: string): CallCost =>
  ([cidr, other]) => {
    const network = size(cidr)
    const masked = overloadId.startsWith('cidr_contains_cidr') ? scan(network) + 1 : 0
    return scan(network, 2) + masked + (overloadId.endsWith('_string') ? scan(size(other)) : 0)
  }

const validated: CallCost = ([format, text]) =>
  format instanceof CelObject && 'maxRegexSize' in format ? matching(size(text), Number(format.maxRegexSize)) : 1

const accessors =
  'serviceAccount path group resource subresource namespace name allowed reason error errored masked prefixLength family ' +
  'isUnspecified isLoopback isLinkLocalMulticast isLinkLocalUnicast isGlobalUnicast format.named sign asInteger isInteger ' +
  'asApproximateFloat isGreaterThan isLessThan compareTo add sub major minor patch getScheme getHostname getHost getPort ' +
  'getEscapedPath getQuery'

const byName: ReadonlyMap<string, (overloadId: string) => CallCost | 1> = new Map<
  string,
  (overloadId: string) => CallCost | 1
>([
  ...accessors.split(' ').map((name) => [name, () => 1] as const),
  ['check', () => () => authorizationCheck],
  ...['fieldSelector', 'labelSelector'].map(
    (name) =>
      [
        name,
        (): CallCost =>
          ([, text]) =>
            selectorCost(size(text)),
      ] as const,
  ),
  ...['isSorted', 'sum', 'max', 'min', 'indexOf', 'lastIndexOf'].map((name) => [name, () => traverseFirst] as const),
  ...['url', 'lowerAscii', 'upperAscii', 'substring', 'trim', 'jsonpatch.escapeKey'].map(
    (name) => [name, () => scanFirst()] as const,
  ),
  ...['cidr', 'isIP', 'isCIDR', 'quantity', 'isQuantity', 'semver', 'isSemver'].map(
    (name) => [name, () => scanFirst()] as const,
  ),
  ...['replace', 'split', 'ip.isCanonical'].map((name) => [name, () => scanFirst(2)] as const),
  ['join', () => (_args, result) => scan(size(result), 2)],
  ...['find', 'findAll'].map(
    (name) =>
      [
        name,
        (): CallCost =>
          ([text, pattern]) =>
            matching(size(text), size(pattern)),
      ] as const,
  ),
  ['ip', (overloadId) => (overloadId === 'cidr_ip' ? 1 : scanFirst())],
  ['containsIP', contained],
  ['containsCIDR', contained],
  ['validate', () => validated],
  ['_==_', () => (args, result) => (isLibraryValue(args[0]) ? 1 : smaller(args, result))],
])

const isLibraryValue = (value: Value | undefined): boolean =>
  value instanceof CelObject && /^(?:kubernetes|net)\./.test(value.typeName)

const ordering = /^(?:less|greater|less_equals|greater_equals)_(?:string|bytes)$|^equals$|^not_equals$/

const ofSets =
  (times: number): CallCost =>
  ([a, b]) =>
    1 + size(a) * size(b) * times

const ofResult: CallCost = (_args, result) => allocating(1, size(result))

const tracked: ReadonlyMap<string, CallCost> = new Map<string, CallCost>([
  ['list_sets_contains_list', ofSets(1)],
  ['list_sets_intersects_list', ofSets(1)],
  ['list_sets_equivalent_list', ofSets(2)],
  ['list_slice', ofResult],
  ['lists_range', ofResult],
  ['list_reverse', ofResult],
  ['list_flatten', ([list]) => allocating(1, size(list))],
  ['list_flatten_int', ([list, depth]) => allocating(Number(depth), size(list))],
  ['list_distinct', ([list]) => comparingAll(list)],
])

function trackedCost(overloadId: string): CallCost | undefined {
  const known = tracked.get(overloadId)
  if (known !== undefined) return known
  if (/^list_\S+_sort$/.test(overloadId)) return ([list]) => comparingAll(list)
  if (/^list_\S+_sortByAssociatedKeys$/.test(overloadId)) return ([, keys]) => comparingAll(keys)
  return undefined
}

const allocating = (factor: number, length: number): number => Math.trunc(length * factor) + 1 + listCreation

function comparingAll(list: Value | undefined): number {
  const length = size(list)
  const first = list instanceof CelList && length > 0 ? list.at(0) : null
  const factor = typeof first === 'string' || first instanceof Uint8Array ? 2 + traversal : 2
  return allocating(factor, length * length)
}

/** The cost of the calls of a function. `overloadId` is empty where more than one overload may be meant. */
export function callCost(name: string, overloadId: string): CallCost | 1 {
  const special = trackedCost(overloadId) ?? byName.get(name)?.(overloadId)
  if (special !== undefined) return special
  if (ordering.test(overloadId)) return smaller
  switch (overloadId) {
    case 'starts_with_string':
    case 'ends_with_string':
    case 'string_to_bytes':
    case 'bytes_to_string':
    case 'strings_quote':
    case 'string_format':
      return ([first]) => scan(sizeWithin(first))
    case 'in_list':
      return ([, list]) => sizeWithin(list)
    case 'add_string':
    case 'add_bytes':
      return ([a, b]) => scan(sizeWithin(a) + sizeWithin(b))
    case 'matches_string':
      return ([text, pattern]) => matching(sizeWithin(text), sizeWithin(pattern))
    case 'contains_string':
      return ([text, part]) => scan(sizeWithin(text)) * scan(sizeWithin(part))
    default:
      return 1
  }
}
