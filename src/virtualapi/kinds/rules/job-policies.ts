// Validation of podFailurePolicy and successPolicy of a Job.
import type {
  V1JobSpec,
  V1PodFailurePolicyOnExitCodesRequirement,
  V1PodFailurePolicyOnPodConditionsPattern,
  V1PodFailurePolicyRule,
  V1SuccessPolicyRule,
} from '@kubernetes/client-node'
import { goQuote } from '#apimachinery/text/index.ts'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'
import { nonNegative, qualifiedName } from '#virtualapi/kinds/validation/basic-rules.ts'
import {
  all,
  each,
  fields,
  firstOf,
  maxBytes,
  maxItems,
  nonEmpty,
  oneOf,
  optional,
  required,
  unique,
  type Rule,
} from '#virtualapi/kinds/validation/vocabulary.ts'
import { parseIndexes } from './job-indexes.ts'

type Spec = Data<V1JobSpec>
type FailureRule = Data<V1PodFailurePolicyRule>
type ExitCodes = Data<V1PodFailurePolicyOnExitCodesRequirement>

const maxRules = maxItems(20)

/** One of these words. If there is none, the error lists them as Go prints a list. */
const requiredWord = (words: readonly string[]): Rule<string | undefined> =>
  required(oneOf(words), `valid values: [${words.map(goQuote).join(' ')}]`)

interface FailureContext {
  readonly spec: Spec
  /** Names of the containers in the template. */
  readonly names: ReadonlySet<string>
}

const exitCodes = all<ExitCodes, FailureContext>(
  fields<ExitCodes, FailureContext>({
    operator: requiredWord(['In', 'NotIn']),
    containerName: (name, report, { names }) => {
      if (name !== undefined && !names.has(name))
        report.invalid('', name, 'must be one of the container or initContainer names in the pod template')
    },
  }),
  ({ operator, ...requirement }, report) => {
    const values = requirement.values as number[] | null
    if (!values?.length) {
      report.invalid('values', values, 'at least one value is required')
      return
    }
    report.at('values', mostExitCodes, values)
    report.at('values', operator === 'In' ? exitCodesIn : distinctExitCodes, values)
    if (values.some((value, index) => (values[index - 1] ?? value) > value))
      report.invalid('values', values, 'must be ordered')
  },
)
const mostExitCodes = maxItems(255)
const distinct = unique<number>()
const distinctExitCodes = each(distinct)
const exitCodesIn = each<number>((value, report) => {
  if (value === 0) report.invalid('', value, 'must not be 0 for the In operator')
  report.check(distinct, value)
})

const failureRule = all<FailureRule, FailureContext>(
  fields<FailureRule, FailureContext>({
    action: firstOf<string, FailureContext>(
      requiredWord(['Count', 'FailIndex', 'FailJob', 'Ignore']),
      (action, report, { spec }) => {
        if (action === 'FailIndex' && spec.backoffLimitPerIndex === undefined)
          report.invalid('', action, 'requires the backoffLimitPerIndex to be set')
      },
    ),
    onExitCodes: optional(exitCodes),
    onPodConditions: all(
      maxItems(20),
      each(
        fields<Data<V1PodFailurePolicyOnPodConditionsPattern>>({
          type: qualifiedName,
          status: requiredWord(['False', 'True', 'Unknown']),
        }),
      ),
    ),
  }),
  ({ onExitCodes, onPodConditions }, report) => {
    if (onExitCodes !== undefined && onPodConditions?.length)
      report.invalidText('', '', 'specifying both OnExitCodes and OnPodConditions is not supported')
    if (onExitCodes === undefined && !onPodConditions?.length)
      report.invalidText('', '', 'specifying one of OnExitCodes and OnPodConditions is required')
  },
)
const failureRules = all<readonly FailureRule[] | null, FailureContext>(maxRules, each(failureRule))

/** The podFailurePolicy of a Job. */
export const failurePolicy: Rule<Spec> = (spec, report) => {
  if (spec.podFailurePolicy === undefined) return
  const { containers, initContainers } = spec.template.spec ?? { containers: [] }
  const names = new Set(
    [...((containers as typeof containers | null) ?? []), ...(initContainers ?? [])].map(({ name }) => name),
  )
  report.at('podFailurePolicy.rules', failureRules, spec.podFailurePolicy.rules, { spec, names })
}

/** A rule of a Job with so many completions. */
const successRule: Rule<Data<V1SuccessPolicyRule>, number> = (rule, report, completions) => {
  const { succeededIndexes: indexes, succeededCount: count } = rule
  if (count === undefined && indexes === undefined)
    report.required('', 'at least one of succeededCount or succeededIndexes must be specified')
  let total = 0
  if (indexes !== undefined) {
    report.at('succeededIndexes', longIndexes, indexes)
    const read = parseIndexes(indexes, completions)
    if ('error' in read) report.invalid('succeededIndexes', indexes, `error parsing succeededIndexes: ${read.error}`)
    else total = read.total
  }
  if (count === undefined) return
  report.at('succeededCount', nonNegative, count)
  const atMost = (most: number, what: string): void => {
    if (count > most) report.invalid('succeededCount', count, `must be less than or equal to ${most} (${what})`)
  }
  atMost(completions, 'the number of specified completions')
  if (indexes !== undefined) atMost(total, 'the number of indexes in the specified succeededIndexes field')
}
const longIndexes = maxBytes(64 * 1024)
const successRules = all<readonly Data<V1SuccessPolicyRule>[] | null, number>(
  nonEmpty('at least one rules must be specified when the successPolicy is specified'),
  maxRules,
  each(successRule),
)

/** The successPolicy of a Job. */
export const successPolicy: Rule<Spec> = ({ successPolicy: policy, completionMode, completions = 0 }, report) => {
  if (policy === undefined) return
  if (completionMode === 'Indexed') report.at('successPolicy.rules', successRules, policy.rules, completions)
  else report.invalidStruct('successPolicy', 'batch.SuccessPolicy', policy, 'requires indexed completion mode')
}
