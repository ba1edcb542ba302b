// PriorityLevelConfigurations: concurrency limits and queues of priority levels.
import { isDeepStrictEqual } from 'node:util'
import type {
  V1LimitedPriorityLevelConfiguration,
  V1LimitResponse,
  V1PriorityLevelConfigurationSpec,
  V1QueuingConfiguration,
} from '@kubernetes/client-node'
import { fieldForbidden, fieldInvalid, fieldNotSupported, fieldRequired } from '#apimachinery/field/index.ts'
import type { JsonObject, KubeObject } from '#apimachinery/meta/index.ts'
import type { StatusCause } from '#apimachinery/status/index.ts'
import type { KindRules } from './kind-rules.ts'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'
import { invalidInternal } from '#virtualapi/kinds/resources/typed/internal-form.ts'
import { typedConditionCauses } from './flow-conditions.ts'

type Spec = Data<V1PriorityLevelConfigurationSpec>
type Limits = Data<V1LimitedPriorityLevelConfiguration>

const preservesZero = 'flowcontrol.k8s.io/concurrency-shares-defaults-to-zero'
const mostQueues = 10_000_000
const mostHashBits = 60

export const priorityLevelRules: KindRules = {
  validate(object) {
    const { name, annotations = {} } = object.metadata
    return [
      ...(preservesZero in annotations
        ? [fieldForbidden('metadata.annotations', `annotation '${preservesZero}' is forbidden`)]
        : []),
      ...specCauses('spec', name, object['spec'] as Spec),
      ...typedConditionCauses(object),
    ]
  },
  validateChange: mandatoryCauses,
  validateSubresource: (object, _old, subresource) => (subresource === 'status' ? typedConditionCauses(object) : []),
}

/**
 * The built-in priority levels "exempt" and "catch-all" keep their values, except the fields in spec.exempt of
 * "exempt".
 */
function mandatoryCauses(object: KubeObject, old: KubeObject): StatusCause[] {
  const { name = '' } = object.metadata
  if (name !== 'exempt' && name !== 'catch-all') return []
  const spec = object['spec'] as JsonObject
  const before = old['spec'] as JsonObject
  const { exempt: _, ...fixed } = before
  const allowed = name === 'exempt' ? { ...fixed, ...('exempt' in spec ? { exempt: spec['exempt'] } : {}) } : before
  if (isDeepStrictEqual(spec, allowed)) return []
  const except = name === 'exempt' ? " except the 'spec.exempt' field" : ''
  return [
    invalidInternal(
      'spec',
      'flowcontrol.PriorityLevelConfigurationSpec',
      spec,
      `spec of '${name}'${except} must equal the fixed value`,
    ),
  ]
}

function specCauses(path: string, name: string | undefined, { type, limited, exempt }: Spec): StatusCause[] {
  const causes =
    (name === 'exempt') === (type === 'Exempt')
      ? []
      : [fieldInvalid(`${path}.type`, type, "must be 'Exempt' if and only if `name` is 'exempt'")]
  if (type === 'Exempt') {
    if (limited !== undefined) causes.push(fieldForbidden(`${path}.limited`, 'must be nil if the type is not Limited'))
    const { nominalConcurrencyShares = 0, lendablePercent = 0 } = exempt ?? {}
    return [
      ...causes,
      ...shareCauses(`${path}.exempt`, nominalConcurrencyShares),
      ...lendCauses(`${path}.exempt`, lendablePercent),
    ]
  }
  if (type !== 'Limited') return [...causes, fieldNotSupported(`${path}.type`, type, ['Exempt', 'Limited'])]
  if (exempt !== undefined) causes.push(fieldForbidden(`${path}.exempt`, 'must be nil if the type is Limited'))
  return limited === undefined
    ? [...causes, fieldRequired(`${path}.limited`, 'must not be empty when type is Limited')]
    : [...causes, ...limitCauses(`${path}.limited`, limited)]
}

function shareCauses(path: string, shares: number): StatusCause[] {
  return shares < 0 ? [fieldInvalid(`${path}.nominalConcurrencyShares`, shares, 'must be a non-negative integer')] : []
}

function lendCauses(path: string, percent: number): StatusCause[] {
  return percent < 0 || percent > 100
    ? [fieldInvalid(`${path}.lendablePercent`, percent, 'must be between 0 and 100, inclusive')]
    : []
}

function limitCauses(path: string, limits: Limits): StatusCause[] {
  const { nominalConcurrencyShares = 0, lendablePercent = 0, borrowingLimitPercent: borrowed = 0 } = limits
  return [
    ...shareCauses(path, nominalConcurrencyShares),
    ...responseCauses(`${path}.limitResponse`, limits.limitResponse),
    ...lendCauses(path, lendablePercent),
    ...(borrowed < 0
      ? [fieldInvalid(`${path}.borrowingLimitPercent`, borrowed, 'if specified, must be a non-negative integer')]
      : []),
  ]
}

function responseCauses(path: string, response: Data<V1LimitResponse> | undefined): StatusCause[] {
  const { type = '', queuing } = response ?? {}
  if (type === 'Reject')
    return queuing === undefined
      ? []
      : [fieldForbidden(`${path}.queuing`, 'must be nil if limited.limitResponse.type is not Limited')]
  if (type !== 'Queue') return [fieldNotSupported(`${path}.type`, type, ['Queue', 'Reject'])]
  return queuing === undefined
    ? [fieldRequired(`${path}.queuing`, 'must not be empty if limited.limitResponse.type is Limited')]
    : queueCauses(`${path}.queuing`, queuing)
}

function queueCauses(path: string, queuing: Data<V1QueuingConfiguration>): StatusCause[] {
  const { queueLengthLimit = 0, queues = 0, handSize = 0 } = queuing
  const bits = Math.ceil(Math.log2(queues) * handSize)
  return [
    ...(queueLengthLimit <= 0 ? [fieldInvalid(`${path}.queueLengthLimit`, queueLengthLimit, 'must be positive')] : []),
    ...(queues <= 0
      ? [fieldInvalid(`${path}.queues`, queues, 'must be positive')]
      : queues > mostQueues
        ? [fieldInvalid(`${path}.queues`, queues, `must not be greater than ${mostQueues}`)]
        : []),
    ...(handSize <= 0
      ? [fieldInvalid(`${path}.handSize`, handSize, 'must be positive')]
      : handSize > queues
        ? [fieldInvalid(`${path}.handSize`, handSize, `should not be greater than queues (${queues})`)]
        : bits > mostHashBits
          ? [
              fieldInvalid(
                `${path}.handSize`,
                handSize,
                `required entropy bits of deckSize ${queues} and handSize ${handSize} should not be greater than ${mostHashBits}`,
              ),
            ]
          : []),
  ]
}
