// The controllers of SnapshotSchedules: one makes LogicalClusterSnapshots when it is time, the other deletes old ones.
import { lastTimeIn, nextTimeIn } from '#apimachinery/cron/index.ts'
import { systemClock, timestamp, type Clock } from '#async/index.ts'
import { tolerate } from '#apimachinery/status/index.ts'
import { ObjectIndex, type DeepReadonly, type Informer } from '#client/index.ts'
import {
  defaultRetention,
  defaultStartingDeadlineSeconds,
  logicalClusters,
  logicalClusterSnapshots,
  matches,
  setCondition,
  snapshotScheduleLabel,
  snapshotSchedules,
  transferOf,
  type ConditionUpdate,
  type LogicalCluster,
  type LogicalClusterSnapshot,
  type SnapshotSchedule,
  type SnapshotScheduleStatus,
} from '#crds/index.ts'
import { runLoop } from '#operator/framework/loop.ts'
import type { OperatorContext, OperatorController } from '#operator/framework/operator-context.ts'
import { recordEvent } from '#operator/framework/record-event.ts'
import type { ReconcileResult } from '#reconcile/index.ts'
import { isTimeZone, keptByRetention } from './retention.ts'

/** Objects that a schedule writes at the same time. */
const parallel = 8
/** Timers have an upper bound. */
const maxWaitSeconds = 3600

type Seen = DeepReadonly<SnapshotSchedule>
type SeenSnapshot = DeepReadonly<LogicalClusterSnapshot>

/** Makes snapshots at their times. */
export function snapshotSchedulesController({
  clock = systemClock,
}: { readonly clock?: Clock } = {}): OperatorController {
  return {
    name: 'snapshot-schedules',
    async run(context, { signal, started }) {
      const schedules = context.informers.of<SnapshotSchedule>(snapshotSchedules)
      const snapshots = context.informers.of<LogicalClusterSnapshot>(logicalClusterSnapshots)
      const clusters = context.informers.of<LogicalCluster>(logicalClusters)
      using index = indexOf(snapshots)
      started()
      const keeper = new Schedules(context, { schedules, clusters, index, clock })
      await runLoop(
        {
          name: 'snapshot-schedules',
          workers: 2,
          informers: [schedules, snapshots, clusters],
          fairnessKey: (name) => name,
          follow: (add) => [
            schedules.onChange(({ key, before, after }) => {
              if (after !== undefined && before?.metadata.generation !== after.metadata.generation) add(key)
            }),
          ],
          reconcile: (name, life) => keeper.reconcile(name, life),
        },
        context,
        signal,
      )
    },
  }
}

/** Deletes snapshots that their schedule does not keep, once a newer one is complete. */
export function snapshotRetentionController(): OperatorController {
  return {
    name: 'snapshot-retention',
    async run(context, { signal, started }) {
      const schedules = context.informers.of<SnapshotSchedule>(snapshotSchedules)
      const snapshots = context.informers.of<LogicalClusterSnapshot>(logicalClusterSnapshots)
      using index = indexOf(snapshots)
      started()
      await runLoop(
        {
          name: 'snapshot-retention',
          workers: 2,
          informers: [schedules, snapshots],
          fairnessKey: (key) => key.split('/')[0] ?? '',
          follow: (add) => [
            snapshots.onChange(({ after }) => {
              const group = after && groupOf(after)
              if (group !== undefined && after?.status?.phase === 'Completed') add(group)
            }),
            schedules.onChange(({ key, before, after }) => {
              if (before === undefined || before.metadata.generation === after?.metadata.generation) return
              for (const one of snapshots.store.list()) {
                const group = groupOf(one)
                if (group?.startsWith(`${key}/`) === true) add(group)
              }
            }),
          ],
          reconcile: async (group, life) => {
            const schedule = schedules.store.get(group.split('/')[0] ?? '')
            if (schedule !== undefined) await deleteOld(schedule, [...index.of(group)], context, life)
          },
        },
        context,
        signal,
      )
    },
  }
}

/** Snapshots by schedule and logical cluster. */
function indexOf(snapshots: Informer<LogicalClusterSnapshot>): ObjectIndex<LogicalClusterSnapshot> {
  return new ObjectIndex(snapshots, (_, object) => {
    const group = groupOf(object)
    return group === undefined ? [] : [group]
  })
}

function groupOf({ metadata, spec }: SeenSnapshot): string | undefined {
  const schedule = metadata.labels?.[snapshotScheduleLabel]
  return schedule === undefined ? undefined : `${schedule}/${spec.logicalCluster}`
}

interface Dependencies {
  readonly schedules: Informer<SnapshotSchedule>
  readonly clusters: Informer<LogicalCluster>
  readonly index: ObjectIndex<LogicalClusterSnapshot>
  readonly clock: Clock
}

/** What one look at a schedule found. Absent parts of the status stay as they are. */
interface Outcome {
  readonly active: Omit<ConditionUpdate, 'type'>
  /** Logical clusters that are selected and are at another installation. */
  readonly moved?: readonly DeepReadonly<LogicalCluster>[]
  readonly status?: SnapshotScheduleStatus
  readonly againMs?: number
}

