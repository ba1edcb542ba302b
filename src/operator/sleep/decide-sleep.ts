// Whether a logical cluster sleeps. Awake, it falls asleep by the first cause that it finds; asleep, it wakes by the
// first. What was is in its status, so a restart changes nothing. Pure.
import { lastTimeIn, nextTimeIn } from '#apimachinery/cron/index.ts'
import { timestamp } from '#async/index.ts'
import type { DeepReadonly } from '#client/index.ts'
import {
  sleepDurationMs,
  sleepStepMs,
  type ClusterSleep,
  type ClusterSleepStatus,
  type SleepSchedule,
} from '#crds/index.ts'

export interface SleepInput {
  readonly name: string
  /** Absent: it never sleeps. */
  readonly spec?: DeepReadonly<ClusterSleep> | undefined
  readonly status?: DeepReadonly<ClusterSleepStatus> | undefined
  /** The values of the annotations with orders. */
  readonly orders: Orders
  /** Unix milliseconds, now and when this process began to look. */
  readonly nowMs: number
  readonly startedMs: number
}

interface Orders {
  readonly sleep?: string
  readonly wake?: string
}

export interface SleepDecision {
  /** The change of status.sleep as a merge patch: null removes it. Absent: nothing changes. */
  readonly patch?: Readonly<Record<string, unknown>> | null
  /** It falls asleep or wakes up by this change, and why. */
  readonly turns?: { readonly to: 'Asleep' | 'Awake'; readonly message: string }
  /** When the passing of time alone may change the decision, Unix milliseconds; absent: never. */
  readonly nextMs?: number
}

interface Asleep {
  readonly isAsleep: true
  readonly reason: 'Idle' | 'Scheduled' | 'Requested' | 'Held'
  readonly message: string
}

/** Why it woke up last. */
const wokenReason = ['WokenByWrite', 'WokenBySchedule', 'WokenByHand', 'RulesChanged'] as const

interface Awake {
  readonly isAsleep: false
  readonly reason: 'Awake' | 'KeptAwake' | 'ScheduleInvalid' | (typeof wokenReason)[number]
  readonly message: string
}

type State = Asleep | Awake

/** After it woke up, a schedule puts it to sleep again after this time at the earliest. */
export const leastAwakeMs = 60_000
/** How long a process looks before it finds a logical cluster idle: servers tell meanwhile which are in use. */
const firstLookMs = 300_000

export function decideSleep(input: SleepInput): SleepDecision {
  const { spec, status, nowMs } = input
  if (spec === undefined) {
    if (status === undefined) return {}
    const turns = { to: 'Awake', message: 'it has no rules of sleep any more' } as const
    return { patch: null, ...(status.asleepSince !== undefined && { turns }) }
  }
  const times = timesOf(spec.schedule, nowMs)
  const wasAsleep = status?.asleepSince !== undefined
  const next = wasAsleep ? whileAsleep(input, spec, times) : whileAwake(input, spec, times)
  const hasTurned = next.isAsleep !== wasAsleep
  const patch = changes(input, next)
  const nextMs = hasTurned ? nowMs : next.isAsleep ? times.nextWake : nextSleepMs(input, spec, times)
  return {
    ...(patch && { patch }),
    ...(hasTurned && {
      turns: { to: next.isAsleep ? ('Asleep' as const) : ('Awake' as const), message: next.message },
    }),
    ...(nextMs !== undefined && { nextMs }),
  }
}

function whileAsleep(input: SleepInput, spec: DeepReadonly<ClusterSleep>, times: Times): State {
  const { status = {}, orders } = input
  if (spec.asleep === true) return asleep(input, spec, times, 'Held')
  const cause = ((): Awake['reason'] | undefined => {
    if (spec.asleep === false) return 'KeptAwake'
    if (status.reason === 'Held' || isNew(orders.wake, status.orders?.wake)) return 'WokenByHand'
    if (status.writtenDuring === status.asleepSince) return 'WokenByWrite'
    if (isAfter(times.wake, parsed(status.asleepSince)) && !isAfter(times.sleep, times.wake)) return 'WokenBySchedule'
    const isRuled =
      status.reason === 'Idle' ? spec.afterIdle : status.reason === 'Scheduled' ? spec.schedule?.sleep : ''
    return isRuled === undefined ? 'RulesChanged' : undefined
  })()
  if (cause !== undefined) return awake(input, spec, times, cause)
  return asleep(input, spec, times, status.reason as Asleep['reason'])
}

function whileAwake(input: SleepInput, spec: DeepReadonly<ClusterSleep>, times: Times): State {
  const { status = {}, orders, nowMs } = input
  if (spec.asleep === false) return awake(input, spec, times, 'KeptAwake')
  const since = parsed(status.awakeSince) ?? nowMs
  const cause = ((): Asleep['reason'] | undefined => {
    if (spec.asleep === true) return 'Held'
    if (isNew(orders.sleep, status.orders?.sleep) && !isNew(orders.wake, status.orders?.wake)) return 'Requested'
    const isDue = isAfter(times.sleep, since) && !isAfter(times.wake, times.sleep)
    if (isDue && nowMs >= since + leastAwakeMs) return 'Scheduled'
    const idleMs = idleAtMs(input, spec)
    return idleMs !== undefined && nowMs >= idleMs ? 'Idle' : undefined
  })()
  if (cause !== undefined) return asleep(input, spec, times, cause)
  return awake(input, spec, times, wokenReason.find((one) => one === status.reason) ?? 'Awake')
}

