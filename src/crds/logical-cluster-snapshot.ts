// LogicalClusterSnapshot: one snapshot of a logical cluster in a SnapshotStore. Written by admins and schedules; the
// operator takes the snapshot once and deletes it with its object.
import type { Condition, DeepReadonly, KubeObject, ObjectMeta } from '#apimachinery/meta/index.ts'
import { ageColumn, conditionsSchema, observedGenerationSchema } from './conditions.ts'
import type { JsonSchema, Kind } from './crd.ts'

export interface LogicalClusterSnapshot extends KubeObject {
  apiVersion: 'kcp.dev/v1alpha1'
  kind: 'LogicalClusterSnapshot'
  metadata: ObjectMeta & { name: string }
  spec: LogicalClusterSnapshotSpec
  status?: LogicalClusterSnapshotStatus
}

export const snapshotDeletionPolicies = ['Delete', 'Retain'] as const
export type SnapshotDeletionPolicy = (typeof snapshotDeletionPolicies)[number]

/**
 * Include: beside the objects, a snapshot of the volume of each claim is taken by the storage of its member, and stays
 * there. Exclude: the objects alone.
 */
export const snapshotVolumePolicies = ['Include', 'Exclude'] as const
export type SnapshotVolumePolicy = (typeof snapshotVolumePolicies)[number]

export interface LogicalClusterSnapshotSpec {
  logicalCluster: string
  /** The name of a SnapshotStore. */
  store: string
  /** Default Exclude. */
  volumes?: SnapshotVolumePolicy
  /** What becomes of the stored snapshot when this object is deleted. Default Delete. */
  deletionPolicy?: SnapshotDeletionPolicy
  /** Seconds after its end after which this object is deleted. Absent: never. */
  ttlSecondsAfterFinished?: number
}

export const snapshotPhases = ['Waiting', 'InProgress', 'Completed', 'Failed'] as const
export type SnapshotPhase = (typeof snapshotPhases)[number]

export interface LogicalClusterSnapshotStatus {
  phase?: SnapshotPhase
  /** Attempts that have begun. */
  attempts?: number
  /** RFC 3339. */
  startTime?: string
  completionTime?: string
  /** Of the logical cluster that the snapshot is of. */
  logicalClusterId?: string
  /** The resourceVersion at which all objects are. */
  revision?: string
  objects?: number
  /** Of the stored snapshot. */
  bytes?: number
  /** `sha256:` and hexadecimal digits, of the stored bytes. */
  checksum?: string
  /** `s3://bucket/key`, or the path of a file of the operator. */
  location?: string
  encrypted?: boolean
  /** How many claims of volumes it has. */
  claims?: number
  /** With `volumes: Include`: the volumes of claims in members. */
  volumes?: SnapshotVolume[]
  observedGeneration?: number
  conditions?: Condition[]
}

/** Pending: a VolumeSnapshot of it may be in its member. Included: its storage keeps it. LeftOut: see the reason. */
export const snapshotVolumeStates = ['Pending', 'Included', 'LeftOut'] as const
export type SnapshotVolumeState = (typeof snapshotVolumeStates)[number]

/** The volume of one claim. What restores rely on is this record alone, and never what a file says. */
export interface SnapshotVolume {
  namespace: string
  claim: string
  /** uid of the claim in the logical cluster. */
  claimUid: string
  state: SnapshotVolumeState
  /** Why it is left out. */
  reason?: string
  message?: string
  /** The member that has the volume, and the namespace of the claim there. */
  member?: string
  memberNamespace?: string
  /** The VolumeSnapshot there, until its content is kept without it. */
  name?: string
  /** The VolumeSnapshotContent there, which has the handle. */
  content?: string
  driver?: string
  handle?: string
  /** Bytes that a new volume needs at least. */
  bytes?: number
  storageClass?: string
  volumeMode?: string
  /** RFC 3339: when the storage took it. */
  time?: string
}

