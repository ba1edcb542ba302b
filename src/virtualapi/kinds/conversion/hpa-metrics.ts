// Converts one metric of a HorizontalPodAutoscaler between its form in the annotations of autoscaling/v1 and its form
// in v2.
import { isJsonObject, type JsonObject, type JsonValue } from '#apimachinery/meta/index.ts'

type Convert = (source: JsonObject) => JsonObject

const sourceToV1: Readonly<Record<string, Convert>> = {
  resource: ({ name, target }) => {
    const { averageUtilization, averageValue } = object(target)
    return known({ name, targetAverageUtilization: averageUtilization, targetAverageValue: averageValue })
  },
  containerResource: ({ name, container, target }) => {
    const { averageUtilization, averageValue } = object(target)
    return known({ name, targetAverageUtilization: averageUtilization, targetAverageValue: averageValue, container })
  },
  pods: ({ metric, target }) => {
    const { name, selector } = object(metric)
    return known({ metricName: name, targetAverageValue: object(target)['averageValue'] ?? '0', selector })
  },
  object: ({ describedObject, metric, target }) => {
    const { name, selector } = object(metric)
    const { value, averageValue } = object(target)
    return known({ target: describedObject, metricName: name, targetValue: value ?? '0', selector, averageValue })
  },
  external: ({ metric, target }) => {
    const { name, selector } = object(metric)
    const { value, averageValue } = object(target)
    return known({ metricName: name, metricSelector: selector, targetValue: value, targetAverageValue: averageValue })
  },
}

const sourceFromV1: Readonly<Record<string, Convert>> = {
  resource: (source) => known({ name: source['name'], target: utilizationTarget(source) }),
  containerResource: (source) =>
    known({ name: source['name'], container: source['container'], target: utilizationTarget(source) }),
  pods: ({ metricName, selector, targetAverageValue }) => ({
    metric: known({ name: metricName, selector }),
    target: known({ type: 'AverageValue', averageValue: targetAverageValue }),
  }),
  object: ({ target, metricName, selector, targetValue, averageValue }) =>
    known({
      describedObject: target,
      metric: known({ name: metricName, selector }),
      target: known({ type: averageValue === undefined ? 'Value' : 'AverageValue', value: targetValue, averageValue }),
    }),
  external: ({ metricName, metricSelector, targetValue, targetAverageValue }) => ({
    metric: known({ name: metricName, selector: metricSelector }),
    target: known({
      type: targetValue === undefined ? 'AverageValue' : 'Value',
      value: targetValue,
      averageValue: targetAverageValue,
    }),
  }),
}

const statusesToV1: Readonly<Record<string, Convert>> = {
  resource: (source) => known({ name: source['name'], ...currentUtilization(source) }),
  containerResource: (source) =>
    known({ name: source['name'], ...currentUtilization(source), container: source['container'] }),
  pods: ({ metric, current }) => {
    const { name, selector } = object(metric)
    return known({ metricName: name, currentAverageValue: object(current)['averageValue'] ?? '0', selector })
  },
  object: ({ describedObject, metric, current }) => {
    const { name, selector } = object(metric)
    const { value, averageValue } = object(current)
    return known({ target: describedObject, metricName: name, currentValue: value ?? '0', selector, averageValue })
  },
  external: ({ metric, current }) => {
    const { name, selector } = object(metric)
    const { value, averageValue } = object(current)
    return known({
      metricName: name,
      metricSelector: selector,
      currentValue: value ?? '0',
      currentAverageValue: averageValue,
    })
  },
}

const statusesFromV1: Readonly<Record<string, Convert>> = {
  resource: (source) => known({ name: source['name'], current: utilizationStatus(source) }),
  containerResource: (source) =>
    known({ name: source['name'], container: source['container'], current: utilizationStatus(source) }),
  pods: ({ metricName, selector, currentAverageValue }) => ({
    metric: known({ name: metricName, selector }),
    current: known({ averageValue: currentAverageValue }),
  }),
  object: ({ target, metricName, selector, currentValue, averageValue }) =>
    known({
      describedObject: target,
      metric: known({ name: metricName, selector }),
      current: known({ value: currentValue, averageValue }),
    }),
  external: ({ metricName, metricSelector, currentValue, currentAverageValue }) => ({
    metric: known({ name: metricName, selector: metricSelector }),
    current: known({ value: currentValue, averageValue: currentAverageValue }),
  }),
}

/** spec.metrics[i], v2 -> v1. */
export const metricToV1 = converter(sourceToV1)
/** spec.metrics[i], v1 -> v2. */
export const metricFromV1 = converter(sourceFromV1)
/** status.currentMetrics[i], v2 -> v1. */
export const statusToV1 = converter(statusesToV1)
/** status.currentMetrics[i], v1 -> v2. */
export const statusFromV1 = converter(statusesFromV1)

function converter(sources: Readonly<Record<string, Convert>>): Convert {
  return (metric) =>
    Object.fromEntries(
      Object.entries(metric).map(([member, value]) => {
        const convert = sources[member]
        return [member, convert !== undefined && isJsonObject(value) ? convert(value) : value]
      }),
    )
}

function utilizationTarget({ targetAverageUtilization, targetAverageValue }: JsonObject): JsonObject {
  return known({
    type: targetAverageUtilization === undefined ? 'AverageValue' : 'Utilization',
    averageValue: targetAverageValue,
    averageUtilization: targetAverageUtilization,
  })
}

function utilizationStatus({ currentAverageUtilization, currentAverageValue }: JsonObject): JsonObject {
  return known({ averageValue: currentAverageValue, averageUtilization: currentAverageUtilization })
}

function currentUtilization({ current }: JsonObject): JsonObject {
  const { averageUtilization, averageValue } = object(current)
  return known({ currentAverageUtilization: averageUtilization, currentAverageValue: averageValue ?? '0' })
}

function object(value: JsonValue | undefined): JsonObject {
  return isJsonObject(value) ? value : {}
}

function known(members: Record<string, JsonValue | undefined>): JsonObject {
  const result: JsonObject = {}
  for (const [name, value] of Object.entries(members)) if (value !== undefined && value !== null) result[name] = value
  return result
}