class Schedules {
  readonly #context: OperatorContext
  readonly #deps: Dependencies

  constructor(context: OperatorContext, deps: Dependencies) {
    this.#context = context
    this.#deps = deps
  }

  async reconcile(name: string, signal: AbortSignal): Promise<ReconcileResult> {
    const schedule = this.#deps.schedules.store.get(name)
    if (schedule === undefined || schedule.metadata.deletionTimestamp !== undefined) return {}
    const outcome = await this.#look(schedule, signal)
    await this.#write(schedule, outcome, signal)
    if (outcome.againMs === undefined) return {}
    return { requeueAfterSeconds: Math.min(maxWaitSeconds, Math.max(0.1, outcome.againMs / 1000)) }
  }

  async #look(schedule: Seen, signal: AbortSignal): Promise<Outcome> {
    const { spec, status, metadata } = schedule
    const { timeZone = 'UTC', startingDeadlineSeconds = defaultStartingDeadlineSeconds } = spec
    if (spec.suspend === true) return { active: said('Suspended', 'spec.suspend is true: nothing is taken or deleted') }
    if (!isTimeZone(timeZone)) return { active: said('ScheduleInvalid', `there is no time zone "${timeZone}"`) }
    const zoned = { schedule: spec.schedule, timeZone }
    const now = this.#deps.clock.now()
    const next = nextTimeIn(zoned, now)
    if (next === undefined)
      return { active: said('ScheduleInvalid', `"${spec.schedule}" has no time in the next years`) }
    const { here, moved } = this.#selected(schedule)
    const active =
      here.length === 0 && moved.length > 0
        ? said('Moved', `nothing is taken: ${textOfMoved(moved)}`)
        : ({ status: 'True', reason: 'Scheduled', message: `the next run is at ${timestamp(next)}` } as const)
    const againMs = next - now
    const nextScheduleTime = timestamp(next)
    const due = lastTimeIn(zoned, now)
    const since = Date.parse(status?.lastScheduleTime ?? metadata.creationTimestamp ?? '')
    if (due === undefined || !(due > since)) return { active, moved, status: { nextScheduleTime }, againMs }
    const lastScheduleTime = timestamp(due)
    if (now - due > startingDeadlineSeconds * 1000) {
      const message = `the run of ${lastScheduleTime} was missed: it is more than ${startingDeadlineSeconds} s ago`
      await this.#event(schedule, { type: 'Warning', reason: 'RunMissed', message }, signal)
      return { active, moved, status: { nextScheduleTime, lastScheduleTime }, againMs }
    }
    const counts = await this.#run(schedule, here, { due, signal })
    return { active, moved, status: { nextScheduleTime, lastScheduleTime, ...counts }, againMs }
  }

  /** The logical clusters that the schedule selects. What has moved is saved where it is written. */
  #selected({ spec }: Seen): Record<'here' | 'moved', DeepReadonly<LogicalCluster>[]> {
    const selected = this.#deps.clusters.store
      .list()
      .filter((one) => one.metadata.deletionTimestamp === undefined && matches(spec.selector, one.metadata.labels))
    const { here = [], moved = [] } = Object.groupBy(selected, (one) =>
      transferOf(one)?.moved === true ? 'moved' : 'here',
    )
    return { here, moved }
  }

  /** Makes the snapshots of a run. A run that was broken off makes those that are missing. */
  async #run(
    schedule: Seen,
    selected: readonly DeepReadonly<LogicalCluster>[],
    { due, signal }: { readonly due: number; readonly signal: AbortSignal },
  ): Promise<{ selected: number; skipped: number }> {
    const { name } = schedule.metadata
    const waiting = selected.map((one) => one.metadata.name).reverse()
    let skipped = 0
    const makeNext = async (): Promise<void> => {
      for (let cluster = waiting.pop(); cluster !== undefined; cluster = waiting.pop()) {
        const snapshot = this.#snapshotOf(schedule, cluster, due)
        const others = [...this.#deps.index.of(`${name}/${cluster}`)]
        const isUnfinished = (one: SeenSnapshot): boolean =>
          one.metadata.name !== snapshot.metadata.name && !['Completed', 'Failed'].includes(one.status?.phase ?? '')
        if (others.some(isUnfinished)) skipped++
        else
          await this.#context.clusters
            .create(logicalClusterSnapshots, snapshot, { signal })
            .catch(tolerate('AlreadyExists'))
      }
    }
    await Promise.all(Array.from({ length: parallel }, makeNext))
    if (skipped > 0) {
      const message = `${skipped} of ${selected.length} logical clusters were left out: their snapshot before has not ended`
      await this.#event(schedule, { type: 'Warning', reason: 'Skipped', message }, signal)
    }
    return { selected: selected.length, skipped }
  }

  #snapshotOf({ metadata, spec }: Seen, cluster: string, due: number): LogicalClusterSnapshot {
    const { name } = metadata
    return {
      apiVersion: 'kcp.dev/v1alpha1',
      kind: 'LogicalClusterSnapshot',
      // As CronJobs call their Jobs: the minute of the run, so that a run makes each of them once.
      metadata: { name: `${name}-${cluster}-${Math.floor(due / 60_000)}`, labels: { [snapshotScheduleLabel]: name } },
      spec: {
        logicalCluster: cluster,
        store: spec.store,
        ...(spec.volumes !== undefined && { volumes: spec.volumes }),
        ...(spec.deletionPolicy !== undefined && { deletionPolicy: spec.deletionPolicy }),
      },
    }
  }

  async #write(schedule: Seen, { active, moved = [], status = {} }: Outcome, signal: AbortSignal): Promise<void> {
    const { name, generation = 0 } = schedule.metadata
    const now = timestamp(this.#deps.clock.now())
    const before = schedule.status?.conditions
    const others = before?.filter(({ type }) => type !== 'LeftOut')
    const left = before?.filter(({ type }) => type === 'LeftOut')
    const observedGeneration = generation
    const leftOut: ConditionUpdate[] =
      moved.length === 0
        ? []
        : [{ type: 'LeftOut', status: 'True', reason: 'Moved', message: textOfMoved(moved), observedGeneration }]
    const conditions = [
      ...setCondition(others, { type: 'Active', observedGeneration, ...active }, now),
      ...leftOut.flatMap((update) => setCondition(left, update, now)),
    ]
    const after = { ...status, observedGeneration, conditions }
    const isSame = Object.entries(after).every(
      ([field, value]) =>
        JSON.stringify(value) === JSON.stringify((schedule.status as Record<string, unknown> | undefined)?.[field]),
    )
    if (isSame) return
    await this.#context.clusters.patch(
      snapshotSchedules,
      { name },
      'merge',
      { status: after },
      { subresource: 'status', signal },
    )
    const { reason, message } = active
    const was = before?.find(({ type }) => type === 'Active')
    if (active.status === 'False' && was?.reason !== reason)
      await this.#event(schedule, { type: 'Warning', reason, message }, signal)
  }

  async #event(
    schedule: Seen,
    text: { readonly type: 'Normal' | 'Warning'; readonly reason: string; readonly message: string },
    signal: AbortSignal,
  ): Promise<void> {
    const { clusters: client, log } = this.#context
    const now = timestamp(this.#deps.clock.now())
    await recordEvent(schedule, text, { client, component: 'kcp-snapshots', now, log }, signal)
  }
}

