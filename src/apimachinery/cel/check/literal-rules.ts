// Literals that are checked before a program runs: durations, timestamps, patterns, format strings.
import { compileRegex } from '../library/patterns.ts'
import { checkFormat } from '../library/format-string.ts'
import type { ParsedExpression } from '../syntax/expression.ts'
import { walk } from '../syntax/expression.ts'
import { SourceErrors } from '../syntax/source.ts'
import { toDuration, toTimestamp } from '../values/convert.ts'
import { CelError, type Value } from '../values/value.ts'
import type { CheckedExpression } from './checked-expression.ts'

const rules: ReadonlyMap<string, (value: Value) => Value> = new Map<string, (value: Value) => Value>([
  ['duration', toDuration],
  ['timestamp', toTimestamp],
  ['matches', (pattern) => (typeof pattern === 'string' ? toRegex(pattern) : null)],
])

const toRegex = (pattern: string): Value => {
  const regex = compileRegex(pattern)
  return regex instanceof CelError ? regex : null
}

/** The literals that can only fail; undefined where all are right. */
export function literalErrors(parsed: ParsedExpression, checked: CheckedExpression): SourceErrors | undefined {
  const errors = new SourceErrors(parsed.text)
  for (const [name, rule] of rules)
    walk(parsed.root, (written) => {
      const node = checked.meant(written)
      const arg = node.kind === 'call' && node.name === name ? node.args[0] : undefined
      if (arg?.kind === 'literal' && rule(arg.value) instanceof CelError)
        errors.addAt(parsed.places[arg.id], `invalid ${name} argument`)
    })
  walk(parsed.root, (written) => {
    const node = checked.meant(written)
    if (node.kind !== 'call' || !checked.overloadsOf(node).includes('string_format')) return
    const found = checkFormat(node, checked)
    if (found !== undefined) errors.addAt(parsed.places[found.id], found.message)
  })
  return errors.count > 0 ? errors : undefined
}
