// Cells of the kinds that run pods.
import { parseApiVersion, type JsonObject, type JsonValue } from '#apimachinery/meta/index.ts'
import {
  ageOf,
  containerCells,
  isDeleting,
  labelsText,
  nameOf,
  selectorOrNone,
  selectorText,
} from '#virtualapi/codec/table/cells/format-cells.ts'
import { humanDuration, timeSince } from '#virtualapi/codec/table/cells/human-duration.ts'
import {
  conditionAt,
  numberAt,
  objectAt,
  objectsAt,
  scalarText,
  textAt,
  valueAt,
} from '#virtualapi/codec/table/cells/read-fields.ts'

const templateSpec = ['spec', 'template', 'spec'] as const

export function deploymentCells(object: JsonObject, nowMs: number): JsonValue[] {
  return [
    nameOf(object),
    `${numberAt(object, 'status', 'readyReplicas')}/${numberAt(object, 'spec', 'replicas')}`,
    numberAt(object, 'status', 'updatedReplicas'),
    numberAt(object, 'status', 'availableReplicas'),
    ageOf(object, nowMs),
    ...containerCells(objectAt(object, ...templateSpec)),
    selectorText(objectAt(object, 'spec', 'selector')),
  ]
}

export function replicaSetCells(object: JsonObject, nowMs: number): JsonValue[] {
  return [...replicaCells(object, nowMs), selectorOrNone(objectAt(object, 'spec', 'selector'))]
}

export function replicationControllerCells(object: JsonObject, nowMs: number): JsonValue[] {
  return [...replicaCells(object, nowMs), labelsText(objectAt(object, 'spec', 'selector'))]
}

function replicaCells(object: JsonObject, nowMs: number): JsonValue[] {
  return [
    nameOf(object),
    numberAt(object, 'spec', 'replicas'),
    numberAt(object, 'status', 'replicas'),
    numberAt(object, 'status', 'readyReplicas'),
    ageOf(object, nowMs),
    ...containerCells(objectAt(object, ...templateSpec)),
  ]
}

export function statefulSetCells(object: JsonObject, nowMs: number): JsonValue[] {
  return [
    nameOf(object),
    `${numberAt(object, 'status', 'readyReplicas')}/${numberAt(object, 'spec', 'replicas')}`,
    ageOf(object, nowMs),
    ...containerCells(objectAt(object, ...templateSpec)),
  ]
}

export function daemonSetCells(object: JsonObject, nowMs: number): JsonValue[] {
  const counts = ['desiredNumberScheduled', 'currentNumberScheduled', 'numberReady', 'updatedNumberScheduled']
  return [
    nameOf(object),
    ...[...counts, 'numberAvailable'].map((name) => numberAt(object, 'status', name)),
    labelsText(objectAt(object, ...templateSpec, 'nodeSelector')),
    ageOf(object, nowMs),
    ...containerCells(objectAt(object, ...templateSpec)),
    selectorOrNone(objectAt(object, 'spec', 'selector')),
  ]
}

export function jobCells(object: JsonObject, nowMs: number): JsonValue[] {
  return [
    nameOf(object),
    jobStatus(object),
    jobCompletions(object),
    jobDuration(object, nowMs),
    ageOf(object, nowMs),
    ...containerCells(objectAt(object, ...templateSpec)),
    selectorOrNone(objectAt(object, 'spec', 'selector')),
  ]
}

function jobStatus(job: JsonObject): string {
  const has = (type: string): boolean => conditionAt(job, type, 'status', 'conditions')?.['status'] === 'True'
  if (has('Complete')) return 'Complete'
  if (has('Failed')) return 'Failed'
  if (isDeleting(job)) return 'Terminating'
  if (has('Suspended')) return 'Suspended'
  return ['FailureTarget', 'SuccessCriteriaMet'].find(has) ?? 'Running'
}

function jobCompletions(job: JsonObject): string {
  const succeeded = numberAt(job, 'status', 'succeeded')
  const completions = valueAt(job, 'spec', 'completions')
  if (typeof completions === 'number') return `${succeeded}/${completions}`
  const parallelism = numberAt(job, 'spec', 'parallelism')
  return parallelism > 1 ? `${succeeded}/1 of ${parallelism}` : `${succeeded}/1`
}

function jobDuration(job: JsonObject, nowMs: number): string {
  const start = Date.parse(textAt(job, 'status', 'startTime'))
  if (Number.isNaN(start)) return ''
  const end = Date.parse(textAt(job, 'status', 'completionTime'))
  return humanDuration((Number.isNaN(end) ? nowMs : end) - start)
}

export function cronJobCells(object: JsonObject, nowMs: number): JsonValue[] {
  const suspend = valueAt(object, 'spec', 'suspend')
  const last = valueAt(object, 'status', 'lastScheduleTime')
  return [
    nameOf(object),
    textAt(object, 'spec', 'schedule'),
    scalarText(valueAt(object, 'spec', 'timeZone'), '<none>'),
    typeof suspend === 'boolean' ? (suspend ? 'True' : 'False') : '<unset>',
    objectsAt(object, 'status', 'active').length,
    last === undefined ? '<none>' : timeSince(last, nowMs),
    ageOf(object, nowMs),
    ...containerCells(objectAt(object, 'spec', 'jobTemplate', ...templateSpec)),
    selectorOrNone(objectAt(object, 'spec', 'jobTemplate', 'spec', 'selector')),
  ]
}

export function podTemplateCells(object: JsonObject): JsonValue[] {
  return [
    nameOf(object),
    ...containerCells(objectAt(object, 'template', 'spec')),
    labelsText(objectAt(object, 'template', 'metadata', 'labels')),
  ]
}

export function controllerRevisionCells(object: JsonObject, nowMs: number): JsonValue[] {
  const owner = objectsAt(object, 'metadata', 'ownerReferences').find(({ controller }) => controller === true)
  return [
    nameOf(object),
    owner === undefined ? '<none>' : ownerText(owner),
    numberAt(object, 'revision'),
    ageOf(object, nowMs),
  ]
}

/** The owner as text, such as `statefulset.apps/web`. */
function ownerText(owner: JsonObject): string {
  const { group } = parseApiVersion(textAt(owner, 'apiVersion'))
  const kind = textAt(owner, 'kind')
  return `${(group === '' ? kind : `${kind}.${group}`).toLowerCase()}/${textAt(owner, 'name')}`
}

export function disruptionBudgetCells(object: JsonObject, nowMs: number): JsonValue[] {
  return [
    nameOf(object),
    scalarText(valueAt(object, 'spec', 'minAvailable'), 'N/A'),
    scalarText(valueAt(object, 'spec', 'maxUnavailable'), 'N/A'),
    numberAt(object, 'status', 'disruptionsAllowed'),
    ageOf(object, nowMs),
  ]
}

export function scaleCells(object: JsonObject, nowMs: number): JsonValue[] {
  return [
    nameOf(object),
    numberAt(object, 'spec', 'replicas'),
    numberAt(object, 'status', 'replicas'),
    ageOf(object, nowMs),
  ]
}
