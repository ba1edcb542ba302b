// The worst cost of calls, by the sizes of their arguments: Kubernetes' table and cel-go's defaults.
import type { Expression } from '#apimachinery/cel/syntax/expression.ts'
import { type CelType, isSameType, paramOf } from '#apimachinery/cel/types/cel-type.ts'
import { isInt } from '#apimachinery/cel/values/value.ts'
import type { SharedPath } from './shared-path.ts'
import { fixed, nothing, one, plus, type Range, scaled, times, unknownSize } from './range.ts'

/** A node as the cost of a call sees it. */
export interface SizedNode {
  /** From a variable down to the node: fields, `@items`, `@keys`, `@values`; empty where no path leads there. */
  readonly path: SharedPath
  readonly type: CelType
  readonly expression?: Expression
  /** The size as far as the expression tells. */
  readonly size: Range | undefined
}

export interface CallEstimate {
  readonly cost: Range
  readonly resultSize?: Range
}

/** The size of what a path leads to; undefined where the schema does not tell. */
export type SizeOfPath = (path: readonly string[]) => Range | undefined

export interface CallToEstimate {
  readonly name: string
  readonly overloadId: string
  readonly target: SizedNode | undefined
  readonly args: readonly SizedNode[]
  readonly sizeOfPath: SizeOfPath
}

const traversal = 0.1
const maxUint64 = unknownSize.max

const sizeOf = ({ sizeOfPath }: CallToEstimate, node: SizedNode): Range =>
  node.size ?? (node.path.length === 0 ? undefined : sizeOfPath(node.path.names())) ?? unknownSize

const scan = (size: Range, factor = 1): Range => scaled(size, factor * traversal)
const scanWithResult = (size: Range, factor = 1, resultSize = size): CallEstimate => ({
  cost: scan(size, factor),
  resultSize,
})

const matching = (text: Range, pattern: Range): Range => times(scan(plus(text, one)), scaled(pattern, 0.25))

function scanArgument(call: CallToEstimate, factor = 1): CallEstimate | undefined {
  const [first] = call.args
  return first === undefined ? undefined : { cost: scan(sizeOf(call, first), factor) }
}

type Estimator = (call: CallToEstimate) => CallEstimate | undefined

const cheap: Estimator = () => ({ cost: one })

const selector: Estimator = (call) => {
  const [text] = call.args
  if (text === undefined || call.args.length !== 1) return undefined
  const length = sizeOf(call, text)
  return { cost: plus(plus(fixed(10), scan(length)), scaled(scaled(length, 0.5), 50)) }
}

const overElements: Estimator = (call) => {
  const { target } = call
  if (target === undefined) return undefined
  const size = sizeOf(call, target)
  const element = elementOf(target)
  if (element === undefined) return { cost: scan(size) }
  const isText = element.type.kind === 'string' || element.type.kind === 'bytes'
  return { cost: times(size, isText ? plus(one, scan(sizeOf(call, element))) : one) }
}

function elementOf({ type, path }: SizedNode): SizedNode | undefined {
  if (type.params.length === 0) return undefined
  return { path: path.length === 0 ? path : path.copy().to('@items'), type: paramOf(type, 0), size: undefined }
}

const ofTarget: Estimator = (call) =>
  call.target === undefined ? undefined : scanWithResult(sizeOf(call, call.target))

const ceilDivide = (a: bigint, b: bigint): bigint => BigInt(Math.ceil(Number(a) / Number(b)))

const replace: Estimator = (call) => {
  const { target, args } = call
  const [from, to] = args
  if (target === undefined || from === undefined || to === undefined) return undefined
  const [size, old, fresh] = [sizeOf(call, target), sizeOf(call, from), sizeOf(call, to)]
  const longest = longestReplacement(size.max, old.min, fresh.max)
  const shortest = shortestReplacement(size.min, old.max, fresh.min)
  const count = { min: shortest.count, max: longest.count }
  const retained = { min: shortest.retained, max: longest.retained }
  return scanWithResult(size, 2, plus(times(count, fresh), retained))
}

const surrounding = (size: bigint): bigint => (size < maxUint64 ? size + 1n : size)

function longestReplacement(size: bigint, old: bigint, fresh: bigint): { count: bigint; retained: bigint } {
  if (old === 0n) return { count: surrounding(size), retained: size }
  return fresh <= old ? { count: 0n, retained: size } : { count: ceilDivide(size, old), retained: 0n }
}

function shortestReplacement(size: bigint, old: bigint, fresh: bigint): { count: bigint; retained: bigint } {
  if (old === 0n) return { count: surrounding(size), retained: size }
  return old <= fresh ? { count: 0n, retained: size } : { count: ceilDivide(size, old), retained: 0n }
}

