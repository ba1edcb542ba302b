// VolumeMove: the move of one claim's data from one member to another. Written by the operator alone; admins read it.
import type { Condition, KubeObject, ObjectMeta } from '#apimachinery/meta/index.ts'
import { ageColumn, conditionsSchema } from './conditions.ts'
import type { Kind } from './crd.ts'

export interface VolumeMove extends KubeObject {
  apiVersion: 'kcp.dev/v1alpha1'
  kind: 'VolumeMove'
  metadata: ObjectMeta & { name: string }
  spec: VolumeMoveSpec
  status?: VolumeMoveStatus
}

/**
 * How the data of a claim gets into another member. Copy: movers read it in the one and write it in the other. Snapshot,
 * Shared: both members use one storage, where the new volume is made from a snapshot, or is the same. Replicate: as Copy,
 * and a copy is kept up to date in another member all the time.
 */
export const volumeWays = ['Copy', 'Snapshot', 'Shared', 'Replicate'] as const
export type VolumeWay = (typeof volumeWays)[number]
/** Restore: nothing moves; the claim gets a new volume from a snapshot that its member keeps. */
const volumeMoveWays = [...volumeWays, 'Restore'] as const

export interface VolumeMoveSpec {
  logicalCluster: string
  namespace: string
  claim: string
  /** uid of the claim in the logical cluster. */
  claimUid: string
  from: string
  to: string
  way: (typeof volumeMoveWays)[number]
  /** Of way Restore: what the new volume is made from. */
  snapshot?: RestoredVolume
  /** StorageClass of the new volume. Absent: the class of the claim. */
  storageClass?: string
  /** Bytes per second. Absent: no limit. */
  bandwidth?: number
  /** How long the old volume is kept, seconds. */
  retainSeconds: number
  /** Whether the tenant must agree before the application stops. */
  requireConsent?: boolean
  /** Of a copy that is kept up to date: seconds between two rounds. */
  everySeconds?: number
}

/** The snapshot of a volume, by the record of the operator. */
export interface RestoredVolume {
  /** The name of the LogicalClusterSnapshot. */
  name: string
  driver: string
  handle: string
  /** Bytes that the new volume needs at least. */
  bytes?: number
}

/**
 * In order. Preparing: movers and a new volume are made. Copying: rounds while the application runs. Ready: the
 * application may stop. Finishing: the application has stopped, and the last round compares all data. Binding: the new
 * volume becomes that of the claim. Moved: the claim is in the new member, and the old one keeps its volume for a
 * while. Cancelled: the claim stays where it is.
 */
export const volumeMovePhases = ['Preparing', 'Copying', 'Ready', 'Finishing', 'Binding', 'Moved', 'Cancelled'] as const
export type VolumeMovePhase = (typeof volumeMovePhases)[number]

/** Direct: the mover of the new member connects to the pod of the other one. Relayed: through the operator. */
export const volumeConnections = ['Direct', 'Relayed'] as const
export type VolumeConnection = (typeof volumeConnections)[number]

export interface VolumeMoveStatus {
  phase?: VolumeMovePhase
  /** Completed rounds. */
  rounds?: number
  /** The content of the volume when it was last read. */
  bytes?: number
  entries?: number
  /** Of the present round: how many of the bytes have been read. */
  doneBytes?: number
  /** All rounds together: what the movers have sent each other. */
  sentBytes?: number
  /** How the movers of the present round, or of the last one, reach each other. */
  connection?: { way: VolumeConnection; message: string }
  /** Of the present round, bytes per second. */
  rate?: number
  /** RFC 3339: when the last round ended, and what it found changed. */
  lastRound?: { completionTime: string; seconds: number; changedBytes: number }
  /** Seconds for which the application will probably be stopped. */
  expectedDowntimeSeconds?: number
  /** RFC 3339, when the application had stopped and when the claim was in the new member. */
  stoppedTime?: string
  movedTime?: string
  /** What the new volume cannot keep, of the old one. */
  notKept?: string[]
  /** RFC 3339: the new volume has nothing of what was written after this time, because the old member was lost. */
  lostAfter?: string
  /** Hash of the content and metadata of both volumes when they were compared. */
  digest?: string
  /** The PersistentVolume in the new member. */
  volumeName?: string
  /** One line for people; changes a few times a minute. */
  summary?: string
  observedGeneration?: number
  conditions?: Condition[]
}

/** Verified: the last round compared all data. Progressing: False says what is waited for, or what has gone wrong. */
export const volumeMoveConditions = ['Progressing', 'Verified', 'Moved'] as const

export const volumeMoves = { group: 'kcp.dev', version: 'v1alpha1', resource: 'volumemoves' } as const

/** Finalizer of a VolumeMove: volumes and pods of it may be in members. */
export const volumeMoveFinalizer = 'kcp.dev/volume-move'

/** How many volumes are copied at a time. */
export interface VolumeMoveLimits {
  readonly total: number
  /** Of the moves that a member takes part in, as the old or as the new one. */
  readonly perMember: number
  readonly perLogicalCluster: number
}

export const defaultVolumeMoveLimits: VolumeMoveLimits = { total: 20, perMember: 4, perLogicalCluster: 4 }

/** How many entries that cannot be kept the status names. */
export const maxNotKept = 20

const text = { type: 'string', maxLength: 1024 } as const
const name = { type: 'string', minLength: 1, maxLength: 253 } as const
const count = { type: 'integer', format: 'int64', minimum: 0 } as const
const time = { type: 'string', format: 'date-time' } as const

