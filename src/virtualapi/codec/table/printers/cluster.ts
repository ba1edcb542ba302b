// Cells of namespaces, nodes, ConfigMaps, Secrets, quotas, leases, classes and Events.
import { compareText, type JsonObject, type JsonValue } from '#apimachinery/meta/index.ts'
import { ageOf, nameOf } from '#virtualapi/codec/table/cells/format-cells.ts'
import { timeSince } from '#virtualapi/codec/table/cells/human-duration.ts'
import {
  conditionAt,
  numberAt,
  objectAt,
  objectsAt,
  scalarText,
  textAt,
  valueAt,
} from '#virtualapi/codec/table/cells/read-fields.ts'

export function namespaceCells(object: JsonObject, nowMs: number): JsonValue[] {
  return [nameOf(object), textAt(object, 'status', 'phase'), ageOf(object, nowMs)]
}

export function configMapCells(object: JsonObject, nowMs: number): JsonValue[] {
  return [nameOf(object), sizeAt(object, 'data') + sizeAt(object, 'binaryData'), ageOf(object, nowMs)]
}

export function secretCells(object: JsonObject, nowMs: number): JsonValue[] {
  return [nameOf(object), textAt(object, 'type'), sizeAt(object, 'data'), ageOf(object, nowMs)]
}

function sizeAt(object: JsonObject, name: string): number {
  return Object.keys(objectAt(object, name)).length
}

export function serviceAccountCells(object: JsonObject, nowMs: number): JsonValue[] {
  return [nameOf(object), objectsAt(object, 'secrets').length, ageOf(object, nowMs)]
}

export function nodeCells(object: JsonObject, nowMs: number): JsonValue[] {
  const info = objectAt(object, 'status', 'nodeInfo')
  return [
    nameOf(object),
    nodeStatus(object),
    nodeRoles(object).join(',') || '<none>',
    ageOf(object, nowMs),
    textAt(info, 'kubeletVersion'),
    nodeAddress(object, 'InternalIP'),
    nodeAddress(object, 'ExternalIP'),
    textAt(info, 'osImage') || '<unknown>',
    textAt(info, 'kernelVersion') || '<unknown>',
    textAt(info, 'containerRuntimeVersion') || '<unknown>',
  ]
}

function nodeStatus(node: JsonObject): string {
  const ready = conditionAt(node, 'Ready', 'status', 'conditions')
  const status = ready === undefined ? 'Unknown' : ready['status'] === 'True' ? 'Ready' : 'NotReady'
  return valueAt(node, 'spec', 'unschedulable') === true ? `${status},SchedulingDisabled` : status
}

const rolePrefix = 'node-role.kubernetes.io/'

function nodeRoles(node: JsonObject): string[] {
  const labels = Object.entries(objectAt(node, 'metadata', 'labels'))
  const roles = labels.flatMap(([key, value]) => {
    if (key.startsWith(rolePrefix)) return [key.slice(rolePrefix.length)]
    return key === 'kubernetes.io/role' && typeof value === 'string' ? [value] : []
  })
  return [...new Set(roles)].filter((role) => role !== '').sort(compareText)
}

function nodeAddress(node: JsonObject, type: string): string {
  const address = objectsAt(node, 'status', 'addresses').find((item) => item['type'] === type)
  return address === undefined ? '<none>' : textAt(address, 'address')
}

export function componentStatusCells(object: JsonObject): JsonValue[] {
  const healthy = conditionAt(object, 'Healthy', 'conditions')
  const status = healthy === undefined ? 'Unknown' : healthy['status'] === 'True' ? 'Healthy' : 'Unhealthy'
  return [nameOf(object), status, textAt(healthy ?? {}, 'message'), textAt(healthy ?? {}, 'error')]
}

export function resourceQuotaCells(object: JsonObject, nowMs: number): JsonValue[] {
  const requests: string[] = []
  const limits: string[] = []
  const hard = objectAt(object, 'status', 'hard')
  for (const name of Object.keys(hard).sort(compareText)) {
    const used = scalarText(valueAt(object, 'status', 'used', name), '0')
    const column = name.startsWith('limits.') ? limits : requests
    column.push(`${name}: ${used}/${scalarText(hard[name], '0')}`)
  }
  return [nameOf(object), requests.join(', '), limits.join(', '), ageOf(object, nowMs)]
}

export function leaseCells(object: JsonObject, nowMs: number): JsonValue[] {
  return [nameOf(object), textAt(object, 'spec', 'holderIdentity'), ageOf(object, nowMs)]
}

export function priorityClassCells(object: JsonObject, nowMs: number): JsonValue[] {
  return [
    nameOf(object),
    numberAt(object, 'value'),
    valueAt(object, 'globalDefault') === true,
    ageOf(object, nowMs),
    textAt(object, 'preemptionPolicy'),
  ]
}

export function runtimeClassCells(object: JsonObject, nowMs: number): JsonValue[] {
  return [nameOf(object), textAt(object, 'handler'), ageOf(object, nowMs)]
}

/** Names of an Event's fields, which differ between core/v1 and events.k8s.io/v1. */
interface EventFields {
  readonly subject: string
  readonly message: string
  readonly source: string
  readonly first: string
  readonly last: string
  readonly count: string
  readonly reportingController: string
}

const coreEvent: EventFields = {
  subject: 'involvedObject',
  message: 'message',
  source: 'source',
  first: 'firstTimestamp',
  last: 'lastTimestamp',
  count: 'count',
  reportingController: 'reportingComponent',
}
const groupEvent: EventFields = {
  subject: 'regarding',
  message: 'note',
  source: 'deprecatedSource',
  first: 'deprecatedFirstTimestamp',
  last: 'deprecatedLastTimestamp',
  count: 'deprecatedCount',
  reportingController: 'reportingController',
}

export function coreEventCells(object: JsonObject, nowMs: number): JsonValue[] {
  return eventCells(object, coreEvent, nowMs)
}

export function groupEventCells(object: JsonObject, nowMs: number): JsonValue[] {
  return eventCells(object, groupEvent, nowMs)
}

function eventCells(event: JsonObject, fields: EventFields, nowMs: number): JsonValue[] {
  const first = timeSince(valueAt(event, fields.first) ?? valueAt(event, 'eventTime'), nowMs)
  const last = valueAt(event, fields.last) === undefined ? first : timeSince(valueAt(event, fields.last), nowMs)
  const hasSeries = valueAt(event, 'series') !== undefined
  const name = textAt(event, fields.subject, 'name')
  const kind = textAt(event, fields.subject, 'kind').toLowerCase()
  const component = textAt(event, fields.source, 'component') || textAt(event, fields.reportingController)
  const instance = textAt(event, fields.source, 'host') || textAt(event, 'reportingInstance')
  return [
    hasSeries ? timeSince(valueAt(event, 'series', 'lastObservedTime'), nowMs) : last,
    textAt(event, 'type'),
    textAt(event, 'reason'),
    name === '' ? kind : `${kind}/${name}`,
    textAt(event, fields.subject, 'fieldPath'),
    instance === '' ? component : `${component}, ${instance}`,
    textAt(event, fields.message).trim(),
    first,
    hasSeries ? numberAt(event, 'series', 'count') : numberAt(event, fields.count) || 1,
    nameOf(event),
  ]
}