const split: Estimator = (call) => {
  if (call.target === undefined) return undefined
  const size = sizeOf(call, call.target)
  const limit = call.args[1]?.expression
  const value = limit?.kind === 'literal' ? limit.value : undefined
  const max = value !== undefined && isInt(value) ? BigInt.asUintN(64, BigInt(value)) : size.max
  return scanWithResult(size, 2, { min: 0n, max })
}

const join: Estimator = (call) => {
  const { target, args } = call
  if (target === undefined) return undefined
  const list = sizeOf(call, target)
  const element = elementOf(target)
  let size = element === undefined ? nothing : times(list, sizeOf(call, element))
  const [separator] = args
  if (separator !== undefined) {
    const separators = { min: list.min > 0n ? list.min - 1n : 0n, max: list.max > 0n ? list.max - 1n : 0n }
    size = plus(size, times(sizeOf(call, separator), separators))
  }
  return scanWithResult(size)
}

const find: Estimator = (call) => {
  const [pattern] = call.args
  if (call.target === undefined || pattern === undefined) return undefined
  const size = sizeOf(call, call.target)
  return { cost: matching(size, sizeOf(call, pattern)), resultSize: { min: 0n, max: size.max } }
}

// Addresses have 4 or 16 bytes.
const address: Range = { min: 4n, max: 16n }

const contained: Estimator = (call) => {
  const [other] = call.args
  if (other === undefined) return undefined
  let cost = scan(plus(address, address))
  if (call.name === 'containsCIDR') cost = plus(plus(cost, scan(address)), one)
  if (call.overloadId.endsWith('_string')) cost = plus(cost, scan(sizeOf(call, other)))
  return { cost }
}

const maxRegexSize = 128

const validate: Estimator = (call) => {
  const [text] = call.args
  return text === undefined ? undefined : { cost: scaled(scan(sizeOf(call, text)), maxRegexSize * 0.25) }
}

const constantTime: ReadonlySet<string> = new Set(
  (
    'net.IP net.CIDR kubernetes.Quantity kubernetes.Semver kubernetes.authorization.Authorizer ' +
    'kubernetes.authorization.PathCheck kubernetes.authorization.GroupCheck kubernetes.authorization.ResourceCheck ' +
    'kubernetes.authorization.Decision'
  ).split(' '),
)

const maxFormatSize = 64n

const equality: Estimator = (call) => {
  const [a, b] = call.args
  if (a === undefined || b === undefined || !isSameType(a.type, b.type)) return undefined
  if (constantTime.has(a.type.name)) return { cost: one }
  if (a.type.name === 'kubernetes.NamedFormat') return { cost: scan({ min: 1n, max: maxFormatSize }) }
  if (a.type.name === 'kubernetes.URL') return { cost: scan({ min: 1n, max: b.size?.max ?? 1n }) }
  return undefined
}

const accessors =
  'serviceAccount path group resource subresource namespace name allowed reason error errored masked prefixLength family ' +
  'isUnspecified isLoopback isLinkLocalMulticast isLinkLocalUnicast isGlobalUnicast format.named sign asInteger isInteger ' +
  'asApproximateFloat isGreaterThan isLessThan compareTo add sub major minor patch getScheme getHostname getHost getPort ' +
  'getEscapedPath getQuery'

const withArgumentSize: Estimator = (call) => {
  const [text] = call.args
  return text === undefined || call.args.length !== 1 ? undefined : scanWithResult(sizeOf(call, text))
}

const byName: ReadonlyMap<string, Estimator> = new Map<string, Estimator>([
  ...accessors.split(' ').map((name) => [name, cheap] as const),
  ['check', () => ({ cost: fixed(350_000) })],
  ['fieldSelector', selector],
  ['labelSelector', selector],
  ...['isSorted', 'sum', 'max', 'min', 'indexOf', 'lastIndexOf'].map((name) => [name, overElements] as const),
  ['url', withArgumentSize],
  ['jsonpatch.escapeKey', withArgumentSize],
  ...['lowerAscii', 'upperAscii', 'substring', 'trim'].map((name) => [name, ofTarget] as const),
  ['replace', replace],
  ['split', split],
  ['join', join],
  ['find', find],
  ['findAll', find],
  ...['cidr', 'isIP', 'isCIDR', 'quantity', 'isQuantity', 'semver', 'isSemver'].map(
    (name) => [name, scanArgument] as const,
  ),
  ['ip', (call) => (call.overloadId === 'cidr_ip' ? { cost: one } : scanArgument(call))],
  ['ip.isCanonical', (call) => scanArgument(call, 2)],
  ['containsIP', contained],
  ['containsCIDR', contained],
  ['validate', validate],
  ['_==_', equality],
])