export const volumeMoveKind: Kind = {
  group: volumeMoves.group,
  version: volumeMoves.version,
  kind: 'VolumeMove',
  plural: volumeMoves.resource,
  shortNames: ['vmv'],
  categories: ['kcp'],
  scope: 'Cluster',
  description:
    'A VolumeMove is the move of the data of one claim from one member cluster to another. The operator makes it when a workload moves, and deletes it when the old volume is deleted.',
  properties: {
    spec: {
      type: 'object',
      description: 'What moves; written once, by the operator.',
      required: ['logicalCluster', 'namespace', 'claim', 'claimUid', 'from', 'to', 'way', 'retainSeconds'],
      properties: {
        logicalCluster: { ...name, description: 'The name of the LogicalCluster.' },
        namespace: { ...name, maxLength: 63, description: 'The namespace of the claim in it.' },
        claim: { ...name, description: 'The name of the PersistentVolumeClaim.' },
        claimUid: { ...name, description: 'The uid of the PersistentVolumeClaim.' },
        from: { ...name, description: 'The member cluster that has the data.' },
        to: { ...name, description: 'The member cluster that gets the data.' },
        way: {
          type: 'string',
          enum: [...volumeMoveWays],
          description: 'How the data gets there. Restore: from a snapshot that the member cluster keeps.',
        },
        snapshot: {
          type: 'object',
          description: 'Of way Restore: what the new volume is made from.',
          required: ['name', 'driver', 'handle'],
          properties: {
            name: { ...name, description: 'The name of the LogicalClusterSnapshot.' },
            driver: { ...name, description: 'The CSI driver.' },
            handle: { ...text, description: 'What the storage calls its snapshot.' },
            bytes: { ...count, description: 'The size that the new volume needs at least.' },
          },
        },
        storageClass: { ...name, description: 'The StorageClass of the new volume. Default: that of the claim.' },
        bandwidth: { ...count, minimum: 1, description: 'Bytes per second. Default: no limit.' },
        retainSeconds: {
          type: 'integer',
          format: 'int32',
          minimum: 0,
          description: 'How long the old volume is kept, in seconds.',
        },
        everySeconds: {
          type: 'integer',
          format: 'int32',
          minimum: 5,
          description: 'Of a copy that is kept up to date: the seconds between two rounds.',
        },
        requireConsent: { type: 'boolean', description: 'Whether the tenant must agree before the application stops.' },
      },
      'x-kubernetes-validations': [{ rule: 'self == oldSelf', message: 'it cannot be changed' }],
    },
    status: {
      type: 'object',
      description: 'The observed state; written by the operator.',
      properties: {
        phase: { type: 'string', enum: [...volumeMovePhases] },
        rounds: { type: 'integer', format: 'int32', minimum: 0, description: 'Completed rounds of copying.' },
        bytes: { ...count, description: 'The content of the volume, in bytes, when it was last read.' },
        entries: { ...count, description: 'Files, directories and other entries of the volume.' },
        doneBytes: { ...count, description: 'How many of the bytes the present round has read.' },
        sentBytes: { ...count, description: 'The bytes that all rounds together have sent.' },
        connection: {
          type: 'object',
          description: 'How the data gets from one member cluster to the other.',
          required: ['way', 'message'],
          properties: {
            way: {
              type: 'string',
              enum: [...volumeConnections],
              description:
                'Direct: from pod to pod, between members with service network Flat. Relayed: through kcp. Both with TLS from end to end.',
            },
            message: { ...text, description: 'The address, or the reason why it is not direct.' },
          },
        },
        rate: { ...count, description: 'Bytes per second in the present round.' },
        lastRound: {
          type: 'object',
          description: 'The last completed round.',
          required: ['completionTime', 'seconds', 'changedBytes'],
          properties: {
            completionTime: time,
            seconds: { type: 'number', minimum: 0 },
            changedBytes: { ...count, description: 'The bytes that had changed since the round before.' },
          },
        },
        expectedDowntimeSeconds: {
          ...count,
          description: 'For how many seconds the application will probably be stopped.',
        },
        stoppedTime: { ...time, description: 'When the application had stopped.' },
        movedTime: { ...time, description: 'When the claim was in the new member cluster.' },
        notKept: {
          type: 'array',
          description: 'What the new volume cannot keep of the old one.',
          maxItems: maxNotKept + 1,
          'x-kubernetes-list-type': 'atomic',
          items: text,
        },
        lostAfter: {
          ...time,
          description:
            'The new volume has nothing that was written after this time, because the old member cluster was lost.',
        },
        digest: { ...text, description: 'A hash of the content and metadata of both volumes when they were compared.' },
        volumeName: { ...name, description: 'The PersistentVolume in the new member cluster.' },
        summary: { ...text, description: 'The progress, for people.' },
        observedGeneration: { type: 'integer', format: 'int64', minimum: 0 },
        conditions: conditionsSchema(volumeMoveConditions),
      },
    },
  },
  required: ['spec'],
  status: true,
  columns: [
    { name: 'Logical cluster', type: 'string', jsonPath: '.spec.logicalCluster' },
    { name: 'Namespace', type: 'string', jsonPath: '.spec.namespace' },
    { name: 'Claim', type: 'string', jsonPath: '.spec.claim' },
    { name: 'From', type: 'string', jsonPath: '.spec.from' },
    { name: 'To', type: 'string', jsonPath: '.spec.to' },
    { name: 'Phase', type: 'string', jsonPath: '.status.phase' },
    { name: 'Summary', type: 'string', jsonPath: '.status.summary' },
    ageColumn,
  ],
}
