// Literals that are checked before a program runs: durations, timestamps, patterns, format strings, mixed lists.
import { checkFormat } from '#apimachinery/cel/library/format-string.ts'
import { compileRegex } from '#apimachinery/cel/library/patterns.ts'
import {
  type Expression,
  type ListLiteral,
  type MapLiteral,
  type ParsedExpression,
  walk,
} from '#apimachinery/cel/syntax/expression.ts'
import { SourceErrors } from '#apimachinery/cel/syntax/source.ts'
import { type CelType, isSameType, paramOf, printType } from '#apimachinery/cel/types/cel-type.ts'
import { toDuration, toTimestamp } from '#apimachinery/cel/values/convert.ts'
import { CelError, type Value } from '#apimachinery/cel/values/value.ts'
import type { CheckedExpression } from '#apimachinery/cel/declarations/checked-expression.ts'

export interface LiteralRules {
  /** Elements of one list, keys of one map, values of one map must be of one type, but for arguments of format(). */
  readonly homogeneousLiterals: boolean
}

const conversions: ReadonlyMap<string, (value: Value) => Value> = new Map<string, (value: Value) => Value>([
  ['duration', toDuration],
  ['timestamp', toTimestamp],
  ['matches', (pattern) => (typeof pattern === 'string' && compileRegex(pattern) instanceof CelError ? failed : null)],
])

const failed = new CelError('invalid pattern')

/** The literals that break a rule; undefined where none does. */
export function literalErrors(
  parsed: ParsedExpression,
  checked: CheckedExpression,
  { homogeneousLiterals }: LiteralRules,
): SourceErrors | undefined {
  const errors = new SourceErrors(parsed.text)
  const report = (id: number, message: string): void => errors.addAt(parsed.places[id], message)
  walk(parsed.root, (written, parents) => {
    const node = checked.meant(written)
    if (node.kind === 'call') {
      const convert = conversions.get(node.name)
      const arg = node.args[0]
      if (convert !== undefined && arg?.kind === 'literal' && convert(arg.value) instanceof CelError)
        report(arg.id, `invalid ${node.name} argument`)
      const format = checked.overloadsOf(node).includes('string_format') ? checkFormat(node, checked) : undefined
      if (format !== undefined) report(format.id, format.message)
    }
    if (!homogeneousLiterals || parents.some(isFormat)) return
    if (node.kind === 'list') checkList(node, checked, report)
    else if (node.kind === 'map') checkMap(node, checked, report)
  })
  return errors.count > 0 ? errors : undefined
}

const isFormat = (node: Expression): boolean => node.kind === 'call' && node.name === 'format'

type Report = (id: number, message: string) => void

const mismatch = (expected: CelType, found: CelType): string =>
  `expected type '${printType(expected)}' but found '${printType(found)}'`

const differs = (a: CelType, b: CelType): boolean => !isSameType(a, b, { namesMatter: false })

function checkList({ elements, optional }: ListLiteral, checked: CheckedExpression, report: Report): void {
  let expected: CelType | undefined
  for (const [i, element] of elements.entries()) {
    const type = checked.typeOf(element)
    const found = optional.has(i) ? paramOf(type, 0) : type
    expected ??= found
    if (!differs(expected, found)) continue
    report(element.id, mismatch(expected, found))
    return
  }
}

function checkMap({ entries }: MapLiteral, checked: CheckedExpression, report: Report): void {
  let keys: CelType | undefined
  let values: CelType | undefined
  for (const { key, value, optional } of entries) {
    const keyType = checked.typeOf(key)
    const type = checked.typeOf(value)
    const valueType = optional ? paramOf(type, 0) : type
    keys ??= keyType
    values ??= valueType
    if (differs(keys, keyType)) report(key.id, mismatch(keys, keyType))
    if (differs(values, valueType)) report(value.id, mismatch(values, valueType))
  }
}
