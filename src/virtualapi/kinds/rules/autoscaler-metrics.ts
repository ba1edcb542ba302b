// Validation of the metrics of HorizontalPodAutoscalers: each has one source and a target.
import type {
  V2ContainerResourceMetricSource,
  V2CrossVersionObjectReference,
  V2ExternalMetricSource,
  V2HorizontalPodAutoscalerSpec,
  V2MetricIdentifier,
  V2MetricTarget,
  V2ObjectMetricSource,
  V2PodsMetricSource,
  V2ResourceMetricSource,
} from '@kubernetes/client-node'
import { quantityOf } from '#apimachinery/quantity/index.ts'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'
import { label, pathSegment } from '#virtualapi/kinds/validation/basic-rules.ts'
import { containerResource } from '#virtualapi/kinds/validation/resource-names.ts'
import { all, fields, must, oneOf, required, type Rule } from '#virtualapi/kinds/validation/vocabulary.ts'

export type Metric = NonNullable<Data<V2HorizontalPodAutoscalerSpec>['metrics']>[number]
type Target = Data<V2MetricTarget>

const types = ['ContainerResource', 'External', 'Object', 'Pods', 'Resource']
const targetTypes = ['Utilization', 'Value', 'AverageValue']

const amount = must((text: string) => quantityOf(text).nanos > 0n, 'must be positive')
const target = all<Target>(
  ({ type }, report) => {
    if (type === '') report.required('type', 'must specify a metric target type')
    if (!targetTypes.includes(type)) report.invalid('type', type, 'must be either Utilization, Value, or AverageValue')
  },
  fields<Target>({
    value: amount,
    averageValue: amount,
    averageUtilization: must((percent: number) => percent >= 1, 'must be greater than 0'),
  }),
)

/** A target with a value or an average value. */
const someTarget = (detail: string): Rule<Target> =>
  all<Target>(target, ({ value, averageValue }, report) => {
    if (value === undefined && averageValue === undefined) report.required('averageValue', detail)
  })

/** A target of a resource metric: an average amount or an average utilization. */
const resourceTarget = all<Target>(target, ({ averageUtilization, averageValue }, report) => {
  if (averageUtilization === undefined && averageValue === undefined)
    report.required('averageUtilization', 'must set either a target raw value or a target utilization')
  if (averageUtilization !== undefined && averageValue !== undefined)
    report.forbidden('averageValue', 'may not set both a target raw value and a target utilization')
})

const metricId = fields<Data<V2MetricIdentifier>>({ name: required(pathSegment, 'must specify a metric name') })
const noResource = 'must specify a resource name'

/** Rules of a reference to an object, which depend on the rest of the autoscaler. */
export interface MetricContext {
  readonly objectReference: Rule<Data<V2CrossVersionObjectReference>>
}

// In upstream's order: the first source that is set is validated.
const sources = {
  object: fields<Data<V2ObjectMetricSource>, MetricContext>({
    describedObject: (object, report, { objectReference }) => report.check(objectReference, object),
    metric: metricId,
    target: someTarget('must set either a target value or averageValue'),
  }),
  external: fields<Data<V2ExternalMetricSource>>({
    metric: metricId,
    target: all<Target>(
      someTarget('must set either a target value for metric or a per-pod target'),
      ({ value, averageValue }, report) => {
        if (value !== undefined && averageValue !== undefined)
          report.forbidden('value', 'may not set both a target value for metric and a per-pod target')
      },
    ),
  }),
  pods: fields<Data<V2PodsMetricSource>>({
    metric: metricId,
    target: all<Target>(target, ({ averageValue }, report) => {
      if (averageValue === undefined) report.required('averageValue', 'must specify a positive target averageValue')
    }),
  }),
  resource: fields<Data<V2ResourceMetricSource>>({
    name: required(() => undefined, noResource),
    target: resourceTarget,
  }),
  containerResource: fields<Data<V2ContainerResourceMetricSource>>({
    name: required(containerResource, noResource),
    container: required(label, 'must specify a container'),
    target: resourceTarget,
  }),
}
type Source = keyof typeof sources
const rows = Object.entries(sources) as [Source, Rule<unknown, MetricContext>][]

const knownType = oneOf(types)

export const metricRule: Rule<Metric, MetricContext> = (metric, report, context) => {
  const { type } = metric
  const present = rows.filter(([source]) => metric[source] !== undefined)
  const expected = rows.find(([source]) => source.toLowerCase() === type.toLowerCase() && types.includes(type))?.[0]
  if (type === '') report.required('type', 'must specify a metric source type')
  report.at('type', knownType, type)
  const [first] = present
  if (first !== undefined) report.at(first[0], first[1], metric[first[0]], context)
  if (expected !== undefined && metric[expected] === undefined)
    report.required(expected, 'must populate information for the given metric source')
  // As upstream, which reports this error twice.
  report.at('type', knownType, type)
  if (present.length < 2) return
  for (const [source] of present)
    if (source !== expected) report.forbidden(source, 'must populate the given metric source only')
}
