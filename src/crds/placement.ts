// Placement: which members workloads run on. Written by admins beside the LogicalClusters, by tenants inside one.
import type { Condition, KubeObject, ObjectMeta } from '../apimachinery/meta/index.ts'
import { ageColumn, conditionColumn, conditionsSchema, observedGenerationSchema } from './conditions.ts'
import type { Kind } from './crd.ts'
import { labelSelectorSchema, type LabelSelector } from './label-selector.ts'
import type { Taint } from './member-cluster.ts'

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
  /** Counts in Placements of admins alone. */
  rebalance?: PlacementRebalance
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

/** When workloads that run move from fuller to emptier members. */
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
  /** Number of workloads about which this Placement decides, and of those that are Held. */
  workloads?: number
  held?: number
  /** Where they are to run: the first maxListed by name. */
  clusters?: { name: string; workloads: number }[]
  /** Members that cannot take a workload that is Held: the first maxListed by name. */
  rejected?: { cluster: string; reason: string; message: string }[]
  observedGeneration?: number
  conditions?: Condition[]
}

/** Entries of the lists in the status of a Placement. */
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
      description: 'What is wanted.',
      properties: {
        priority: {
          type: 'integer',
          format: 'int32',
          default: 0,
          description: 'Where several Placements apply, the highest decides; then the oldest; then the first by name.',
        },
        logicalClusterSelector: labelSelectorSchema(
          'Which logical clusters this is about, by the labels of their LogicalCluster. Absent or empty: all.',
        ),
        namespaceSelector: labelSelectorSchema('Which namespaces this is about. Absent or empty: all.'),
        clusters: {
          type: 'array',
          description: 'Names of the member clusters to run on, on all of them. Empty: nowhere.',
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
          description: 'Which member clusters are better. The weights of those that match are added.',
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
          description: 'Taints of member clusters that do not keep these workloads away; the rules are those of pods.',
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
          description: 'What happens when a member cluster does not answer any more.',
          properties: {
            tolerationSeconds: {
              type: 'integer',
              format: 'int32',
              minimum: 0,
              maximum: 31536000,
              description:
                'After how many seconds without an answer the workloads start elsewhere, but not before 40. Default 300.',
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
                'Duplicate: every member cluster that is chosen runs all replicas. Divide: together they run as many as the workload asks for, on all that are named or, if none is, on all that may be chosen.',
            },
            division: {
              type: 'string',
              enum: ['Balanced', 'Weighted', 'ByCapacity'],
              default: 'Balanced',
              description:
                'Balanced: evenly. Weighted: by the weights of bounds. ByCapacity: by what each member cluster can take in all.',
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
                    description: 'It has as many before others get more than theirs.',
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
                'How long pods keep running after they take no new requests: the time that long connections have to end. Default 10.',
            },
            soakSeconds: {
              type: 'integer',
              format: 'int32',
              minimum: 0,
              maximum: 3600,
              description: 'How long the new pods must serve before the old ones take no new requests. Default 2.',
            },
            forwardSeconds: {
              type: 'integer',
              format: 'int32',
              minimum: 0,
              maximum: 86400,
              description:
                'How long a member cluster that nothing of the namespace runs in any more forwards requests of clients that still know the addresses of its Ingresses and load balancers: at least the time to live of their DNS records. Default 60.',
            },
          },
        },
        rebalance: {
          type: 'object',
          description:
            'Moves workloads that run from fuller to emptier member clusters. Counts in Placements of administrators alone. Absent in all that apply: what runs is never moved for balance.',
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
                'A workload moves only if the member cluster that it leaves is fuller, by at least as many percent of what may be requested there, than the one it goes to is with it. Default 20.',
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
              description: 'How long a workload stays where it is after its last move, of any cause. Default 3600.',
            },
          },
        },
        spread: {
          type: 'array',
          description:
            'Keeps the copies of a logical cluster even over domains. A namespace stays together nevertheless.',
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
      description: 'What was found; written by the operator.',
      properties: {
        workloads: {
          type: 'integer',
          format: 'int32',
          minimum: 0,
          description: 'Workloads about which this Placement decides.',
        },
        held: { type: 'integer', format: 'int32', minimum: 0, description: 'Of these, the ones that are Held.' },
        clusters: {
          type: 'array',
          description: 'Where these workloads are to run; the first by name.',
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