/** When nobody will have used it for long enough. The last request is known only to the step. */
function idleAtMs({ status, nowMs, startedMs }: SleepInput, spec: DeepReadonly<ClusterSleep>): number | undefined {
  const idleMs = sleepDurationMs(spec.afterIdle)
  if (idleMs === undefined) return undefined
  const used = Math.max(parsed(status?.awakeSince) ?? nowMs, parsed(status?.lastRequestTime) ?? 0)
  return Math.max(used + idleMs + (sleepStepMs(spec) ?? 0), startedMs + Math.min(idleMs, firstLookMs))
}

function nextSleepMs(input: SleepInput, spec: DeepReadonly<ClusterSleep>, times: Times): number | undefined {
  if (spec.asleep === false) return undefined
  const since = parsed(input.status?.awakeSince) ?? input.nowMs
  const waits =
    isAfter(times.sleep, since) && !isAfter(times.wake, times.sleep) ? since + leastAwakeMs : times.nextSleep
  const all = [idleAtMs(input, spec), waits].filter((ms) => ms !== undefined)
  return all.length === 0 ? undefined : Math.min(...all)
}

function asleep(
  { name }: SleepInput,
  spec: DeepReadonly<ClusterSleep>,
  { nextWake }: Times,
  reason: Asleep['reason'],
): Asleep {
  const whys: Readonly<Record<Asleep['reason'], string>> = {
    Idle: `no request of its users came for ${spec.afterIdle ?? ''}`,
    Scheduled: 'its schedule put it to sleep',
    Requested: 'kcp sleep put it to sleep',
    Held: 'spec.sleep.asleep holds it asleep',
  }
  const bySchedule = nextWake === undefined ? '' : `, its schedule at ${timestamp(nextWake)}`
  const wakes =
    reason === 'Held'
      ? `kcp wake ${name} wakes it, and no write does`
      : `the first write of its users wakes it${bySchedule}, or kcp wake ${name}`
  return { isAsleep: true, reason, message: `${whys[reason]}; ${wakes}` }
}

function awake({ name }: SleepInput, spec: DeepReadonly<ClusterSleep>, times: Times, reason: Awake['reason']): Awake {
  if (spec.asleep === false)
    return { isAsleep: false, reason: 'KeptAwake', message: 'spec.sleep.asleep keeps it awake' }
  if (times.problem !== undefined)
    return { isAsleep: false, reason: 'ScheduleInvalid', message: `its schedule is not followed: ${times.problem}` }
  const { afterIdle, schedule } = spec
  const ways = [
    ...(afterIdle === undefined ? [] : [`after ${afterIdle} without a request of its users`]),
    ...(schedule?.sleep === undefined ? [] : [`by its schedule "${schedule.sleep}" (${schedule.timeZone ?? 'UTC'})`]),
    `by kcp sleep ${name}`,
  ]
  return { isAsleep: false, reason, message: `it falls asleep ${ways.join(', or ')}` }
}

/** The merge patch from the present status to the next one; undefined if nothing changes. */
function changes({ status = {}, orders, nowMs }: SleepInput, next: State): Record<string, unknown> | undefined {
  const now = timestamp(nowMs)
  const isSameState = next.isAsleep ? status.asleepSince !== undefined : status.awakeSince !== undefined
  const patch = {
    ...(!isSameState &&
      (next.isAsleep
        ? { asleepSince: now, awakeSince: null, writtenDuring: null }
        : { asleepSince: null, awakeSince: now, writtenDuring: null })),
    ...(next.reason !== status.reason && { reason: next.reason }),
    ...(next.message !== status.message && { message: next.message }),
    ...((isNew(orders.sleep, status.orders?.sleep) || isNew(orders.wake, status.orders?.wake)) && { orders }),
  }
  return Object.keys(patch).length === 0 ? undefined : patch
}

interface Times {
  /** The last times of the schedule and the next ones, Unix milliseconds; absent: there are none. */
  readonly sleep?: number | undefined
  readonly wake?: number | undefined
  readonly nextSleep?: number | undefined
  readonly nextWake?: number | undefined
  /** Why the schedule cannot be read. */
  readonly problem?: string
}

function timesOf(schedule: DeepReadonly<SleepSchedule> | undefined, nowMs: number): Times {
  if (schedule === undefined) return {}
  const { timeZone = 'UTC', sleep, wake } = schedule
  try {
    return {
      ...(sleep !== undefined && {
        sleep: lastTimeIn({ schedule: sleep, timeZone }, nowMs),
        nextSleep: nextTimeIn({ schedule: sleep, timeZone }, nowMs),
      }),
      ...(wake !== undefined && {
        wake: lastTimeIn({ schedule: wake, timeZone }, nowMs),
        nextWake: nextTimeIn({ schedule: wake, timeZone }, nowMs),
      }),
    }
  } catch (error) {
    if (!(error instanceof RangeError)) throw error
    return { problem: `"${timeZone}" is no time zone` }
  }
}

function isAfter(ms: number | undefined, other: number | undefined): boolean {
  return ms !== undefined && (other === undefined || ms > other)
}

function isNew(order: string | undefined, carriedOut: string | undefined): boolean {
  return order !== undefined && order !== carriedOut
}

function parsed(time: string | undefined): number | undefined {
  const ms = Date.parse(time ?? '')
  return Number.isNaN(ms) ? undefined : ms
}
