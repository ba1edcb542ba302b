// The moves of all workloads, from the annotations of the scheduler.
import { heldAnnotation, memberStatusesOf, placedOn, placementHistory, type PlacedCopy } from '#crds/index.ts'
import { waitText } from '#placement/index.ts'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { recordsOf, stringOf, type AnyObject } from '#console/kube/objects.ts'
import { clusterAnnotation } from '#console/table/rows.ts'
import { conditionTone } from './tone.ts'

export interface CopyRow {
  readonly member: string
  readonly state: PlacedCopy['state']
  readonly since?: string
  readonly replicas?: number
  /** The gate before the copy's next state, and in words what the copy waits for. */
  readonly gate?: string
  readonly waitsFor?: string
  readonly waitsSince?: string
  readonly until?: string
  readonly then?: string
  /** Why the copy makes no progress, in the words of the member or the scheduler. */
  readonly blocker?: string
}

export interface PastMoveRow {
  readonly time: string
  readonly from: readonly string[]
  readonly to: readonly string[]
  readonly cause: string
  readonly message: string
}

/** The copies of a workload by member. */
export function copiesOf(object: AnyObject): CopyRow[] {
  return Object.entries(placedOn(object as unknown as KubeObject)).map(([member, copy]) =>
    copyRow(object, member, copy),
  )
}

function copyRow(object: AnyObject, member: string, { state, since, replicas, wait, message }: PlacedCopy): CopyRow {
  const problem = problemIn(object, member)
  const blocker = message ?? (state === 'Serving' ? undefined : problem)
  return {
    member,
    state,
    ...(since !== undefined && { since }),
    ...(replicas !== undefined && { replicas }),
    ...(wait !== undefined && {
      gate: wait.gate,
      waitsFor: waitText(wait.gate, {}),
      waitsSince: wait.since,
      ...(wait.until !== undefined && { until: wait.until }),
      then: wait.then,
    }),
    ...(blocker !== undefined && { blocker }),
  }
}

/** The problem of a copy, in the words of its member's report: its error, or else the message of a bad condition. */
function problemIn(object: AnyObject, member: string): string | undefined {
  const reports = memberStatusesOf<{ readonly error?: unknown; readonly conditions?: unknown }>(
    object as unknown as KubeObject,
  )
  const report = reports[member]
  if (typeof report?.error === 'string') return report.error
  const bad = recordsOf(report?.conditions).find(
    ({ type, status }) => conditionTone({ type: stringOf(type), status: stringOf(status) }) === 'bad',
  )
  const message = stringOf(bad?.['message'])
  return message === '' ? undefined : message
}

/** The last moves of a workload, the newest first. */
export function historyOf(object: AnyObject): PastMoveRow[] {
  return placementHistory(object as unknown as KubeObject).map((entry) => ({
    time: stringOf(entry['time']),
    from: namesOf(entry['from']),
    to: namesOf(entry['to']),
    cause: stringOf(entry['cause']),
    message: stringOf(entry['message']),
  }))
}

function namesOf(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((name): name is string => typeof name === 'string') : []
}

/** Whether a copy of the workload is on its way or waits, or the workload is held. */
export function isMoving(object: AnyObject): boolean {
  const copies = Object.values(placedOn(object as unknown as KubeObject))
  return object.metadata.annotations?.[heldAnnotation] !== undefined || copies.some(isOnItsWay)
}

const isOnItsWay = ({ state, wait }: PlacedCopy): boolean => state !== 'Serving' || wait !== undefined

export interface MoveCard {
  readonly key: string
  readonly cluster: string
  readonly object: AnyObject
  readonly copies: readonly CopyRow[]
  readonly newest: PastMoveRow | undefined
  readonly held: string | undefined
}

export interface MoveBoard {
  /** Moves that are not complete, the oldest wait first. */
  readonly moving: readonly MoveCard[]
  /** The last moves that are complete, the newest first. */
  readonly done: readonly MoveCard[]
  /** How many workloads have a copy anywhere. */
  readonly placed: number
}

const maxDone = 30

export function moveBoard(workloads: Iterable<AnyObject>): MoveBoard {
  const moving: MoveCard[] = []
  const done: MoveCard[] = []
  let placed = 0
  for (const object of workloads) {
    if (isMoving(object)) moving.push(cardOf(object))
    else if (historyOf(object).length > 0) done.push(cardOf(object))
    if (Object.keys(placedOn(object as unknown as KubeObject)).length > 0) placed++
  }
  moving.sort((a, b) => text(oldestWait(a), oldestWait(b)))
  done.sort((a, b) => text(b.newest?.time ?? '', a.newest?.time ?? ''))
  return { moving, done: done.slice(0, maxDone), placed }
}

function cardOf(object: AnyObject): MoveCard {
  const { annotations, namespace = '', name } = object.metadata
  const cluster = annotations?.[clusterAnnotation] ?? ''
  const [newest] = historyOf(object)
  const key = `${cluster}|${object.kind ?? ''}|${namespace}/${name}`
  return { key, cluster, object, copies: copiesOf(object), newest, held: annotations?.[heldAnnotation] }
}

function oldestWait({ copies }: MoveCard): string {
  return copies.map(({ waitsSince, since }) => waitsSince ?? since ?? '~').reduce((a, b) => (a < b ? a : b), '~')
}

function text(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}