/** How many volumes a snapshot has at most. Further ones are left out, and only counted. */
export const maxSnapshotVolumes = 500

/**
 * Complete: the snapshot is whole. Failed: it never will be. Deleted: False while a deletion waits for the store, for
 * members or for restores. VolumesIncluded, with `volumes: Include`: whether the volumes of all claims are kept.
 */
export const logicalClusterSnapshotConditions = ['Complete', 'Failed', 'Deleted', 'VolumesIncluded'] as const

/** The reason of conditions Deleted and VolumesIncluded from the moment at which members delete its volumes. */
export const deletingVolumesReason = 'DeletingVolumes'

/** Whether members delete its volumes, or have: nothing gets a volume from them any more. */
export function areVolumesEnding({ status }: DeepReadonly<Pick<LogicalClusterSnapshot, 'status'>>): boolean {
  const included = status?.conditions?.find(({ type }) => type === 'VolumesIncluded')
  return included?.reason === deletingVolumesReason
}

export const logicalClusterSnapshots = {
  group: 'kcp.dev',
  version: 'v1alpha1',
  resource: 'logicalclustersnapshots',
} as const

/** Finalizer of a LogicalClusterSnapshot: something of it may be in its store. */
export const snapshotFinalizer = 'kcp.dev/snapshot'

/** The keys that a snapshot can have in its store. Never reused: they have a part of its uid. */
export function snapshotKeys({
  metadata: { name, uid = '' },
  spec,
}: {
  readonly metadata: { readonly name: string; readonly uid?: string }
  readonly spec: { readonly logicalCluster: string }
}): { readonly plain: string; readonly encrypted: string } {
  const plain = `${spec.logicalCluster}/${name}-${uid.slice(0, 8)}.kcp.tar.zst`
  return { plain, encrypted: `${plain}.age` }
}

const count: JsonSchema = { type: 'integer', format: 'int64', minimum: 0 }
const time: JsonSchema = { type: 'string', format: 'date-time' }
const text: JsonSchema = { type: 'string', maxLength: 253 }
const fixed = { 'x-kubernetes-validations': [{ rule: 'self == oldSelf', message: 'it does not change' }] }

