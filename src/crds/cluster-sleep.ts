// Sleep of logical clusters: spec.sleep, status.sleep and condition Asleep. While one is asleep, its workloads have no
// pods in members; its API is served as always.
import type { Condition } from '#apimachinery/meta/index.ts'
import type { JsonSchema } from './crd.ts'

/** When a logical cluster sleeps. An empty one sleeps only when it is told to. */
export interface ClusterSleep {
  /** How long no request of its users may have come, such as `30m` or `1h30m`. Absent: idleness does not matter. */
  afterIdle?: string
  schedule?: SleepSchedule
  /** True: it sleeps until this is changed. False: it never sleeps. Absent: the other fields decide. */
  asleep?: boolean
  activity?: SleepActivity
}

/** Cron schedules, of which one may be absent. */
export interface SleepSchedule {
  /** Default UTC. */
  timeZone?: string
  sleep?: string
  wake?: string
}

/** Whose requests count. */
export interface SleepActivity {
  /** Default Ignore. */
  serviceAccounts?: 'Ignore' | 'Count'
  /** Users whose requests do not count, such as those of tools that poll. */
  ignoreUsers?: string[]
  ignoreGroups?: string[]
}

/** Times are RFC 3339. Exactly one of asleepSince and awakeSince is there. */
export interface ClusterSleepStatus {
  asleepSince?: string
  awakeSince?: string
  reason?: string
  /** For people: why, and what wakes it. */
  message?: string
  /** A request of its users, written by the API server at most every sleepStepMs. */
  lastRequestTime?: string
  /** Written by the API server when a user writes while it is asleep: the asleepSince that it saw. */
  writtenDuring?: string
  /** The orders that were carried out: the values of the two annotations. */
  orders?: { sleep?: string; wake?: string }
}

/**
 * Annotations of a LogicalCluster: orders to fall asleep and to wake up once, by any new value, as `kcp sleep` and
 * `kcp wake` write them. Annotations, because an order is not a wish: nobody keeps it in Git.
 */
export const sleepOrderAnnotation = 'kcp.dev/sleep-order'
export const wakeOrderAnnotation = 'kcp.dev/wake-order'
/** Longer orders are cut. */
export const maxOrder = 64

const second = 1000
const units: Readonly<Record<string, number>> = { h: 3600 * second, m: 60 * second, s: second }

/** Milliseconds of a duration such as `1h30m`; undefined if it is none. */
export function sleepDurationMs(text: string | undefined): number | undefined {
  if (text === undefined || !/^([0-9]+[hms])+$/.test(text)) return undefined
  return [...text.matchAll(/([0-9]+)([hms])/g)].reduce(
    (sum, [, count = '0', unit = '']) => sum + Number(count) * (units[unit] ?? 0),
    0,
  )
}

/**
 * How exactly the time of the last request is known, in milliseconds: a tenth of afterIdle, at most five minutes.
 * Undefined without afterIdle: then no requests are noted while it is awake.
 */
export function sleepStepMs(sleep: Pick<ClusterSleep, 'afterIdle'> | undefined): number | undefined {
  const idleMs = sleepDurationMs(sleep?.afterIdle)
  return idleMs === undefined ? undefined : Math.min(300 * second, idleMs / 10)
}

/** Condition Asleep; undefined for a logical cluster that has no rules of sleep, or is not observed yet. */
export function asleepCondition(
  sleep: unknown,
  status: Readonly<Omit<ClusterSleepStatus, 'orders'>> | undefined,
): Pick<Condition, 'type' | 'status' | 'reason' | 'message'> | undefined {
  if (sleep === undefined || status?.reason === undefined) return undefined
  const { asleepSince, reason, message = '' } = status
  return { type: 'Asleep', status: asleepSince === undefined ? 'False' : 'True', reason, message }
}

/** The condition of a workload while its logical cluster is asleep: why it has no pods, and what wakes it. */
export function asleepMessage(status: Readonly<Omit<ClusterSleepStatus, 'orders'>> | undefined): string | undefined {
  const { asleepSince, message = '' } = status ?? {}
  return asleepSince === undefined ? undefined : `its logical cluster is asleep since ${asleepSince}: ${message}`
}

