// The shardSelector parameter of lists and watches (KEP-5866): the objects whose uid, namespace or logical cluster has
// its hash in given ranges, so that several consumers divide a collection among them. As in kube-apiserver, a selector
// is a CEL expression that is parsed and never evaluated: calls of shardRange(), joined by ||.
import { parseExpression, type Expression } from '#apimachinery/cel/index.ts'
import { badRequest } from '#apimachinery/status/index.ts'
import { hashOf, type ShardHash } from './shard-hash.ts'

/** `logicalCluster` is our addition: objects of one logical cluster then have one consumer, whatever their kinds are. */
const fields = {
  'object.metadata.uid': 'uid',
  'object.metadata.namespace': 'namespace',
  'object.metadata.logicalCluster': 'logicalCluster',
} as const
export type ShardField = (typeof fields)[keyof typeof fields]

interface ShardRange {
  readonly path: keyof typeof fields
  readonly start: ShardHash
  /** Exclusive. undefined: the end of the space. */
  readonly end: ShardHash | undefined
  readonly text: string
}

export interface ShardSelector {
  readonly field: ShardField
  /** The selector in its usual form, for ListMeta. */
  readonly text: string
  readonly ranges: number
  /** Whether the hash of this value of the field is in one of the ranges. */
  matches(value: string): boolean
}

/** Parses the shardSelector parameter. Throws BadRequest. */
export function parseShardSelector(text: string): ShardSelector {
  const ranges = rangesOf(text.trim())
  const [first] = ranges
  if (first === undefined) throw invalid('no range')
  const other = ranges.find(({ path }) => path !== first.path)
  if (other !== undefined)
    throw invalid(`all shard ranges must use the same field, got "${first.path}" and "${other.path}"`)
  return {
    field: fields[first.path],
    text: ranges.map((range) => range.text).join(' || '),
    ranges: ranges.length,
    matches(value) {
      const hash = hashOf(value)
      return ranges.some(({ start, end }) => !isLess(hash, start) && (end === undefined || isLess(hash, end)))
    },
  }
}

/** The selector of one of several equal shards of a field. `index`: from 0. */
export function shardRange(field: ShardField, { index, of }: { readonly index: number; readonly of: number }): string {
  if (!Number.isSafeInteger(index) || !Number.isSafeInteger(of) || index < 0 || index >= of)
    throw new Error(`there is no shard ${index} of ${of}`)
  const bound = (n: number): string => `0x${((BigInt(n) << 64n) / BigInt(of)).toString(16).padStart(16, '0')}`
  return `shardRange(object.metadata.${field}, '${bound(index)}', '${bound(index + 1)}')`
}

function isLess(a: ShardHash, b: ShardHash): boolean {
  return a.high < b.high || (a.high === b.high && a.low < b.low)
}

function rangesOf(text: string): ShardRange[] {
  if (text === '') throw invalid('empty shard selector is not allowed; omit the parameter for unfiltered lists')
  const parsed = parseExpression(text, { macros: new Map() })
  if (!('root' in parsed)) throw invalid(`CEL parse error: ${String(parsed).split('\n')[0]}`)
  return walk(parsed.root)
}

function walk(node: Expression): ShardRange[] {
  if (node.kind !== 'call') throw invalid(`unexpected expression; expected shardRange() call or || operator`)
  if (node.name === '_||_') return node.args.flatMap(walk)
  if (node.name !== 'shardRange')
    throw invalid(`unsupported function "${node.name}"; only shardRange() and || are allowed`)
  const [field, start, end, ...more] = node.args
  if (field === undefined || start === undefined || end === undefined || more.length > 0)
    throw invalid(`shardRange() requires exactly 3 arguments, got ${node.args.length}`)
  return [rangeOf(pathOf(field), hexOf(start, 'hexStart'), hexOf(end, 'hexEnd'))]
}

function rangeOf(path: string, start: string, end: string): ShardRange {
  if (!isField(path))
    throw invalid(`unsupported field path "${path}"; supported: object.metadata.uid, object.metadata.namespace`)
  const [from, to] = [BigInt(start), BigInt(end)]
  if (from >= to) throw invalid(`shard range start ${start} must be less than end ${end}`)
  return {
    path,
    start: positionOf(from),
    end: to === 1n << 64n ? undefined : positionOf(to),
    text: `shardRange(${path}, '${start}', '${end}')`,
  }
}

function isField(path: string): path is keyof typeof fields {
  return Object.hasOwn(fields, path)
}

function positionOf(value: bigint): ShardHash {
  return { high: Number(value >> 32n), low: Number(value & 0xffff_ffffn) }
}

/** `object.metadata.uid` of the expression of this text. */
function pathOf(node: Expression): string {
  if (node.kind === 'identifier') return node.name
  if (node.kind === 'select' && !node.testOnly) return `${pathOf(node.operand)}.${node.field}`
  throw invalid('shardRange() first argument: expected field path (e.g. object.metadata.uid)')
}

function hexOf(node: Expression, name: string): string {
  const value = node.kind === 'literal' ? node.value : undefined
  if (typeof value !== 'string') throw invalid(`${name} must be a string literal (e.g. '0xff')`)
  const hex = value.slice(2)
  if (!value.startsWith('0x')) throw invalid(`${name} must have '0x' prefix, got "${value}"`)
  if (hex === '') throw invalid(`${name}: hex value is required after '0x'`)
  if (hex.length > 17) throw invalid(`${name}: hex value too long (${hex.length} chars, max 17): "${hex}"`)
  const other = /[^0-9a-f]/u.exec(hex)
  if (other !== null) throw invalid(`${name}: invalid hex character "${other[0]}" in "${value}"`)
  if (hex.length === 16 || value === `0x1${'0'.repeat(16)}`) return value
  if (hex.length === 17)
    throw invalid(`${name}: 17-digit hex value must be '0x10000000000000000' (2^64), got "${value}"`)
  throw invalid(
    `${name} must be a 0x-prefixed 16-digit hex value, got "${value}" (did you mean "0x${hex.padStart(16, '0')}"?)`,
  )
}

function invalid(why: string): Error {
  return badRequest(`invalid shard selector: ${why}`)
}