export const logicalClusterSnapshotKind: Kind = {
  group: logicalClusterSnapshots.group,
  version: logicalClusterSnapshots.version,
  kind: 'LogicalClusterSnapshot',
  plural: logicalClusterSnapshots.resource,
  shortNames: ['lcs'],
  categories: ['kcp'],
  scope: 'Cluster',
  description:
    'A LogicalClusterSnapshot is all objects of a logical cluster at one moment, kept in a SnapshotStore. It is taken once.',
  properties: {
    spec: {
      type: 'object',
      description: 'The desired state.',
      required: ['logicalCluster', 'store'],
      properties: {
        logicalCluster: {
          type: 'string',
          minLength: 1,
          maxLength: 63,
          pattern: '^[a-z0-9]([-a-z0-9]*[a-z0-9])?$',
          description: 'The name of the LogicalCluster.',
          ...fixed,
        },
        store: {
          type: 'string',
          minLength: 1,
          maxLength: 253,
          description: 'The name of the SnapshotStore.',
          ...fixed,
        },
        volumes: {
          type: 'string',
          enum: [...snapshotVolumePolicies],
          default: 'Exclude',
          description:
            'Include: the storage of member clusters takes a snapshot of the volume of each claim, and keeps it until this object is deleted. Exclude: the objects alone.',
          ...fixed,
        },
        deletionPolicy: {
          type: 'string',
          enum: [...snapshotDeletionPolicies],
          default: 'Delete',
          description: 'What becomes of the stored snapshot when this object is deleted.',
        },
        ttlSecondsAfterFinished: {
          type: 'integer',
          format: 'int64',
          minimum: 0,
          maximum: 3_153_600_000,
          description: 'Seconds after the end of the snapshot after which this object is deleted. Absent: never.',
        },
      },
    },
    status: {
      type: 'object',
      description: 'The observed state; written by the operator.',
      properties: {
        phase: { type: 'string', enum: [...snapshotPhases] },
        attempts: { ...count, description: 'How often the operator has begun.' },
        startTime: { ...time, description: 'When the last attempt began.' },
        completionTime: { ...time, description: 'When the snapshot was complete, or had failed for good.' },
        logicalClusterId: { type: 'string', maxLength: 63, description: 'The id of the logical cluster.' },
        revision: { type: 'string', maxLength: 64, description: 'The resourceVersion at which all objects are.' },
        objects: count,
        bytes: { ...count, description: 'The size of the stored snapshot.' },
        checksum: { type: 'string', maxLength: 128, description: 'sha256 of the stored snapshot.' },
        location: { type: 'string', maxLength: 4096, description: 'Where it is stored.' },
        encrypted: { type: 'boolean', description: 'Whether it is encrypted with age.' },
        claims: { ...count, description: 'PersistentVolumeClaims in it.' },
        volumes: {
          type: 'array',
          description: 'With volumes Include: the volumes of claims. Their data are in the storage of members.',
          maxItems: maxSnapshotVolumes,
          'x-kubernetes-list-type': 'map',
          'x-kubernetes-list-map-keys': ['claimUid'],
          items: {
            type: 'object',
            required: ['namespace', 'claim', 'claimUid', 'state'],
            properties: {
              namespace: { ...text, description: 'The namespace of the claim in the logical cluster.' },
              claim: { ...text, description: 'The name of the PersistentVolumeClaim.' },
              claimUid: { ...text, description: 'The uid of the PersistentVolumeClaim.' },
              state: {
                type: 'string',
                enum: [...snapshotVolumeStates],
                description: 'Pending: it is taken. Included: the storage keeps it. LeftOut: see the reason.',
              },
              reason: { ...text, description: 'Why it is left out.' },
              message: { ...text, maxLength: 2048 },
              member: { ...text, description: 'The member cluster that has the volume.' },
              memberNamespace: { ...text, description: 'The namespace of the claim there.' },
              name: { ...text, description: 'The VolumeSnapshot there, which is deleted once its content is kept.' },
              content: { ...text, description: 'The VolumeSnapshotContent there.' },
              driver: { ...text, description: 'The CSI driver.' },
              handle: { ...text, maxLength: 1024, description: 'What the storage calls its snapshot.' },
              bytes: { ...count, description: 'The size that a new volume needs at least.' },
              storageClass: { ...text, description: 'The StorageClass of the claim.' },
              volumeMode: { ...text, description: 'Filesystem or Block.' },
              time: { ...time, description: 'When the storage took it: after a crash it would look the same.' },
            },
          },
        },
        observedGeneration: observedGenerationSchema,
        conditions: conditionsSchema(logicalClusterSnapshotConditions),
      },
    },
  },
  required: ['spec'],
  validations: [
    {
      rule: 'self.metadata.name.size() <= 200',
      message: 'the name has at most 200 characters, because a file is called after it',
    },
  ],
  status: true,
  columns: [
    { name: 'Logical cluster', type: 'string', jsonPath: '.spec.logicalCluster' },
    { name: 'Store', type: 'string', jsonPath: '.spec.store' },
    { name: 'Phase', type: 'string', jsonPath: '.status.phase' },
    { name: 'Objects', type: 'integer', jsonPath: '.status.objects' },
    { name: 'Bytes', type: 'integer', jsonPath: '.status.bytes' },
    { name: 'Completed', type: 'date', jsonPath: '.status.completionTime' },
    { name: 'Location', type: 'string', jsonPath: '.status.location', priority: 1 },
    { name: 'Message', type: 'string', jsonPath: '.status.conditions[?(@.status=="True")].message', priority: 1 },
    ageColumn,
  ],
}
