// Validation of the metrics of HorizontalPodAutoscalers: each has one source and a target.
import type {
  V2CrossVersionObjectReference,
  V2HorizontalPodAutoscalerSpec,
  V2MetricIdentifier,
  V2MetricTarget,
} from '@kubernetes/client-node'
import { fieldForbidden, fieldInvalid, fieldNotSupported, fieldRequired } from '#apimachinery/field/index.ts'
import type { StatusCause } from '#apimachinery/status/index.ts'
import { pathSegmentName } from '#virtualapi/kinds/resources/names.ts'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'
import { quantityOf } from '#apimachinery/quantity/index.ts'
import { containerResourceCauses } from '#virtualapi/kinds/validation/resource-names.ts'
import { label } from '#virtualapi/kinds/validation/values.ts'

type Metric = NonNullable<Data<V2HorizontalPodAutoscalerSpec>['metrics']>[number]
type Target = Data<V2MetricTarget>
type ReferenceCheck = (path: string, reference: Data<V2CrossVersionObjectReference>) => StatusCause[]

const types = ['ContainerResource', 'External', 'Object', 'Pods', 'Resource']
const targetTypes = ['Utilization', 'Value', 'AverageValue']
// In upstream's order: the first source that is set is validated.
const sources = ['object', 'external', 'pods', 'resource', 'containerResource'] as const
const missing = 'must populate information for the given metric source'

export function metricCauses(path: string, metric: Metric, referenceCauses: ReferenceCheck): StatusCause[] {
  const { type } = metric
  const causes = type === '' ? [fieldRequired(`${path}.type`, 'must specify a metric source type')] : []
  const unknown = types.includes(type) ? [] : [fieldNotSupported(`${path}.type`, type, types)]
  const present = sources.filter((source) => metric[source] !== undefined)
  const expected = sources.find((source) => source.toLowerCase() === type.toLowerCase() && types.includes(type))
  const [first, ...others] = present
  return [
    ...causes,
    ...unknown,
    ...(first === undefined ? [] : sourceCauses(path, first, metric, referenceCauses)),
    ...(expected !== undefined && metric[expected] === undefined
      ? [fieldRequired(`${path}.${expected}`, missing)]
      : []),
    // As upstream, which reports this error twice.
    ...unknown,
    ...(others.length === 0
      ? []
      : present
          .filter((source) => source !== expected)
          .map((source) => fieldForbidden(`${path}.${source}`, 'must populate the given metric source only'))),
  ]
}

function sourceCauses(
  path: string,
  source: (typeof sources)[number],
  metric: Metric,
  referenceCauses: ReferenceCheck,
): StatusCause[] {
  const at = `${path}.${source}`
  const { object, external, pods, resource, containerResource } = metric
  if (source === 'object' && object !== undefined)
    return [
      ...referenceCauses(`${at}.describedObject`, object.describedObject),
      ...metricNameCauses(`${at}.metric`, object.metric),
      ...targetCauses(`${at}.target`, object.target),
      ...neitherCauses(`${at}.target`, object.target, 'must set either a target value or averageValue'),
    ]
  if (source === 'external' && external !== undefined)
    return [
      ...metricNameCauses(`${at}.metric`, external.metric),
      ...targetCauses(`${at}.target`, external.target),
      ...neitherCauses(
        `${at}.target`,
        external.target,
        'must set either a target value for metric or a per-pod target',
      ),
      ...(external.target.value !== undefined && external.target.averageValue !== undefined
        ? [fieldForbidden(`${at}.target.value`, 'may not set both a target value for metric and a per-pod target')]
        : []),
    ]
  if (source === 'pods' && pods !== undefined)
    return [
      ...metricNameCauses(`${at}.metric`, pods.metric),
      ...targetCauses(`${at}.target`, pods.target),
      ...(pods.target.averageValue === undefined
        ? [fieldRequired(`${at}.target.averageValue`, 'must specify a positive target averageValue')]
        : []),
    ]
  if (source === 'resource' && resource !== undefined)
    return [...resourceNameCauses(at, resource.name), ...amountCauses(`${at}.target`, resource.target)]
  if (containerResource === undefined) return []
  const { name, container, target } = containerResource
  return [
    ...resourceNameCauses(at, name),
    ...(name === '' ? [] : containerResourceCauses(`${at}.name`, name)),
    ...(container === ''
      ? [fieldRequired(`${at}.container`, 'must specify a container')]
      : label(`${at}.container`, container)),
    ...amountCauses(`${at}.target`, target),
  ]
}

function resourceNameCauses(path: string, name: string): StatusCause[] {
  return name === '' ? [fieldRequired(`${path}.name`, 'must specify a resource name')] : []
}

function metricNameCauses(path: string, { name }: Data<V2MetricIdentifier>): StatusCause[] {
  if (name === '') return [fieldRequired(`${path}.name`, 'must specify a metric name')]
  return pathSegmentName(name, { prefix: false }).map((text) => fieldInvalid(`${path}.name`, name, text))
}

function neitherCauses(path: string, { value, averageValue }: Target, detail: string): StatusCause[] {
  return value === undefined && averageValue === undefined ? [fieldRequired(`${path}.averageValue`, detail)] : []
}

/** Validates a resource metric target: an average amount or an average utilization. */
function amountCauses(path: string, target: Target): StatusCause[] {
  const { averageUtilization, averageValue } = target
  const causes = targetCauses(path, target)
  if (averageUtilization === undefined && averageValue === undefined)
    causes.push(
      fieldRequired(`${path}.averageUtilization`, 'must set either a target raw value or a target utilization'),
    )
  if (averageUtilization !== undefined && averageValue !== undefined)
    causes.push(fieldForbidden(`${path}.averageValue`, 'may not set both a target raw value and a target utilization'))
  return causes
}

function targetCauses(path: string, target: Target): StatusCause[] {
  const { type, averageUtilization } = target
  const causes: StatusCause[] = []
  if (type === '') causes.push(fieldRequired(`${path}.type`, 'must specify a metric target type'))
  if (!targetTypes.includes(type))
    causes.push(fieldInvalid(`${path}.type`, type, 'must be either Utilization, Value, or AverageValue'))
  for (const member of ['value', 'averageValue'] as const) {
    const text = target[member]
    if (text !== undefined && quantityOf(text).nanos <= 0n)
      causes.push(fieldInvalid(`${path}.${member}`, text, 'must be positive'))
  }
  if (averageUtilization !== undefined && averageUtilization < 1)
    causes.push(fieldInvalid(`${path}.averageUtilization`, averageUtilization, 'must be greater than 0'))
  return causes
}
