// Cells of APIServices, RBAC bindings, signing requests, admission policies and flow control.
import type { JsonObject, JsonValue } from '#apimachinery/meta/index.ts'
import { ageOf, nameOf, selectorText } from '#virtualapi/codec/table/cells/format-cells.ts'
import { humanDuration } from '#virtualapi/codec/table/cells/human-duration.ts'
import {
  conditionAt,
  numberAt,
  objectAt,
  objectsAt,
  textAt,
  valueAt,
} from '#virtualapi/codec/table/cells/read-fields.ts'

export function roleBindingCells(object: JsonObject, nowMs: number): JsonValue[] {
  const subjects = objectsAt(object, 'subjects')
  const named = (kind: string): string =>
    subjects
      .filter((subject) => subject['kind'] === kind)
      .map((subject) =>
        kind === 'ServiceAccount'
          ? `${textAt(subject, 'namespace')}/${textAt(subject, 'name')}`
          : textAt(subject, 'name'),
      )
      .join(', ')
  return [
    nameOf(object),
    `${textAt(object, 'roleRef', 'kind')}/${textAt(object, 'roleRef', 'name')}`,
    ageOf(object, nowMs),
    named('User'),
    named('Group'),
    named('ServiceAccount'),
  ]
}

export function apiServiceCells(object: JsonObject, nowMs: number): JsonValue[] {
  const isLocal = valueAt(object, 'spec', 'service') === undefined
  const service = `${textAt(object, 'spec', 'service', 'namespace')}/${textAt(object, 'spec', 'service', 'name')}`
  return [nameOf(object), isLocal ? 'Local' : service, availability(object), ageOf(object, nowMs)]
}

function availability(object: JsonObject): string {
  const condition = conditionAt(object, 'Available', 'status', 'conditions')
  if (condition === undefined) return 'Unknown'
  const [status, reason] = [textAt(condition, 'status'), textAt(condition, 'reason')]
  return status === 'True' || reason === '' ? status : `${status} (${reason})`
}

export function signingRequestCells(object: JsonObject, nowMs: number): JsonValue[] {
  const seconds = valueAt(object, 'spec', 'expirationSeconds')
  return [
    nameOf(object),
    ageOf(object, nowMs),
    textAt(object, 'spec', 'signerName') || '<none>',
    textAt(object, 'spec', 'username'),
    typeof seconds === 'number' ? humanDuration(seconds * 1000) : '<none>',
    signingRequestStatus(object),
  ]
}

function signingRequestStatus(object: JsonObject): string {
  const has = (type: string): boolean => conditionAt(object, type, 'status', 'conditions') !== undefined
  const words = [has('Denied') ? 'Denied' : has('Approved') ? 'Approved' : 'Pending']
  if (has('Failed')) words.push('Failed')
  if (textAt(object, 'status', 'certificate') !== '') words.push('Issued')
  return words.join(',')
}

export function webhookConfigurationCells(object: JsonObject, nowMs: number): JsonValue[] {
  return [nameOf(object), objectsAt(object, 'webhooks').length, ageOf(object, nowMs)]
}

export function admissionPolicyCells(object: JsonObject, nowMs: number): JsonValue[] {
  return policyCells(object, objectsAt(object, 'spec', 'validations').length, nowMs)
}

export function mutatingPolicyCells(object: JsonObject, nowMs: number): JsonValue[] {
  return policyCells(object, objectsAt(object, 'spec', 'mutations').length, nowMs)
}

function policyCells(object: JsonObject, count: number, nowMs: number): JsonValue[] {
  const hasParams = valueAt(object, 'spec', 'paramKind') !== undefined
  return [
    nameOf(object),
    count,
    hasParams
      ? `${textAt(object, 'spec', 'paramKind', 'apiVersion')}/${textAt(object, 'spec', 'paramKind', 'kind')}`
      : '<unset>',
    ageOf(object, nowMs),
  ]
}

export function admissionPolicyBindingCells(object: JsonObject, nowMs: number): JsonValue[] {
  const name = textAt(object, 'spec', 'paramRef', 'name')
  const selector = valueAt(object, 'spec', 'paramRef', 'selector')
  const params =
    name !== ''
      ? `${textAt(object, 'spec', 'paramRef', 'namespace') || '*'}/${name}`
      : selector === undefined
        ? '<unset>'
        : selectorText(objectAt(object, 'spec', 'paramRef', 'selector'))
  return [nameOf(object), textAt(object, 'spec', 'policyName'), params, ageOf(object, nowMs)]
}

export function flowSchemaCells(object: JsonObject, nowMs: number): JsonValue[] {
  const dangling = conditionAt(object, 'Dangling', 'status', 'conditions')
  return [
    nameOf(object),
    textAt(object, 'spec', 'priorityLevelConfiguration', 'name'),
    numberAt(object, 'spec', 'matchingPrecedence'),
    textAt(object, 'spec', 'distinguisherMethod', 'type') || '<none>',
    ageOf(object, nowMs),
    dangling === undefined ? '?' : textAt(dangling, 'status'),
  ]
}

export function priorityLevelCells(object: JsonObject, nowMs: number): JsonValue[] {
  const limited = objectAt(object, 'spec', 'limited')
  const isLimited = valueAt(object, 'spec', 'limited') !== undefined
  const queuing = valueAt(limited, 'limitResponse', 'queuing')
  const queue = (name: string): JsonValue =>
    queuing === undefined ? '<none>' : numberAt(limited, 'limitResponse', 'queuing', name)
  return [
    nameOf(object),
    textAt(object, 'spec', 'type'),
    isLimited ? numberAt(limited, 'nominalConcurrencyShares') : '<none>',
    queue('queues'),
    queue('handSize'),
    queue('queueLengthLimit'),
    ageOf(object, nowMs),
  ]
}
