// Cells of Pods. The status column is computed from the phase, the containers and the conditions.
import type { JsonObject, JsonValue } from '#apimachinery/meta/index.ts'
import { ageOf, isDeleting, nameOf } from '#virtualapi/codec/table/cells/format-cells.ts'
import { timeSince } from '#virtualapi/codec/table/cells/human-duration.ts'
import {
  conditionAt,
  numberAt,
  objectAt,
  objectsAt,
  textAt,
  valueAt,
} from '#virtualapi/codec/table/cells/read-fields.ts'

/** metav1.TableRowCondition */
export interface RowCondition {
  readonly type: string
  readonly status: string
  readonly reason: string
  readonly message: string
}

interface Summary {
  reason: string
  ready: number
  restarts: number
  /** The time at which a container last terminated, in milliseconds since the epoch; 0: never. */
  lastRestartMs: number
}

/** Cells of a Pod, wide columns included. */
export function podCells(pod: JsonObject, nowMs: number): JsonValue[] {
  const initContainers = objectsAt(pod, 'spec', 'initContainers')
  const sidecars = new Set(
    initContainers
      .filter((container) => textAt(container, 'restartPolicy') === 'Always')
      .map((container) => textAt(container, 'name')),
  )
  const total = objectsAt(pod, 'spec', 'containers').length + sidecars.size
  const { reason, ready, restarts, lastRestartMs } = summarize(pod, sidecars, initContainers.length)
  const since = lastRestartMs === 0 ? '' : ` (${timeSince(new Date(lastRestartMs).toISOString(), nowMs)} ago)`
  return [
    nameOf(pod),
    `${ready}/${total}`,
    reason,
    restarts === 0 ? '0' : `${restarts}${since}`,
    ageOf(pod, nowMs),
    textAt(objectsAt(pod, 'status', 'podIPs')[0] ?? {}, 'ip') || '<none>',
    textAt(pod, 'spec', 'nodeName') || '<none>',
    textAt(pod, 'status', 'nominatedNodeName') || '<none>',
    readinessGates(pod),
  ]
}

/** The row condition Completed of a Pod that has ended, for clients that hide such rows. */
export function podRowConditions(pod: JsonObject): RowCondition[] | undefined {
  const phase = textAt(pod, 'status', 'phase')
  if (phase === 'Succeeded')
    return [{ type: 'Completed', status: 'True', reason: phase, message: 'The pod has completed successfully.' }]
  if (phase === 'Failed') return [{ type: 'Completed', status: 'True', reason: phase, message: 'The pod failed.' }]
  return undefined
}

function summarize(pod: JsonObject, sidecars: ReadonlySet<string>, initCount: number): Summary {
  const phase = textAt(pod, 'status', 'phase')
  const gated = objectsAt(pod, 'status', 'conditions').some(
    (condition) => condition['type'] === 'PodScheduled' && condition['reason'] === 'SchedulingGated',
  )
  const reason = gated ? 'SchedulingGated' : textAt(pod, 'status', 'reason') || phase
  const init = initSummary(pod, sidecars, initCount, reason)
  const initialized = conditionAt(pod, 'Initialized', 'status', 'conditions')
  const summary =
    init.initializing && initialized?.['status'] !== 'True' ? init.all : mainSummary(pod, init.all, init.sidecars)
  if (isDeleting(pod)) {
    if (textAt(pod, 'status', 'reason') === 'NodeLost') summary.reason = 'Unknown'
    else if (phase !== 'Succeeded' && phase !== 'Failed') summary.reason = 'Terminating'
  }
  return summary
}

/** The state of the init containers that have started, and separately the restarts of sidecars. */
function initSummary(
  pod: JsonObject,
  sidecarNames: ReadonlySet<string>,
  initCount: number,
  reason: string,
): { all: Summary; sidecars: Summary; initializing: boolean } {
  const all: Summary = { reason, ready: 0, restarts: 0, lastRestartMs: 0 }
  const sidecars: Summary = { reason, ready: 0, restarts: 0, lastRestartMs: 0 }
  for (const [index, status] of objectsAt(pod, 'status', 'initContainerStatuses').entries()) {
    const isSidecar = sidecarNames.has(textAt(status, 'name'))
    countRestarts(all, status)
    if (isSidecar) countRestarts(sidecars, status)
    const terminated = valueAt(status, 'state', 'terminated')
    if (terminated !== undefined && numberAt(status, 'state', 'terminated', 'exitCode') === 0) continue
    if (isSidecar && status['started'] === true) {
      if (status['ready'] === true) all.ready++
      continue
    }
    const waiting = textAt(status, 'state', 'waiting', 'reason')
    if (terminated !== undefined) all.reason = `Init:${terminationText(objectAt(status, 'state', 'terminated'))}`
    else if (waiting !== '' && waiting !== 'PodInitializing') all.reason = `Init:${waiting}`
    else all.reason = `Init:${index}/${initCount}`
    return { all, sidecars, initializing: true }
  }
  return { all, sidecars, initializing: false }
}

function mainSummary(pod: JsonObject, init: Summary, sidecars: Summary): Summary {
  const summary: Summary = { ...sidecars, reason: init.reason, ready: init.ready }
  let running = false
  // The containers are read from the last to the first, so that the reason of the first container takes precedence.
  for (const status of objectsAt(pod, 'status', 'containerStatuses').reverse()) {
    countRestarts(summary, status)
    const waiting = textAt(status, 'state', 'waiting', 'reason')
    const terminated = valueAt(status, 'state', 'terminated')
    if (waiting !== '') summary.reason = waiting
    else if (terminated !== undefined) summary.reason = terminationText(objectAt(status, 'state', 'terminated'))
    else if (status['ready'] === true && valueAt(status, 'state', 'running') !== undefined) {
      running = true
      summary.ready++
    }
  }
  if (summary.reason === 'Completed' && running) {
    const ready = objectsAt(pod, 'status', 'conditions').some(
      ({ type, status }) => type === 'Ready' && status === 'True',
    )
    summary.reason = ready ? 'Running' : 'NotReady'
  }
  return summary
}

function countRestarts(summary: Summary, status: JsonObject): void {
  summary.restarts += numberAt(status, 'restartCount')
  const finished = Date.parse(textAt(status, 'lastState', 'terminated', 'finishedAt'))
  if (finished > summary.lastRestartMs) summary.lastRestartMs = finished
}

function terminationText(terminated: JsonObject): string {
  const signal = numberAt(terminated, 'signal')
  return (
    textAt(terminated, 'reason') || (signal === 0 ? `ExitCode:${numberAt(terminated, 'exitCode')}` : `Signal:${signal}`)
  )
}

function readinessGates(pod: JsonObject): string {
  const gates = objectsAt(pod, 'spec', 'readinessGates')
  if (gates.length === 0) return '<none>'
  const open = gates.filter(
    (gate) => conditionAt(pod, textAt(gate, 'conditionType'), 'status', 'conditions')?.['status'] === 'True',
  )
  return `${open.length}/${gates.length}`
}
