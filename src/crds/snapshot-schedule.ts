// SnapshotSchedule: makes LogicalClusterSnapshots at times of a cron expression, and deletes old ones.
import type { Condition, KubeObject, ObjectMeta } from '#apimachinery/meta/index.ts'
import { ageColumn, conditionColumn, conditionsSchema, observedGenerationSchema, reasonColumn } from './conditions.ts'
import type { JsonSchema, Kind } from './crd.ts'
import { labelSelectorSchema, type LabelSelector } from './label-selector.ts'
import {
  snapshotDeletionPolicies,
  snapshotVolumePolicies,
  type SnapshotDeletionPolicy,
  type SnapshotVolumePolicy,
} from './logical-cluster-snapshot.ts'

export interface SnapshotSchedule extends KubeObject {
  apiVersion: 'kcp.dev/v1alpha1'
  kind: 'SnapshotSchedule'
  metadata: ObjectMeta & { name: string }
  spec: SnapshotScheduleSpec
  status?: SnapshotScheduleStatus
}

export interface SnapshotScheduleSpec {
  /** Five fields of cron. */
  schedule: string
  /** IANA name. Default UTC. */
  timeZone?: string
  /** Which LogicalClusters, by their labels. Absent or empty: all. */
  selector?: LabelSelector
  /** The name of a SnapshotStore. */
  store: string
  suspend?: boolean
  /** How many seconds late a run may begin. Default 3600. */
  startingDeadlineSeconds?: number
  retention?: SnapshotRetention
  deletionPolicy?: SnapshotDeletionPolicy
  /** Default Exclude. */
  volumes?: SnapshotVolumePolicy
}

/** How many snapshots of each logical cluster are kept: the union of all rules. */
export interface SnapshotRetention {
  last?: number
  hourly?: number
  daily?: number
  weekly?: number
  monthly?: number
}

export interface SnapshotScheduleStatus {
  /** RFC 3339: the time of the last run whose snapshots were all made. */
  lastScheduleTime?: string
  nextScheduleTime?: string
  /** LogicalClusters that the selector matched in the last run. */
  selected?: number
  /** Logical clusters left out in the last run, because their snapshot before had not ended. */
  skipped?: number
  observedGeneration?: number
  conditions?: Condition[]
}

export const snapshotScheduleConditions = ['Active', 'LeftOut'] as const

export const snapshotSchedules = { group: 'kcp.dev', version: 'v1alpha1', resource: 'snapshotschedules' } as const

/** Label of a LogicalClusterSnapshot: the name of the SnapshotSchedule that has made it and may delete it. */
export const snapshotScheduleLabel = 'kcp.dev/snapshot-schedule'

export const defaultRetention: SnapshotRetention = { last: 7 }
export const defaultStartingDeadlineSeconds = 3600

/** The fields of cron, strictly: what it does not know, it would take for something else. */
const schedulePattern = (() => {
  const word = (text: string): string => text.replace(/[a-z]/g, (letter) => `[${letter}${letter.toUpperCase()}]`)
  const words = (texts: string): string => texts.split(' ').map(word).join('|')
  const values = [
    '[0-5]?[0-9]',
    '[01]?[0-9]|2[0-3]',
    '0?[1-9]|[12][0-9]|3[01]',
    `0?[1-9]|1[0-2]|${words('jan feb mar apr may jun jul aug sep oct nov dec')}`,
    `[0-7]|${words('sun mon tue wed thu fri sat')}`,
  ]
  const fields = values.map((value) => {
    const item = `([*?]|(${value})(-(${value}))?)(/[1-9][0-9]{0,2})?`
    return `${item}(,${item})*`
  })
  return `^(@(yearly|annually|monthly|weekly|daily|midnight|hourly)|${fields.join(' +')})$`
})()

const keep = (description: string, minimum = 0): JsonSchema => ({
  type: 'integer',
  format: 'int32',
  minimum,
  maximum: 1000,
  description,
})
const count: JsonSchema = { type: 'integer', format: 'int32', minimum: 0 }
const time: JsonSchema = { type: 'string', format: 'date-time' }

