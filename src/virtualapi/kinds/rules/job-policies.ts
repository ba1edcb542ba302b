// Validation of podFailurePolicy and successPolicy of a Job.
import type {
  V1JobSpec,
  V1PodFailurePolicyOnExitCodesRequirement,
  V1PodFailurePolicyOnPodConditionsPattern,
  V1PodFailurePolicyRule,
  V1SuccessPolicyRule,
} from '@kubernetes/client-node'
import {
  fieldDuplicate,
  fieldInvalid,
  fieldNotSupported,
  fieldRequired,
  fieldTooLong,
  fieldTooMany,
} from '#apimachinery/field/index.ts'
import { goQuote } from '#apimachinery/text/index.ts'
import type { StatusCause } from '#apimachinery/status/index.ts'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'
import { invalidInternal } from '#virtualapi/kinds/resources/typed/internal-form.ts'
import { nonNegative, qualifiedName } from '#virtualapi/kinds/validation/values.ts'
import { parseIndexes } from './job-indexes.ts'

type Spec = Data<V1JobSpec>

const maxRules = 20
const maxPatterns = 20
const maxExitCodes = 255
const maxIndexesBytes = 64 * 1024
const actions = ['Count', 'FailIndex', 'FailJob', 'Ignore']
const operators = ['In', 'NotIn']
const statuses = ['False', 'True', 'Unknown']

/** `valid values: ["a" "b"]`, as Go prints a list. */
const validValues = (values: readonly string[]): string => `valid values: [${values.map(goQuote).join(' ')}]`

/** An Invalid error that prints no value. */
const invalid = (field: string, detail: string): StatusCause => ({
  reason: 'FieldValueInvalid',
  message: `Invalid value: ${detail}`,
  field,
})

export function failurePolicyCauses(path: string, spec: Spec): StatusCause[] {
  if (spec.podFailurePolicy === undefined) return []
  const rules = (spec.podFailurePolicy.rules as Data<V1PodFailurePolicyRule>[] | null) ?? []
  const { containers, initContainers } = spec.template.spec ?? { containers: [] }
  const names = new Set(
    [...((containers as typeof containers | null) ?? []), ...(initContainers ?? [])].map(({ name }) => name),
  )
  return [
    ...(rules.length > maxRules ? [fieldTooMany(`${path}.rules`, rules.length, maxRules)] : []),
    ...rules.flatMap((rule, index) => ruleCauses(`${path}.rules[${index}]`, rule, spec, names)),
  ]
}

function ruleCauses(
  path: string,
  { action, onExitCodes, onPodConditions = [] }: Data<V1PodFailurePolicyRule>,
  spec: Spec,
  names: ReadonlySet<string>,
): StatusCause[] {
  const at = `${path}.action`
  const causes: StatusCause[] = []
  if (action === '') causes.push(fieldRequired(at, validValues(actions)))
  else if (!actions.includes(action)) causes.push(fieldNotSupported(at, action, actions))
  else if (action === 'FailIndex' && spec.backoffLimitPerIndex === undefined)
    causes.push(fieldInvalid(at, action, 'requires the backoffLimitPerIndex to be set'))
  if (onExitCodes !== undefined) causes.push(...exitCodesCauses(`${path}.onExitCodes`, onExitCodes, names))
  causes.push(...conditionsCauses(`${path}.onPodConditions`, onPodConditions))
  if (onExitCodes !== undefined && onPodConditions.length > 0)
    causes.push(invalid(path, 'specifying both OnExitCodes and OnPodConditions is not supported'))
  if (onExitCodes === undefined && onPodConditions.length === 0)
    causes.push(invalid(path, 'specifying one of OnExitCodes and OnPodConditions is required'))
  return causes
}