/** How many logical clusters a message names. */
const maxNamed = 5

function textOfMoved(moved: readonly DeepReadonly<LogicalCluster>[]): string {
  const named = moved
    .slice(0, maxNamed)
    .map((one) => `"${one.metadata.name}" has moved to ${transferOf(one)?.with ?? 'another installation'}`)
  const more = moved.length > maxNamed ? ` and ${moved.length - maxNamed} others have moved` : ''
  return `${named.join(', ')}${more}; a schedule there saves what is written there`
}

function said(reason: string, message: string): Outcome['active'] {
  return { status: 'False', reason, message }
}

/** Reasons for which a volume would be left out of any snapshot. */
const lastingReasons: ReadonlySet<string | undefined> = new Set(['Ephemeral', 'NotBound', 'NotCSI', 'NoSnapshotClass'])

/** Whether it lacks no volume that it would have if all members were there. */
function hasEveryVolume({ status }: SeenSnapshot): boolean {
  return (status?.volumes ?? []).every(({ state, reason }) => state === 'Included' || lastingReasons.has(reason))
}

/** Deletes the snapshots of one logical cluster that the schedule does not keep, and those that failed before the newest. */
async function deleteOld(
  { spec }: Seen,
  snapshots: readonly SeenSnapshot[],
  { clusters }: OperatorContext,
  signal: AbortSignal,
): Promise<void> {
  const { timeZone = 'UTC', retention = defaultRetention, suspend = false } = spec
  if (suspend || !isTimeZone(timeZone)) return
  const complete = snapshots.flatMap((one) =>
    one.status?.phase === 'Completed'
      ? [
          {
            name: one.metadata.name,
            takenMs: Date.parse(one.status.startTime ?? one.metadata.creationTimestamp ?? ''),
            isWhole: hasEveryVolume(one),
          },
        ]
      : [],
  )
  if (complete.length === 0) return
  const kept = keptByRetention(complete, retention, timeZone)
  const newestMs = Math.max(...complete.map(({ takenMs }) => takenMs))
  for (const { metadata, status } of snapshots) {
    if (metadata.deletionTimestamp !== undefined) continue
    const isOld = status?.phase === 'Completed' && !kept.has(metadata.name)
    const hasFailed = status?.phase === 'Failed' && Date.parse(status.startTime ?? '') < newestMs
    if (!isOld && !hasFailed) continue
    const { name, uid = '' } = metadata
    await clusters.delete(logicalClusterSnapshots, { name }, { uid, signal }).catch(tolerate('NotFound', 'Conflict'))
  }
}
