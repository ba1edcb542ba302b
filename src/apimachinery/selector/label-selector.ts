// Label selectors, which select the objects of a list, a watch or a controller.
import {
  fieldForbidden,
  fieldInvalid,
  fieldRequired,
  labelValueErrors,
  qualifiedNameErrors,
} from '#apimachinery/field/index.ts'
import { goQuote } from '#apimachinery/text/index.ts'
import { badRequest, type StatusCause } from '#apimachinery/status/index.ts'
import {
  compileRequirement,
  holds,
  requirementError,
  requirementText,
  type LabelRequirement,
  type Labels,
} from './label-requirement.ts'

/** A compiled selector. Immutable; may be shared. */
export interface LabelSelector {
  /** Sorted by key. */
  readonly requirements: readonly LabelRequirement[]
  /** True if it matches every object. */
  readonly matchesEverything: boolean
  matches(labels: Labels | undefined): boolean
  /** The text form, which parses to the same selector. */
  toString(): string
}

/** metav1.LabelSelector, as objects carry it. */
export interface LabelSelectorSource {
  matchLabels?: Record<string, string>
  matchExpressions?: { key: string; operator: string; values?: string[] }[]
}

const noLabels: Labels = {}

/** Matches every object. */
export const everything: LabelSelector = {
  requirements: [],
  matchesEverything: true,
  matches: () => true,
  toString: () => '',
}
/** Matches no object, as an absent metav1.LabelSelector. */
export const nothing: LabelSelector = {
  requirements: [],
  matchesEverything: false,
  matches: () => false,
  toString: () => '',
}

/** The selector with these requirements. The caller has validated them. */
export function selectorOf(requirements: readonly LabelRequirement[]): LabelSelector {
  if (requirements.length === 0) return everything
  const ordered = [...requirements].sort((a, b) => (a.key < b.key ? -1 : a.key > b.key ? 1 : 0))
  const tests = ordered.map(testOf(ordered.length <= maxCompiled))
  const [first] = tests
  const matches =
    tests.length === 1 && typeof first === 'function'
      ? (labels: Labels | undefined) => first(labels ?? noLabels)
      : (labels: Labels | undefined) => {
          const present = labels ?? noLabels
          for (const test of tests)
            if (!(typeof test === 'function' ? test(present) : holds(test, present))) return false
          return true
        }
  return {
    requirements: ordered,
    matchesEverything: false,
    matches,
    toString: () => ordered.map(requirementText).join(','),
  }
}

/**
 * Maximum number of requirements of a selector that are all compiled. In a larger selector, only requirements with many
 * values are compiled.
 */
const maxCompiled = 32
const fewValues = 8

type Test = ReturnType<typeof compileRequirement> | LabelRequirement

const testOf =
  (compilesAll: boolean) =>
  (requirement: LabelRequirement): Test =>
    compilesAll || requirement.values.length > fewValues ? compileRequirement(requirement) : requirement

const operatorOf: Readonly<Record<string, LabelRequirement['operator']>> = {
  In: 'in',
  NotIn: 'notin',
  Exists: 'exists',
  DoesNotExist: '!',
}

/** Compiles the selector of an object. An absent one matches nothing, an empty one everything. Throws BadRequest. */
export function selectorFromObject(source: LabelSelectorSource | undefined): LabelSelector {
  if (source === undefined) return nothing
  const requirements: LabelRequirement[] = Object.entries(source.matchLabels ?? {}).map(([key, value]) => {
    return { key, operator: '=', values: [value] }
  })
  for (const { key, operator, values = [] } of source.matchExpressions ?? []) {
    const known = Object.hasOwn(operatorOf, operator) ? operatorOf[operator] : undefined
    if (known === undefined) throw badRequest(`${goQuote(operator)} is not a valid label selector operator`)
    requirements.push({ key, operator: known, values: [...values] })
  }
  for (const requirement of requirements) {
    const error = requirementError(requirement)
    if (error !== undefined) throw badRequest(error)
  }
  return selectorOf(requirements)
}

/** The errors of a metav1.LabelSelectorRequirement at `field`; empty if it is valid. */
export function labelRequirementErrors(
  { key, operator, values }: { readonly key: string; readonly operator: string; readonly values: readonly string[] },
  field: string,
  { unknownOperators = false, anyValue = false }: { unknownOperators?: boolean; anyValue?: boolean } = {},
): StatusCause[] {
  const causes: StatusCause[] = []
  if (operator === 'In' || operator === 'NotIn') {
    if (values.length === 0)
      causes.push(fieldRequired(`${field}.values`, "must be specified when `operator` is 'In' or 'NotIn'"))
  } else if (operator === 'Exists' || operator === 'DoesNotExist') {
    if (values.length > 0)
      causes.push(
        fieldForbidden(`${field}.values`, "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"),
      )
  } else if (!unknownOperators)
    causes.push(fieldInvalid(`${field}.operator`, operator, 'not a valid selector operator'))
  for (const text of qualifiedNameErrors(key)) causes.push(fieldInvalid(`${field}.key`, key, text))
  if (anyValue) return causes
  for (const [j, value] of values.entries())
    for (const text of labelValueErrors(value)) causes.push(fieldInvalid(`${field}.values[${String(j)}]`, value, text))
  return causes
}