function exitCodesCauses(
  path: string,
  requirement: Data<V1PodFailurePolicyOnExitCodesRequirement>,
  names: ReadonlySet<string>,
): StatusCause[] {
  const { operator, containerName } = requirement
  const values = (requirement.values as number[] | null) ?? []
  const at = `${path}.values`
  const causes: StatusCause[] = []
  if (operator === '') causes.push(fieldRequired(`${path}.operator`, validValues(operators)))
  else if (!operators.includes(operator)) causes.push(fieldNotSupported(`${path}.operator`, operator, operators))
  if (containerName !== undefined && !names.has(containerName))
    causes.push(
      fieldInvalid(
        `${path}.containerName`,
        containerName,
        'must be one of the container or initContainer names in the pod template',
      ),
    )
  if (values.length === 0) causes.push(fieldInvalid(at, requirement.values, 'at least one value is required'))
  else if (values.length > maxExitCodes) causes.push(fieldTooMany(at, values.length, maxExitCodes))
  const seen = new Set<number>()
  let ordered = true
  for (const [index, value] of values.entries()) {
    if (operator === 'In' && value === 0)
      causes.push(fieldInvalid(`${at}[${index}]`, value, 'must not be 0 for the In operator'))
    if (seen.has(value)) causes.push(fieldDuplicate(`${at}[${index}]`, value))
    seen.add(value)
    if ((values[index - 1] ?? value) > value) ordered = false
  }
  return ordered ? causes : [...causes, fieldInvalid(at, values, 'must be ordered')]
}

function conditionsCauses(
  path: string,
  patterns: readonly Data<V1PodFailurePolicyOnPodConditionsPattern>[],
): StatusCause[] {
  return [
    ...(patterns.length > maxPatterns ? [fieldTooMany(path, patterns.length, maxPatterns)] : []),
    ...patterns.flatMap(({ type, status = '' }, index) => {
      const at = `${path}[${index}].status`
      const causes = qualifiedName(`${path}[${index}].type`, type)
      if (status === '') return [...causes, fieldRequired(at, validValues(statuses))]
      return statuses.includes(status) ? causes : [...causes, fieldNotSupported(at, status, statuses)]
    }),
  ]
}

/** Validates successPolicy. */
export function successPolicyCauses(path: string, spec: Spec): StatusCause[] {
  const { successPolicy, completionMode, completions } = spec
  if (successPolicy === undefined) return []
  if (completionMode !== 'Indexed')
    return [invalidInternal(path, 'batch.SuccessPolicy', successPolicy, 'requires indexed completion mode')]
  const rules = (successPolicy.rules as Data<V1SuccessPolicyRule>[] | null) ?? []
  const at = `${path}.rules`
  const none = 'at least one rules must be specified when the successPolicy is specified'
  return [
    ...(rules.length === 0 ? [fieldRequired(at, none)] : []),
    ...(rules.length > maxRules ? [fieldTooMany(at, rules.length, maxRules)] : []),
    ...rules.flatMap((rule, index) => successRuleCauses(`${at}[${index}]`, rule, completions ?? 0)),
  ]
}

function successRuleCauses(
  path: string,
  { succeededIndexes: indexes, succeededCount: count }: Data<V1SuccessPolicyRule>,
  completions: number,
): StatusCause[] {
  const causes: StatusCause[] = []
  if (count === undefined && indexes === undefined)
    causes.push(fieldRequired(path, 'at least one of succeededCount or succeededIndexes must be specified'))
  let total = 0
  if (indexes !== undefined) {
    const at = `${path}.succeededIndexes`
    if (Buffer.byteLength(indexes) > maxIndexesBytes) causes.push(fieldTooLong(at, maxIndexesBytes))
    const read = parseIndexes(indexes, completions)
    if ('error' in read) causes.push(fieldInvalid(at, indexes, `error parsing succeededIndexes: ${read.error}`))
    else total = read.total
  }
  if (count === undefined) return causes
  const at = `${path}.succeededCount`
  causes.push(...nonNegative(at, count))
  const atMost = (most: number, what: string): void => {
    if (count > most) causes.push(fieldInvalid(at, count, `must be less than or equal to ${most} (${what})`))
  }
  atMost(completions, 'the number of specified completions')
  if (indexes !== undefined) atMost(total, 'the number of indexes in the specified succeededIndexes field')
  return causes
}
