// PriorityLevelConfigurations: concurrency limits and queues of priority levels.
import { isDeepStrictEqual } from 'node:util'
import type {
  V1ExemptPriorityLevelConfiguration,
  V1LimitedPriorityLevelConfiguration,
  V1LimitResponse,
  V1PriorityLevelConfigurationSpec,
  V1QueuingConfiguration,
} from '@kubernetes/client-node'
import type { JsonObject, KubeObject } from '#apimachinery/meta/index.ts'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'
import {
  between,
  fields,
  forbidden,
  must,
  present,
  validating,
  validatingChange,
  type ObjectOf,
  type Rule,
} from '#virtualapi/kinds/validation/vocabulary.ts'
import { flowStatusCauses, typedConditions } from './flow-conditions.ts'
import type { KindRules } from './kind-rules.ts'

type Spec = Data<V1PriorityLevelConfigurationSpec>
type Level = ObjectOf<Spec> & KubeObject

const preservesZero = 'flowcontrol.k8s.io/concurrency-shares-defaults-to-zero'
const mostQueues = 10_000_000
const mostHashBits = 60

/**
 * The built-in priority levels "exempt" and "catch-all" keep their values, except the fields in spec.exempt of
 * "exempt".
 */
const mandatory: Rule<KubeObject, KubeObject> = (object, report, old) => {
  const { name = '' } = object.metadata
  if (name !== 'exempt' && name !== 'catch-all') return
  const spec = object['spec'] as JsonObject
  const before = old['spec'] as JsonObject
  const { exempt: _, ...fixed } = before
  const allowed = name === 'exempt' ? { ...fixed, ...('exempt' in spec ? { exempt: spec['exempt'] } : {}) } : before
  if (isDeepStrictEqual(spec, allowed)) return
  const except = name === 'exempt' ? " except the 'spec.exempt' field" : ''
  const detail = `spec of '${name}'${except} must equal the fixed value`
  report.invalidStruct('spec', 'flowcontrol.PriorityLevelConfigurationSpec', spec, detail)
}

const queues: Rule<Data<V1QueuingConfiguration>> = (queuing, report) => {
  const { queueLengthLimit = 0, queues: count = 0, handSize = 0 } = queuing
  if (queueLengthLimit <= 0) report.invalid('queueLengthLimit', queueLengthLimit, 'must be positive')
  if (count <= 0) report.invalid('queues', count, 'must be positive')
  else if (count > mostQueues) report.invalid('queues', count, `must not be greater than ${mostQueues}`)
  if (handSize <= 0) report.invalid('handSize', handSize, 'must be positive')
  else if (handSize > count) report.invalid('handSize', handSize, `should not be greater than queues (${count})`)
  else if (Math.ceil(Math.log2(count) * handSize) > mostHashBits)
    report.invalid(
      'handSize',
      handSize,
      `required entropy bits of deckSize ${count} and handSize ${handSize} should not be greater than ${mostHashBits}`,
    )
}

const forQueue = present(queues, 'must not be empty if limited.limitResponse.type is Limited')
const forReject = forbidden('must be nil if limited.limitResponse.type is not Limited')

const response: Rule<Data<V1LimitResponse> | undefined> = (given, report) => {
  const { type = '', queuing } = given ?? {}
  if (type === 'Reject') report.at('queuing', forReject, queuing)
  else if (type === 'Queue') report.at('queuing', forQueue, queuing)
  else report.notSupported('type', type, ['Queue', 'Reject'])
}

const shares = must((count: number) => count >= 0, 'must be a non-negative integer')
const percent = between(0, 100)

const exemptRule = fields<Data<V1ExemptPriorityLevelConfiguration>>({
  nominalConcurrencyShares: shares,
  lendablePercent: percent,
})
const limitedRule = present(
  fields<Data<V1LimitedPriorityLevelConfiguration>>({
    nominalConcurrencyShares: shares,
    limitResponse: response,
    lendablePercent: percent,
    borrowingLimitPercent: must((most: number) => most >= 0, 'if specified, must be a non-negative integer'),
  }),
  'must not be empty when type is Limited',
)
const notLimited = forbidden('must be nil if the type is not Limited')
const notExempt = forbidden('must be nil if the type is Limited')

const specRule: Rule<Spec, { readonly name: string | undefined }> = ({ type, limited, exempt }, report, { name }) => {
  if ((name === 'exempt') !== (type === 'Exempt'))
    report.invalid('type', type, "must be 'Exempt' if and only if `name` is 'exempt'")
  if (type === 'Exempt') {
    report.at('limited', notLimited, limited)
    report.at('exempt', exemptRule, exempt ?? {})
  } else if (type === 'Limited') {
    report.at('exempt', notExempt, exempt)
    report.at('limited', limitedRule, limited)
  } else report.notSupported('type', type, ['Exempt', 'Limited'])
}

export const priorityLevelRules: KindRules = {
  validate: validating<Level>((level, report) => {
    const { name, annotations = {} } = level.metadata
    if (preservesZero in annotations)
      report.forbidden('metadata.annotations', `annotation '${preservesZero}' is forbidden`)
    report.at('spec', specRule, level.spec, { name })
    report.check(typedConditions, level)
  }),
  validateChange: validatingChange(mandatory),
  validateSubresource: flowStatusCauses,
}