/** One field of a cron schedule: numbers or names, ranges, steps and lists of them. */
function cronField(value: string): string {
  const part = `([*]|${value}(-${value})?)(/[1-9][0-9]?)?`
  return `${part}(,${part})*`
}
const monthNames = 'jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec'
const dayNames = 'sun|mon|tue|wed|thu|fri|sat'
const cronFields = [
  '[0-5]?[0-9]',
  '([01]?[0-9]|2[0-3])',
  '(0?[1-9]|[12][0-9]|3[01])',
  `(0?[1-9]|1[0-2]|${monthNames}|${monthNames.toUpperCase()})`,
  `([0-7]|${dayNames}|${dayNames.toUpperCase()})`,
].map(cronField)

const cron = (what: string): JsonSchema => ({
  type: 'string',
  maxLength: 128,
  pattern: `^${cronFields.join(' ')}$`,
  description: `Cron schedule with five fields (minute, hour, day, month, day of the week): when it ${what}.`,
})

const names = (description: string): JsonSchema => ({
  type: 'array',
  maxItems: 64,
  'x-kubernetes-list-type': 'set',
  items: { type: 'string', minLength: 1, maxLength: 253 },
  description,
})

/** The shortest afterIdle: a shorter one would end pods while somebody thinks. */
const leastIdle = '1m'

export const clusterSleepSchema: JsonSchema = {
  type: 'object',
  description:
    'When its workloads have no pods in members. Its API is served all the time, and none of its objects changes. The first write of its users wakes it.',
  properties: {
    afterIdle: {
      type: 'string',
      minLength: 2,
      maxLength: 32,
      pattern: '^([0-9]{1,5}h)?([0-9]{1,6}m)?([0-9]{1,7}s)?$',
      description:
        'It falls asleep when no request of its users came for so long, such as 30m or 1h30m. At least 1m. Requests of ServiceAccounts, of kcp and of the system do not count.',
      'x-kubernetes-validations': [
        {
          rule: `duration(self) >= duration('${leastIdle}')`,
          message: `must be at least ${leastIdle}, such as 30m or 1h30m`,
        },
      ],
    },
    schedule: {
      type: 'object',
      description: 'Times at which it falls asleep and wakes up.',
      properties: {
        timeZone: {
          type: 'string',
          minLength: 1,
          maxLength: 64,
          description: 'Name of the time zone of the schedules, such as Europe/Berlin. Default UTC.',
          'x-kubernetes-validations': [
            {
              rule: "timestamp('2000-01-01T00:00:00Z').getHours(self) >= 0",
              message: 'must be the name of a time zone, such as Europe/Berlin',
            },
          ],
        },
        sleep: cron('falls asleep, in use or not'),
        wake: cron('wakes up'),
      },
      'x-kubernetes-validations': [{ rule: 'has(self.sleep) || has(self.wake)', message: 'give sleep, wake, or both' }],
    },
    asleep: {
      type: 'boolean',
      description:
        'true: it sleeps until this is changed, and no write wakes it. false: it never sleeps. Absent: the other fields decide.',
    },
    activity: {
      type: 'object',
      description: 'Whose requests count.',
      properties: {
        serviceAccounts: {
          type: 'string',
          enum: ['Ignore', 'Count'],
          description: 'Whether requests of its ServiceAccounts count, such as those of pods. Default Ignore.',
        },
        ignoreUsers: names('Users whose requests do not count, such as those of a tool that polls.'),
        ignoreGroups: names('Groups of such users.'),
      },
    },
  },
}

const time = (description: string): JsonSchema => ({ type: 'string', format: 'date-time', description })
const order: JsonSchema = { type: 'string', maxLength: maxOrder }

export const clusterSleepStatusSchema: JsonSchema = {
  type: 'object',
  description: 'Whether it is asleep, where spec.sleep is set.',
  properties: {
    asleepSince: time('Since when it is asleep; absent while it is awake.'),
    awakeSince: time('Since when it is awake; absent while it is asleep.'),
    reason: { type: 'string', maxLength: 64, description: 'Why, in one word.' },
    message: { type: 'string', maxLength: 1024, description: 'Why, and what wakes it.' },
    lastRequestTime: time(
      'A request of its users. Written at most every tenth of spec.sleep.afterIdle, and every five minutes.',
    ),
    writtenDuring: time('The asleepSince during which a user wrote last.'),
    orders: {
      type: 'object',
      description: `The last orders that were carried out: values of the annotations ${sleepOrderAnnotation} and ${wakeOrderAnnotation}.`,
      properties: { sleep: order, wake: order },
    },
  },
}
