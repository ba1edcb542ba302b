// HorizontalPodAutoscalers are stored as autoscaling/v2. v1 has only the CPU metric. Other fields go into annotations,
// so that nothing is lost when a v1 client reads an object and writes it back.
import { parseJsonText } from '#apimachinery/json/index.ts'
import { isJsonObject, type JsonObject, type JsonValue, type KubeObject } from '#apimachinery/meta/index.ts'
import { internalForm } from '#virtualapi/kinds/resources/typed/internal-form.ts'
import { metricFromV1, metricToV1, statusFromV1, statusToV1 } from './hpa-metrics.ts'

const annotation = {
  metrics: 'autoscaling.alpha.kubernetes.io/metrics',
  currentMetrics: 'autoscaling.alpha.kubernetes.io/current-metrics',
  conditions: 'autoscaling.alpha.kubernetes.io/conditions',
  behavior: 'autoscaling.alpha.kubernetes.io/behavior',
} as const
const defaultCpuUtilization = 80

/** autoscaling/v1 -> v2. Pure. */
export function hpaToStorage(object: KubeObject): KubeObject {
  const annotations = { ...object.metadata.annotations }
  const { targetCPUUtilizationPercentage: cpu, ...spec } = part(object, 'spec')
  const { currentCPUUtilizationPercentage: currentCpu, ...status } = part(object, 'status')
  const metrics = [
    ...listIn(annotations[annotation.metrics]).map(metricFromV1),
    ...(typeof cpu === 'number' ? [cpuMetric(cpu)] : []),
  ]
  spec['metrics'] = metrics.length > 0 ? metrics : [cpuMetric(defaultCpuUtilization)]
  const behavior = parsed(annotations[annotation.behavior])
  if (isJsonObject(behavior) && Object.keys(behavior).length > 0) spec['behavior'] = lowerKeys(behavior)
  const current = listIn(annotations[annotation.currentMetrics])
  if (current.length > 0) status['currentMetrics'] = current.map(statusFromV1)
  else if (typeof currentCpu === 'number')
    status['currentMetrics'] = [
      { type: 'Resource', resource: { name: 'cpu', current: { averageUtilization: currentCpu } } },
    ]
  const conditions = listIn(annotations[annotation.conditions])
  if (conditions.length > 0) status['conditions'] = conditions
  return withParts(object, 'autoscaling/v2', { annotations, spec, status })
}

/** autoscaling/v2 -> v1. Pure. */
export function hpaFromStorage(object: KubeObject): KubeObject {
  const annotations = withoutOurs({ ...object.metadata.annotations })
  const { metrics = [], behavior, ...spec } = part(object, 'spec')
  const { currentMetrics = [], conditions, ...status } = part(object, 'status')
  // v1 always prints currentReplicas; v2 omits a zero.
  status['currentReplicas'] ??= 0
  const all = objects(metrics)
  const cpu = all.find((metric) => cpuUtilization(metric) !== undefined)
  if (cpu !== undefined) spec['targetCPUUtilizationPercentage'] = cpuUtilization(cpu) ?? 0
  const others = all.filter((metric) => cpuUtilization(metric) === undefined)
  if (others.length > 0) annotations[annotation.metrics] = JSON.stringify(others.map(metricToV1))
  const current = objects(currentMetrics)
  for (const metric of current) {
    const used = currentCpuUtilization(metric)
    if (used !== undefined) status['currentCPUUtilizationPercentage'] = used
  }
  if (current.length > 0) annotations[annotation.currentMetrics] = JSON.stringify(current.map(statusToV1))
  if (isJsonObject(behavior)) annotations[annotation.behavior] = internalBehavior(behavior)
  if (Array.isArray(conditions) && conditions.length > 0)
    annotations[annotation.conditions] = JSON.stringify(conditions)
  return withParts(object, 'autoscaling/v1', { annotations, spec, status })
}

function withParts(
  object: KubeObject,
  apiVersion: string,
  { annotations, spec, status }: { annotations: Record<string, string>; spec: JsonObject; status: JsonObject },
): KubeObject {
  const { annotations: _, ...metadata } = object.metadata
  const kept = apiVersion === 'autoscaling/v2' ? withoutOurs(annotations) : annotations
  return {
    ...object,
    apiVersion,
    metadata: Object.keys(kept).length > 0 ? { ...metadata, annotations: kept } : metadata,
    spec,
    status,
  }
}

function withoutOurs(annotations: Record<string, string>): Record<string, string> {
  const ours: readonly string[] = Object.values(annotation)
  return Object.fromEntries(Object.entries(annotations).filter(([name]) => !ours.includes(name)))
}

function part(object: KubeObject, member: string): JsonObject {
  const value = object[member]
  return isJsonObject(value) ? { ...value } : {}
}

function parsed(text: string | undefined): JsonValue | undefined {
  if (text === undefined) return undefined
  try {
    return parseJsonText(text)
  } catch {
    // As upstream, an annotation that is not JSON is ignored.
    return undefined
  }
}

function listIn(text: string | undefined): JsonObject[] {
  return objects(parsed(text))
}

function objects(value: JsonValue | undefined): JsonObject[] {
  return Array.isArray(value) ? value.filter(isJsonObject) : []
}

function cpuMetric(averageUtilization: number): JsonObject {
  return { type: 'Resource', resource: { name: 'cpu', target: { type: 'Utilization', averageUtilization } } }
}

function cpuUtilization({ type, resource }: JsonObject): number | undefined {
  if (type !== 'Resource' || !isJsonObject(resource) || resource['name'] !== 'cpu') return undefined
  const { target } = resource
  const value = isJsonObject(target) ? target['averageUtilization'] : undefined
  return typeof value === 'number' ? value : undefined
}

function currentCpuUtilization({ type, resource }: JsonObject): number | undefined {
  if (type !== 'Resource' || !isJsonObject(resource) || resource['name'] !== 'cpu') return undefined
  const { current } = resource
  const value = isJsonObject(current) ? current['averageUtilization'] : undefined
  return typeof value === 'number' ? value : undefined
}

/**
 * The content of the annotation: Go's internal type, without JSON tags: members have Go names and are never omitted.
 */
function internalBehavior({ scaleUp, scaleDown }: JsonObject): string {
  const rules = 'autoscaling.HPAScalingRules'
  return JSON.stringify({ ScaleUp: internalForm(rules, scaleUp), ScaleDown: internalForm(rules, scaleDown) })
}

/** Reverses `internalBehavior`; drops null members. */
function lowerKeys(value: JsonValue): JsonValue {
  if (Array.isArray(value)) return value.map(lowerKeys)
  if (!isJsonObject(value)) return value
  const members = Object.entries(value).filter(([, item]) => item !== null)
  return Object.fromEntries(members.map(([key, item]) => [key.charAt(0).toLowerCase() + key.slice(1), lowerKeys(item)]))
}
