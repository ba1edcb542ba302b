// Placement: which members workloads run on. Written by admins beside the LogicalClusters, by tenants inside one.
import type { Condition, KubeObject, ObjectMeta } from '#apimachinery/meta/index.ts'
import { ageColumn, conditionColumn, conditionsSchema, observedGenerationSchema } from './conditions.ts'
import type { Kind } from './crd.ts'
import { labelSelectorSchema, type LabelSelector } from './label-selector.ts'
import type { Taint } from './member-cluster.ts'
import { volumeWays, type VolumeWay } from './volume-move.ts'

export interface Placement extends KubeObject {
  apiVersion: 'kcp.dev/v1alpha1'
  kind: 'Placement'
  metadata: ObjectMeta & { name: string }
  spec?: PlacementSpec
  status?: PlacementStatus
}

export interface PlacementSpec {
  /** Default 0. */
  priority?: number
  logicalClusterSelector?: LabelSelector
  namespaceSelector?: LabelSelector
  clusters?: string[]
  require?: { labelSelector?: LabelSelector; cel?: string }
  prefer?: { weight: number; labelSelector?: LabelSelector }[]
  tolerations?: { key?: string; operator?: 'Equal' | 'Exists'; value?: string; effect?: Taint['effect'] }[]
  spread?: { topologyKey: string; maxSkew: number; minDomains?: number }[]
  failover?: { tolerationSeconds?: number }
  replicas?: PlacementReplicas
  move?: PlacementMove
  apply?: PlacementApply
  /** Ignored in Placements of tenants. */
  rebalance?: PlacementRebalance
  /** Ignored in Placements of tenants, except requireConsent and default Pin. */
  volumes?: PlacementVolumes
}

/** How long the steps of a move last. */
export interface PlacementMove {
  /** Default 10. */
  readonly drainSeconds?: number
  /** Default 2. */
  readonly soakSeconds?: number
  /** Default 60. */
  readonly forwardSeconds?: number
}

/** Whether and how the volumes of workloads move to other members. */
export interface PlacementVolumes {
  /** For claims whose class is not in `classes`. Default Pin. */
  readonly default?: 'Pin' | VolumeWay
  readonly classes?: readonly {
    readonly storageClass: string
    readonly moves: 'Never' | VolumeWay
    /** Default: the class of the same name. */
    readonly target?: string
  }[]
  /** How long the old volume is kept. Default 86400. */
  readonly retainSeconds?: number
  /** Bytes per second, such as `50Mi`. Default: no limit. */
  readonly bandwidth?: string
  readonly requireConsent?: boolean
  /** Members that keep the copies of way Replicate: the first one that is Ready and has not the volume itself. */
  readonly standbys?: readonly string[]
  /** Seconds between two rounds of way Replicate. Default 60. */
  readonly everySeconds?: number
}

/** How copies are written in members. */
export interface PlacementApply {
  /** Default Correct. */
  readonly drift?: 'Correct' | 'Report'
}

/** When running workloads move from fuller to emptier members. */
export interface PlacementRebalance {
  /** Default Move. */
  readonly mode?: 'Move' | 'Never'
  /** Default 20. */
  readonly thresholdPercent?: number
  /** Default 2. */
  readonly maxMoves?: number
  /** Default 3600. */
  readonly cooldownSeconds?: number
}

export interface PlacementReplicas {
  /** Default Duplicate. */
  mode?: 'Duplicate' | 'Divide'
  /** Default Balanced. */
  division?: 'Balanced' | 'Weighted' | 'ByCapacity'
  bounds?: DivisionBound[]
}

/** How much of a divided workload one member may have. */
export interface DivisionBound {
  readonly cluster: string
  readonly min?: number
  readonly max?: number
  /** Default 1; for division Weighted. */
  readonly weight?: number
}

export interface PlacementStatus {
  /** Number of workloads for which this Placement decides, and how many of them are Held. */
  workloads?: number
  held?: number
  /** The members chosen for these workloads: the first maxListed by name. */
  clusters?: { name: string; workloads: number }[]
  /** Members that cannot take a workload that is Held: the first maxListed by name. */
  rejected?: { cluster: string; reason: string; message: string }[]
  observedGeneration?: number
  conditions?: Condition[]
}

/** How many entries the lists in the status of a Placement have. */
export const maxListed = 50