function allocating(factor: number, size: Range): CallEstimate {
  return { cost: plus(plus(scaled(size, factor), one), fixed(10)), resultSize: size }
}

function literalInt(node: SizedNode | undefined, otherwise: bigint): bigint {
  const value = node?.expression?.kind === 'literal' ? node.expression.value : undefined
  if (value === undefined || !isInt(value)) return otherwise
  return value < 0 ? 0n : BigInt(value)
}

const sets: Estimator = (call) => {
  const [a, b] = call.args
  if (a === undefined || b === undefined) return undefined
  const factor = call.overloadId === 'list_sets_equivalent_list' ? 2 : 1
  return { cost: plus(scaled(times(sizeOf(call, a), sizeOf(call, b)), factor), one) }
}

const flatten: Estimator = (call) => {
  if (call.target === undefined) return undefined
  const depth = call.args.length === 1 ? literalInt(call.args[0], maxUint64) : 1n
  return allocating(Number(depth), sizeOf(call, call.target))
}

const slice: Estimator = (call) => {
  if (call.target === undefined) return undefined
  const size = sizeOf(call, call.target)
  const [start, end] = [literalInt(call.args[0], 0n), literalInt(call.args[1], size.max)]
  return allocating(1, fixed(BigInt.asUintN(64, end - start)))
}

function sortOf(call: CallToEstimate, node: SizedNode | undefined, element: string): CallEstimate | undefined {
  if (node === undefined) return undefined
  const size = sizeOf(call, node)
  return allocating(element === 'string' || element === 'bytes' ? 2 + traversal : 2, times(size, size))
}

const byOverload: ReadonlyMap<string, Estimator> = new Map<string, Estimator>([
  ...['contains', 'intersects', 'equivalent'].map((name) => [`list_sets_${name}_list`, sets] as const),
  ['list_slice', slice],
  ['list_flatten', flatten],
  ['list_flatten_int', flatten],
  ['lists_range', ({ args }) => allocating(1, fixed(literalInt(args[0], maxUint64)))],
  ['list_reverse', (call) => (call.target === undefined ? undefined : allocating(1, sizeOf(call, call.target)))],
  ['list_distinct', (call) => sortOf(call, call.target, '')],
])

/** What a library says about a call; undefined where the language's own rules apply. */
export function estimateLibraryCall(call: CallToEstimate): CallEstimate | undefined {
  const sorting = /^list_(\S+)_(sort|sortByAssociatedKeys)$/.exec(call.overloadId)
  if (sorting !== null) return sortOf(call, sorting[2] === 'sort' ? call.target : call.args[0], sorting[1] ?? '')
  return (byOverload.get(call.overloadId) ?? byName.get(call.name))?.(call)
}

const ordering = /^(?:less|greater|less_equals|greater_equals)_(?:string|bytes)$|^equals$|^not_equals$/

/** The language's own rules, by the sizes that the expression tells, without the cost of the arguments. */
export function estimateStandardCall({ overloadId, target, args }: CallToEstimate): CallEstimate {
  const [first, second] = args
  const size = (node: SizedNode | undefined): Range => node?.size ?? unknownSize
  if (ordering.test(overloadId) && first !== undefined && second !== undefined) {
    const [a, b] = [size(first), size(second)]
    const max = a.max < b.max ? a.max : b.max
    return { cost: scan({ min: max > 0n ? 1n : 0n, max }) }
  }
  switch (overloadId) {
    case 'string_format':
      if (target !== undefined) return { cost: scan(size(target)) }
      break
    case 'string_to_bytes':
      return scanWithResult(size(first), 1, wrapped(size(first).min, size(first).max * 4n))
    case 'bytes_to_string':
      return scanWithResult(size(first), 1, { min: size(first).min / 4n, max: size(first).max })
    case 'strings_quote':
      return scanWithResult(size(first), 1, wrapped(size(first).min + 2n, size(first).max * 2n + 2n))
    case 'starts_with_string':
    case 'ends_with_string':
      return { cost: scan(size(first)) }
    case 'in_list':
      return { cost: scaled(size(second), 1) }
    case 'matches_string':
      if (target !== undefined) return { cost: matching(size(target), size(first)) }
      break
    case 'contains_string':
      if (target !== undefined) return { cost: times(scan(size(target)), scan(size(first))) }
      break
    case 'add_list':
      return { cost: one, resultSize: plus(size(first), size(second)) }
    case 'add_string':
    case 'add_bytes':
      return scanWithResult(plus(size(first), size(second)))
    default:
  }
  return { cost: one }
}

// cel-go multiplies these without a check.
const wrapped = (min: bigint, max: bigint): Range => ({ min: BigInt.asUintN(64, min), max: BigInt.asUintN(64, max) })
