// Cells of HorizontalPodAutoscalers: current and target values of their metrics.
import type { JsonObject, JsonValue } from '#apimachinery/meta/index.ts'
import { ageOf, firstOf, nameOf } from '#virtualapi/codec/table/cells/format-cells.ts'
import {
  numberAt,
  objectAt,
  objectsAt,
  scalarText,
  textAt,
  valueAt,
} from '#virtualapi/codec/table/cells/read-fields.ts'

export function autoscalerCells(object: JsonObject, nowMs: number): JsonValue[] {
  const statuses = objectsAt(object, 'status', 'currentMetrics')
  return cells(
    object,
    objectsAt(object, 'spec', 'metrics').map((spec, index) => metricText(spec, statuses[index] ?? {})),
    nowMs,
  )
}

/** The cells of an autoscaling/v1 object, which has one metric, in fields of its own, with a default target of 80 %. */
export function autoscalerV1Cells(object: JsonObject, nowMs: number): JsonValue[] {
  const target = scalarText(valueAt(object, 'spec', 'targetCPUUtilizationPercentage'), '80')
  const current = valueAt(object, 'status', 'currentCPUUtilizationPercentage')
  return cells(object, [`cpu: ${typeof current === 'number' ? `${current}%` : '<unknown>'}/${target}%`], nowMs)
}

function cells(object: JsonObject, metrics: readonly string[], nowMs: number): JsonValue[] {
  return [
    nameOf(object),
    `${textAt(object, 'spec', 'scaleTargetRef', 'kind')}/${textAt(object, 'spec', 'scaleTargetRef', 'name')}`,
    metrics.length === 0 ? '<none>' : firstOf(metrics, 2, { separator: ', ' }),
    scalarText(valueAt(object, 'spec', 'minReplicas'), '<unset>'),
    numberAt(object, 'spec', 'maxReplicas'),
    numberAt(object, 'status', 'currentReplicas'),
    ageOf(object, nowMs),
  ]
}

function metricText(spec: JsonObject, status: JsonObject): string {
  switch (textAt(spec, 'type')) {
    case 'External':
      return valueText(objectAt(spec, 'external'), objectAt(status, 'external'))
    case 'Object':
      return valueText(objectAt(spec, 'object'), objectAt(status, 'object'))
    case 'Pods':
      return averageText(objectAt(spec, 'pods'), objectAt(status, 'pods'))
    case 'Resource':
      return resourceText(objectAt(spec, 'resource'), objectAt(status, 'resource'))
    case 'ContainerResource':
      return resourceText(objectAt(spec, 'containerResource'), objectAt(status, 'containerResource'))
    default:
      return '<unknown type>'
  }
}

function valueText(spec: JsonObject, status: JsonObject): string {
  if (valueAt(spec, 'target', 'averageValue') !== undefined) return `${averageText(spec, status)} (avg)`
  return `${scalarText(valueAt(status, 'current', 'value'), '<unknown>')}/${scalarText(valueAt(spec, 'target', 'value'), '0')}`
}

function averageText(spec: JsonObject, status: JsonObject): string {
  const current = scalarText(valueAt(status, 'current', 'averageValue'), '<unknown>')
  return `${current}/${scalarText(valueAt(spec, 'target', 'averageValue'), '0')}`
}

function resourceText(spec: JsonObject, status: JsonObject): string {
  const name = textAt(spec, 'name')
  if (valueAt(spec, 'target', 'averageValue') !== undefined) return `${name}: ${averageText(spec, status)}`
  const current = valueAt(status, 'current', 'averageUtilization')
  const target = valueAt(spec, 'target', 'averageUtilization')
  return `${name}: ${typeof current === 'number' ? `${current}%` : '<unknown>'}/${typeof target === 'number' ? `${target}%` : '<auto>'}`
}