export const placementConditions = ['Scheduled'] as const

export const placementKind: Kind = {
  group: 'kcp.dev',
  version: 'v1alpha1',
  kind: 'Placement',
  plural: 'placements',
  shortNames: ['pl'],
  categories: ['kcp'],
  scope: 'Cluster',
  description:
    'A Placement says on which member clusters workloads run. Without any, each runs on the one member that is best for it.',
  properties: {
    spec: {
      type: 'object',
      description: 'The desired state.',
      properties: {
        priority: {
          type: 'integer',
          format: 'int32',
          default: 0,
          description:
            'If several Placements apply, the one with the highest priority decides, then the oldest, then the first by name.',
        },
        logicalClusterSelector: labelSelectorSchema(
          'Which logical clusters this applies to, by the labels of their LogicalCluster. Absent or empty: all.',
        ),
        namespaceSelector: labelSelectorSchema('Which namespaces this applies to. Absent or empty: all.'),
        clusters: {
          type: 'array',
          description: 'Names of member clusters; workloads run on all of them. Empty: nowhere.',
          maxItems: 64,
          'x-kubernetes-list-type': 'set',
          items: { type: 'string', minLength: 1, maxLength: 253 },
        },
        require: {
          type: 'object',
          description: 'Which member clusters may be chosen. Not together with clusters.',
          properties: {
            labelSelector: labelSelectorSchema('Labels of the MemberCluster.'),
            cel: {
              type: 'string',
              minLength: 1,
              maxLength: 1024,
              description:
                'A CEL expression that must be true of the MemberCluster: cluster.name, cluster.labels, cluster.taints (key, value, effect).',
            },
          },
        },
        prefer: {
          type: 'array',
          description:
            'Which member clusters are preferred. The weights of the entries that match a member cluster are added.',
          maxItems: 64,
          'x-kubernetes-list-type': 'atomic',
          items: {
            type: 'object',
            required: ['weight'],
            properties: {
              weight: { type: 'integer', format: 'int32', minimum: 1, maximum: 100 },
              labelSelector: labelSelectorSchema('Labels of the MemberCluster. Absent or empty: all.'),
            },
          },
        },
        tolerations: {
          type: 'array',
          description: 'Taints of member clusters that these workloads tolerate; the rules are those of pods.',
          maxItems: 64,
          'x-kubernetes-list-type': 'atomic',
          items: {
            type: 'object',
            properties: {
              key: { type: 'string', maxLength: 316 },
              operator: { type: 'string', enum: ['Equal', 'Exists'] },
              value: { type: 'string', maxLength: 63 },
              effect: { type: 'string', enum: ['NoSchedule', 'PreferNoSchedule', 'NoExecute'] },
            },
          },
        },
        failover: {
          type: 'object',
          description: 'What happens when a member cluster stops answering.',
          properties: {
            tolerationSeconds: {
              type: 'integer',
              format: 'int32',
              minimum: 0,
              maximum: 31536000,
              description:
                'After how many seconds without an answer the workloads start elsewhere; values below 40 count as 40. Default 300.',
            },
          },
        },
        replicas: {
          type: 'object',
          description:
            'How the replicas of Deployments and ReplicaSets are distributed. Other kinds run on one member cluster.',
          properties: {
            mode: {
              type: 'string',
              enum: ['Duplicate', 'Divide'],
              default: 'Duplicate',
              description:
                'Duplicate: every chosen member cluster runs all replicas. Divide: member clusters share the replicas: those that are named or, if none is named, all that can take the workload.',
            },
            division: {
              type: 'string',
              enum: ['Balanced', 'Weighted', 'ByCapacity'],
              default: 'Balanced',
              description:
                'Balanced: evenly. Weighted: by the weights in bounds. ByCapacity: by how many replicas each member cluster could take.',
            },
            bounds: {
              type: 'array',
              description: 'Limits and weights of single member clusters.',
              maxItems: 64,
              'x-kubernetes-list-type': 'map',
              'x-kubernetes-list-map-keys': ['cluster'],
              items: {
                type: 'object',
                required: ['cluster'],
                properties: {
                  cluster: { type: 'string', minLength: 1, maxLength: 253 },
                  min: {
                    type: 'integer',
                    format: 'int32',
                    minimum: 0,
                    description: 'It gets this many replicas before any member cluster gets more than its min.',
                  },
                  max: { type: 'integer', format: 'int32', minimum: 0 },
                  weight: { type: 'integer', format: 'int32', minimum: 1, maximum: 1000, description: 'Default 1.' },
                },
                'x-kubernetes-validations': [
                  {
                    rule: '!has(self.min) || !has(self.max) || self.min <= self.max',
                    message: 'min must not be more than max',
                  },
                ],
              },
            },
          },
        },
        move: {
          type: 'object',
          description: 'How long the steps of a move from one member cluster to another last.',
          properties: {
            drainSeconds: {
              type: 'integer',
              format: 'int32',
              minimum: 5,
              maximum: 3600,
              description:
                'How long pods keep running after they stop getting new requests, so that long connections can end. Default 10.',
            },
            soakSeconds: {
              type: 'integer',
              format: 'int32',
              minimum: 0,
              maximum: 3600,
              description: 'How long the new pods must serve before the old ones stop getting new requests. Default 2.',
            },
            forwardSeconds: {
              type: 'integer',
              format: 'int32',
              minimum: 0,
              maximum: 86400,
              description:
                'How long a member cluster keeps forwarding requests after the last workload of the namespace has left it, for clients that still have the addresses of its Ingresses and load balancers. Set it to at least the time to live of their DNS records. Default 60.',
            },
          },
        },
        apply: {
          type: 'object',
          description: 'How the copies of these workloads are written in member clusters.',
          properties: {
            drift: {
              type: 'string',
              enum: ['Correct', 'Report'],
              default: 'Correct',
              description:
                'What becomes of a change that somebody makes in the member cluster. Correct: the copy is made again what the logical cluster says. Report: the changed fields stay as they are there, and condition Drifted and an Event tell which they are and who has changed them.',
            },
          },
        },
        rebalance: {
          type: 'object',
          description:
            'Moves running workloads from fuller to emptier member clusters. Ignored in Placements of tenants. If no Placement that applies has it, running workloads are never moved for balance.',
          properties: {
            mode: {
              type: 'string',
              enum: ['Move', 'Never'],
              default: 'Move',
              description: 'Never: the workloads that this Placement selects are not moved for balance.',
            },
            thresholdPercent: {
              type: 'integer',
              format: 'int32',
              minimum: 5,
              maximum: 100,
              description:
                'A workload moves only if the member cluster that it leaves is fuller than the other one would be with the workload, by at least this many percentage points. Default 20.',
            },
            maxMoves: {
              type: 'integer',
              format: 'int32',
              minimum: 1,
              maximum: 100,
              description: 'How many workloads may be moving for this Placement at the same time. Default 2.',
            },
            cooldownSeconds: {
              type: 'integer',
              format: 'int32',
              minimum: 0,
              maximum: 31536000,
              description:
                'How long a workload stays where it is after its last move, whatever caused it. Default 3600.',
            },
          },
        },
        volumes: {
          type: 'object',
          description:
            'Whether volumes move with their workloads. In Placements of tenants, only requireConsent and default Pin count. If no Placement that applies has it, volumes do not move.',
          properties: {
            default: {
              type: 'string',
              enum: ['Pin', ...volumeWays],
              description:
                'For claims whose StorageClass is not in classes. Pin: the volume stays, and so does its workload. Copy: the data is copied while the application runs, and once more after it has stopped. Snapshot, Shared: the member clusters use one storage, where the new volume is made from a snapshot, or is the same volume; such member clusters trust each other with its volumes. Replicate: as Copy, and one of the standbys has a copy all the time. Default Pin.',
            },
            classes: {
              type: 'array',
              description: 'How volumes of single StorageClasses move.',
              maxItems: 64,
              'x-kubernetes-list-type': 'map',
              'x-kubernetes-list-map-keys': ['storageClass'],
              items: {
                type: 'object',
                required: ['storageClass', 'moves'],
                properties: {
                  storageClass: { type: 'string', minLength: 1, maxLength: 253 },
                  moves: { type: 'string', enum: ['Never', ...volumeWays] },
                  target: {
                    type: 'string',
                    minLength: 1,
                    maxLength: 253,
                    description: 'The StorageClass of the new volume. Default: the class of the same name.',
                  },
                },
              },
            },
            retainSeconds: {
              type: 'integer',
              format: 'int32',
              minimum: 0,
              maximum: 31536000,
              description: 'How long the old member cluster keeps the old volume. Default 86400, a day.',
            },
            bandwidth: {
              type: 'string',
              maxLength: 32,
              pattern: '^[1-9][0-9]*([kMGT]|[KMGT]i)?$',
              description: 'How many bytes per second the copy of one volume may send, such as 50Mi.',
            },
            standbys: {
              type: 'array',
              description:
                'Member clusters that keep the copies of volumes that are replicated: the first one that is Ready and does not have the volume itself.',
              maxItems: 64,
              'x-kubernetes-list-type': 'atomic',
              items: { type: 'string', minLength: 1, maxLength: 253 },
            },
            everySeconds: {
              type: 'integer',
              format: 'int32',
              minimum: 5,
              maximum: 86400,
              description:
                'How many seconds a copy of a replicated volume may be behind, besides the time of a round. Default 60.',
            },
            requireConsent: {
              type: 'boolean',
              description:
                'Before the application stops, the tenant must agree, by annotation kcp.dev/volume-consent on the claim with the name of the new member cluster.',
            },
          },
        },
        spread: {
          type: 'array',
          description:
            'Spreads the copies of a logical cluster evenly over domains. The workloads of a namespace still stay together.',
          maxItems: 8,
          'x-kubernetes-list-type': 'map',
          'x-kubernetes-list-map-keys': ['topologyKey'],
          items: {
            type: 'object',
            required: ['topologyKey', 'maxSkew'],
            properties: {
              topologyKey: {
                type: 'string',
                minLength: 1,
                maxLength: 316,
                description: 'Member clusters with the same value of this label are one domain.',
              },
              maxSkew: { type: 'integer', format: 'int32', minimum: 1 },
              minDomains: { type: 'integer', format: 'int32', minimum: 1 },
            },
          },
        },
      },
      'x-kubernetes-validations': [
        {
          rule: '!(has(self.clusters) && has(self.require))',
          message: 'clusters and require exclude each other',
        },
      ],
    },
    status: {
      type: 'object',
      description: 'The observed state; written by the operator.',
      properties: {
        workloads: {
          type: 'integer',
          format: 'int32',
          minimum: 0,
          description: 'Number of workloads for which this Placement decides.',
        },
        held: { type: 'integer', format: 'int32', minimum: 0, description: 'How many of these are Held.' },
        clusters: {
          type: 'array',
          description: 'The member clusters chosen for these workloads; the first by name.',
          maxItems: maxListed,
          'x-kubernetes-list-type': 'map',
          'x-kubernetes-list-map-keys': ['name'],
          items: {
            type: 'object',
            required: ['name', 'workloads'],
            properties: {
              name: { type: 'string', maxLength: 253 },
              workloads: { type: 'integer', format: 'int32', minimum: 0 },
            },
          },
        },
        rejected: {
          type: 'array',
          description:
            'Member clusters that cannot take a workload that is Held, each with one reason; the first by name.',
          maxItems: maxListed,
          'x-kubernetes-list-type': 'map',
          'x-kubernetes-list-map-keys': ['cluster'],
          items: {
            type: 'object',
            required: ['cluster', 'reason', 'message'],
            properties: {
              cluster: { type: 'string', maxLength: 253 },
              reason: { type: 'string', maxLength: 1024 },
              message: { type: 'string', maxLength: 1024 },
            },
          },
        },
        observedGeneration: observedGenerationSchema,
        conditions: conditionsSchema(placementConditions),
      },
    },
  },
  status: true,
  columns: [
    conditionColumn('Scheduled', 'Scheduled'),
    { name: 'Clusters', type: 'string', jsonPath: '.spec.clusters' },
    { name: 'Workloads', type: 'integer', jsonPath: '.status.workloads' },
    { name: 'Held', type: 'integer', jsonPath: '.status.held' },
    { name: 'Members', type: 'string', jsonPath: '.status.clusters[*].name', priority: 1 },
    { name: 'Priority', type: 'integer', jsonPath: '.spec.priority' },
    { name: 'Message', type: 'string', jsonPath: '.status.conditions[?(@.type=="Scheduled")].message', priority: 1 },
    ageColumn,
  ],
}

export const placements = { group: 'kcp.dev', version: 'v1alpha1', resource: 'placements' } as const
