// One requirement of a label selector: validated when it is made, then compiled to a function, because it runs
// thousands of times.
import {
  aggregateText,
  causeText,
  fieldInvalid,
  fieldNotSupported,
  labelValueErrors,
  qualifiedNameErrors,
} from '#apimachinery/field/index.ts'
import type { StatusCause } from '#apimachinery/status/index.ts'

export type LabelOperator = '=' | '==' | '!=' | 'in' | 'notin' | 'exists' | '!' | 'gt' | 'lt'
export type Labels = Readonly<Record<string, string>>

export interface LabelRequirement {
  readonly key: string
  readonly operator: LabelOperator
  readonly values: readonly string[]
}

const operators: readonly LabelOperator[] = ['!', '=', '==', 'in', '!=', 'notin', 'gt', 'lt', 'exists']

/** Upstream's message for an invalid requirement; undefined if it is valid. */
export function requirementError({ key, operator, values }: LabelRequirement): string | undefined {
  const causes: StatusCause[] = []
  const keyErrors = qualifiedNameErrors(key)
  if (keyErrors.length > 0) causes.push(fieldInvalid('key', key, keyErrors.join('; ')))
  causes.push(...valueCountErrors(operator, values))
  for (const [i, value] of values.entries()) {
    const errors = labelValueErrors(value)
    if (errors.length > 0) causes.push(fieldInvalid(`values[${String(i)}][${key}]`, value, errors.join('; ')))
  }
  return causes.length === 0 ? undefined : aggregateText(causes.map(causeText))
}

function valueCountErrors(operator: LabelOperator, values: readonly string[]): StatusCause[] {
  const wrong = (detail: string): StatusCause[] => [fieldInvalid('values', [...values], detail)]
  switch (operator) {
    case 'in':
    case 'notin':
      return values.length === 0 ? wrong("for 'in', 'notin' operators, values set can't be empty") : []
    case '=':
    case '==':
    case '!=':
      return values.length === 1 ? [] : wrong('exact-match compatibility requires one single value')
    case 'exists':
    case '!':
      return values.length === 0 ? [] : wrong('values set must be empty for exists and does not exist')
    case 'gt':
    case 'lt': {
      const causes = values.length === 1 ? [] : wrong("for 'Gt', 'Lt' operators, exactly one value is required")
      for (const [i, value] of values.entries()) {
        if (tryInt64(value) !== undefined) continue
        causes.push(
          fieldInvalid(`values[${String(i)}]`, value, "for 'Gt', 'Lt' operators, the value must be an integer"),
        )
      }
      return causes
    }
    default:
      return [fieldNotSupported('operator', operator, operators)]
  }
}

/** The requirement as a function of an object's labels. */
export function compileRequirement({ key, operator, values }: LabelRequirement): (labels: Labels) => boolean {
  const [only = ''] = values
  switch (operator) {
    case '=':
    case '==':
      return (labels) => labels[key] === only
    case '!=':
      return (labels) => labels[key] !== only
    case 'in':
    case 'notin': {
      const set = new Set(values)
      // `typeof` excludes properties of Object.prototype such as `constructor`.
      return operator === 'in'
        ? (labels) => set.has(labels[key] as string) && typeof labels[key] === 'string'
        : (labels) => !set.has(labels[key] as string)
    }
    case 'exists':
      return (labels) => typeof labels[key] === 'string'
    case '!':
      return (labels) => typeof labels[key] !== 'string'
    case 'gt':
    case 'lt': {
      const bound = tryInt64(only) ?? 0n
      return (labels) => {
        const text = labels[key]
        const value = typeof text === 'string' ? tryInt64(text) : undefined
        return value !== undefined && (operator === 'gt' ? value > bound : value < bound)
      }
    }
  }
}

/**
 * Whether a requirement with few values holds. Slower than a compiled requirement, but takes no memory: a selector may
 * have thousands of requirements.
 */
export function holds(requirement: LabelRequirement, labels: Labels): boolean {
  const { key, operator, values } = requirement
  const value = labels[key]
  switch (operator) {
    case '=':
    case '==':
      return value === values[0]
    case '!=':
      return value !== values[0]
    case 'in':
      return typeof value === 'string' && values.includes(value)
    case 'notin':
      return !values.includes(value as string)
    case 'exists':
      return typeof value === 'string'
    case '!':
      return typeof value !== 'string'
    default:
      return compileRequirement(requirement)(labels)
  }
}

/** `a=b`, `a in (x,y)`, `!a`: a requirement as upstream prints it, with sorted values. */
export function requirementText({ key, operator, values }: LabelRequirement): string {
  const list = [...values].sort().join(',')
  switch (operator) {
    case 'exists':
      return key
    case '!':
      return `!${key}`
    case 'in':
    case 'notin':
      return `${key} ${operator} (${list})`
    case 'gt':
      return `${key}>${list}`
    case 'lt':
      return `${key}<${list}`
    default:
      return `${key}${operator}${list}`
  }
}

function tryInt64(text: string): bigint | undefined {
  if (!/^[+-]?[0-9]{1,40}$/.test(text)) return undefined
  const value = BigInt(text.startsWith('+') ? text.slice(1) : text)
  return BigInt.asIntN(64, value) === value ? value : undefined
}
