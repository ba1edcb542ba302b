// Validates the selectors of an access review, and finds selectors that cannot be parsed. RBAC ignores selectors, so
// ignoring one makes the question wider; status.evaluationError tells the client.
import { fieldInvalid, fieldRequired } from '#apimachinery/field/index.ts'
import { isJsonObject } from '#apimachinery/meta/index.ts'
import {
  labelRequirementErrors,
  parseFieldSelector,
  parseLabelSelector,
  requirementError,
} from '#apimachinery/selector/index.ts'
import { isStatusError, type StatusCause } from '#apimachinery/status/index.ts'
import { textOf, textsOf } from './review.ts'

const root = 'spec.resourceAttributes'
const labelOperators: Readonly<Record<string, 'in' | 'notin' | 'exists' | '!'>> = {
  In: 'in',
  NotIn: 'notin',
  Exists: 'exists',
  DoesNotExist: '!',
}

interface Requirement {
  readonly key: string
  readonly operator: string
  readonly values: readonly string[]
}

interface SelectorAttributes {
  readonly raw: string
  readonly requirements: readonly Requirement[]
}

/**
 * Validation errors of the selectors in `resourceAttributes`. An unknown operator is no error: clients may be newer.
 */
export function selectorCauses(resourceAttributes: unknown): StatusCause[] {
  return [
    ...causesOf(selectorIn(resourceAttributes, 'fieldSelector'), `${root}.fieldSelector`, fieldRequirementErrors),
    ...causesOf(selectorIn(resourceAttributes, 'labelSelector'), `${root}.labelSelector`, (requirement, path) =>
      labelRequirementErrors(requirement, path, { unknownOperators: true }),
    ),
  ]
}

/** Text for `status.evaluationError` about selectors that cannot be parsed; empty if there are none. */
export function selectorProblems(resourceAttributes: unknown): string {
  const fields = problemOf(selectorIn(resourceAttributes, 'fieldSelector'), parseFieldSelector, isFieldRequirement)
  const labels = problemOf(selectorIn(resourceAttributes, 'labelSelector'), parseLabelSelector, isLabelRequirement)
  return [
    fields === undefined ? [] : [`${root}.fieldSelector ${fields} due to parse error`],
    labels === undefined ? [] : [`${root}.labelSelector ${labels} due to parse error`],
  ]
    .flat()
    .join('; ')
}

function selectorIn(resourceAttributes: unknown, name: string): SelectorAttributes | undefined {
  const given = isJsonObject(resourceAttributes) ? resourceAttributes[name] : undefined
  if (!isJsonObject(given)) return undefined
  const requirements = Array.isArray(given['requirements']) ? given['requirements'] : []
  return {
    raw: textOf(given['rawSelector']),
    requirements: requirements.filter(isJsonObject).map(({ key, operator, values }) => ({
      key: textOf(key),
      operator: textOf(operator),
      values: textsOf(values),
    })),
  }
}

function causesOf(
  selector: SelectorAttributes | undefined,
  path: string,
  errorsOf: (requirement: Requirement, path: string) => StatusCause[],
): StatusCause[] {
  if (selector === undefined) return []
  const { raw, requirements } = selector
  const causes = requirements.flatMap((requirement, index) =>
    errorsOf(requirement, `${path}.requirements[${String(index)}]`),
  )
  if (raw !== '' && requirements.length > 0)
    causes.unshift(fieldInvalid(`${path}.rawSelector`, raw, 'may not specified at the same time as requirements'))
  if (raw === '' && requirements.length === 0)
    causes.unshift(
      fieldRequired(`${path}.requirements`, `when ${path} is specified, requirements or rawSelector is required`),
    )
  return causes
}

function fieldRequirementErrors({ key, operator, values }: Requirement, path: string): StatusCause[] {
  const causes = labelRequirementErrors({ key: 'a', operator, values }, path, {
    unknownOperators: true,
    anyValue: true,
  })
  return key === '' ? [...causes, fieldRequired(`${path}.key`, 'must be specified')] : causes
}

function problemOf(
  selector: SelectorAttributes | undefined,
  parse: (text: string) => unknown,
  isUnderstood: (requirement: Requirement) => boolean,
): 'ignored' | 'partially ignored' | undefined {
  if (selector === undefined) return undefined
  const { raw, requirements } = selector
  if (requirements.length === 0) return parses(raw, parse) ? undefined : 'ignored'
  const understood = requirements.filter(isUnderstood).length
  return understood === requirements.length ? undefined : understood === 0 ? 'ignored' : 'partially ignored'
}

function parses(text: string, parse: (text: string) => unknown): boolean {
  try {
    parse(text)
    return true
  } catch (error) {
    if (isStatusError(error)) return false
    throw error
  }
}

/** True if a field selector can express the requirement: it has equality and inequality only. */
function isFieldRequirement({ operator, values }: Requirement): boolean {
  return (operator === 'In' || operator === 'NotIn') && values.length === 1
}

function isLabelRequirement({ key, operator, values }: Requirement): boolean {
  const known = Object.hasOwn(labelOperators, operator) ? labelOperators[operator] : undefined
  return known !== undefined && requirementError({ key, operator: known, values }) === undefined
}