export const snapshotScheduleKind: Kind = {
  group: snapshotSchedules.group,
  version: snapshotSchedules.version,
  kind: 'SnapshotSchedule',
  plural: snapshotSchedules.resource,
  shortNames: ['sns'],
  categories: ['kcp'],
  scope: 'Cluster',
  description: 'A SnapshotSchedule takes snapshots of logical clusters at set times, and deletes old ones.',
  properties: {
    spec: {
      type: 'object',
      description: 'The desired state.',
      required: ['schedule', 'store'],
      properties: {
        schedule: {
          type: 'string',
          minLength: 1,
          maxLength: 256,
          pattern: schedulePattern,
          description:
            'When, as in a CronJob: five fields of cron, such as "0 3 * * *", or @hourly, @daily and the like.',
        },
        timeZone: { type: 'string', minLength: 1, maxLength: 64, description: 'An IANA name. Default UTC.' },
        selector: labelSelectorSchema('Which LogicalClusters, by their labels. Absent or empty: all.'),
        store: { type: 'string', minLength: 1, maxLength: 253, description: 'The name of the SnapshotStore.' },
        suspend: { type: 'boolean', description: 'Takes no snapshots and deletes none.' },
        startingDeadlineSeconds: {
          type: 'integer',
          format: 'int64',
          minimum: 10,
          maximum: 31_536_000,
          default: defaultStartingDeadlineSeconds,
          description:
            'A run that the operator has missed is made up for within this many seconds; of several, only the last one.',
        },
        retention: {
          type: 'object',
          description:
            'Which snapshots of each logical cluster are kept; one that any rule keeps stays. The newest complete one always stays.',
          default: { ...defaultRetention },
          properties: {
            last: keep('The last ones.'),
            hourly: keep('The last one of each of so many hours that have one.'),
            daily: keep('The last one of each of so many days, in the time zone.'),
            weekly: keep('The last one of each of so many weeks, which begin on Monday.'),
            monthly: keep('The last one of each of so many months.'),
          },
        },
        volumes: {
          type: 'string',
          enum: [...snapshotVolumePolicies],
          default: 'Exclude',
          description: 'Whether the storage of member clusters takes snapshots of the volumes of claims, too.',
        },
        deletionPolicy: {
          type: 'string',
          enum: [...snapshotDeletionPolicies],
          default: 'Delete',
          description: 'What becomes of a stored snapshot when its object is deleted.',
        },
      },
    },
    status: {
      type: 'object',
      description: 'The observed state; written by the operator.',
      properties: {
        lastScheduleTime: { ...time, description: 'The time of the last run whose snapshots were all made.' },
        nextScheduleTime: { ...time, description: 'The time of the next run.' },
        selected: { ...count, description: 'LogicalClusters that were selected in the last run.' },
        skipped: { ...count, description: 'Of these, left out because their snapshot before had not ended.' },
        observedGeneration: observedGenerationSchema,
        conditions: conditionsSchema(snapshotScheduleConditions),
      },
    },
  },
  required: ['spec'],
  validations: [
    {
      rule: 'self.metadata.name.size() <= 63',
      message: 'the name has at most 63 characters, because it is the value of a label',
    },
  ],
  status: true,
  columns: [
    { name: 'Schedule', type: 'string', jsonPath: '.spec.schedule' },
    { name: 'Time zone', type: 'string', jsonPath: '.spec.timeZone' },
    { name: 'Store', type: 'string', jsonPath: '.spec.store' },
    { name: 'Suspend', type: 'boolean', jsonPath: '.spec.suspend' },
    conditionColumn('Active', 'Active'),
    { ...reasonColumn('Reason', 'Active'), priority: 1 },
    { name: 'Last', type: 'date', jsonPath: '.status.lastScheduleTime' },
    ageColumn,
  ],
}
