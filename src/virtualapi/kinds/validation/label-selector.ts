// Validation and matching of metav1.LabelSelector.
import type { V1LabelSelector } from '@kubernetes/client-node'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'
import { labels, labelValue, qualifiedName } from './basic-rules.ts'
import { all, causesOf, each, fields, forbidden, given, nonEmpty, optional, type Rule } from './vocabulary.ts'

export type LabelSelector = Data<V1LabelSelector>

interface Requirement {
  readonly key: string
  readonly operator: string
  readonly values?: readonly string[]
}
type Operators = Readonly<Record<string, Rule<Requirement['values']>>>

export const noOperator = 'not a valid selector operator'
const some = nonEmpty("must be specified when `operator` is 'In' or 'NotIn'")
const none = given(forbidden("may not be specified when `operator` is 'Exists' or 'DoesNotExist'"))

/** The values that each operator of a selector needs. */
export const operators: Operators = { In: some, NotIn: some, Exists: none, DoesNotExist: none }

/** A requirement with one of the operators `known`, and with the values that this operator needs. */
export function operatorOf(known: Operators): Rule<Requirement> {
  return ({ operator, values }, report) => {
    const rule = Object.hasOwn(known, operator) ? known[operator] : undefined
    if (rule === undefined) report.invalid('operator', operator, noOperator)
    else report.at('values', rule, values)
  }
}

const requirement = all<Requirement>(
  operatorOf(operators),
  fields<Requirement>({ key: qualifiedName, values: each(labelValue) }),
)

export const labelSelector = optional(
  fields<LabelSelector>({ matchLabels: labels, matchExpressions: each(requirement) }),
)

export function isValidSelector(selector: LabelSelector | null | undefined): boolean {
  return causesOf(labelSelector, '', selector).length === 0
}

/** True if the selector selects all objects. */
export function isEmptySelector(selector: LabelSelector): boolean {
  return Object.keys(selector.matchLabels ?? {}).length === 0 && (selector.matchExpressions?.length ?? 0) === 0
}

/** True if a valid selector selects these labels. */
export function selects(selector: LabelSelector, of: Readonly<Record<string, string>> = {}): boolean {
  for (const [key, value] of Object.entries(selector.matchLabels ?? {})) if (of[key] !== value) return false
  return (selector.matchExpressions ?? []).every(({ key, operator, values }) => {
    const value = Object.hasOwn(of, key) ? of[key] : undefined
    if (operator === 'Exists') return value !== undefined
    if (operator === 'DoesNotExist') return value === undefined
    const listed = value !== undefined && (values ?? []).includes(value)
    return operator === 'In' ? listed : !listed
  })
}
