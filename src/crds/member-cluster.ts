// MemberCluster: a physical cluster that runs workloads. Cluster-scoped, in the same cluster as LogicalClusters.
import type { Condition, KubeObject, ObjectMeta } from '../apimachinery/meta/index.ts'
import { ageColumn, conditionColumn, conditionsSchema, observedGenerationSchema, reasonColumn } from './conditions.ts'
import type { Kind } from './crd.ts'
import { labelSelectorSchema, type LabelSelector } from './label-selector.ts'

export interface MemberCluster extends KubeObject {
  apiVersion: 'kcp.dev/v1alpha1'
  kind: 'MemberCluster'
  metadata: ObjectMeta & { name: string }
  spec?: MemberClusterSpec
  status?: MemberClusterStatus
}

export interface MemberClusterSpec {
  connection?: { kubeconfigSecretRef?: { namespace: string; name: string; key?: string } }
  /** Default Active. */
  state?: 'Active' | 'Cordoned' | 'Draining'
  logicalClusterSelector?: LabelSelector
  /** Default None. */
  serviceNetwork?: { type?: 'None' | 'Flat' }
  /** See defaultAnnotationPrefixes. */
  annotationPrefixes?: string[]
}

export interface MemberClusterStatus {
  /** uid of the member's namespace kube-system. */
  id?: string
  version?: string
  nodes?: { ready: number; total: number }
  /** Number of workloads with something there. */
  placed?: number
  lastHeartbeatTime?: string
  observedGeneration?: number
  conditions?: Condition[]
}

export const memberClusterConditions = ['Accepted', 'Reachable', 'CredentialsValid', 'Ready', 'Schedulable'] as const

export const memberClusterKind: Kind = {
  group: 'kcp.dev',
  version: 'v1alpha1',
  kind: 'MemberCluster',
  plural: 'memberclusters',
  shortNames: ['mc'],
  categories: ['kcp'],
  scope: 'Cluster',
  description: 'A MemberCluster is a physical Kubernetes cluster on which workloads of logical clusters run.',
  properties: {
    spec: {
      type: 'object',
      description: 'What is wanted.',
      properties: {
        connection: {
          type: 'object',
          description: 'How the member is reached.',
          properties: {
            kubeconfigSecretRef: {
              type: 'object',
              description:
                'The Secret with a kubeconfig of the member. Exec plugins, auth providers, files, proxies and insecure TLS are refused.',
              required: ['namespace', 'name'],
              properties: {
                namespace: { type: 'string', minLength: 1, maxLength: 63 },
                name: { type: 'string', minLength: 1, maxLength: 253 },
                key: { type: 'string', default: 'kubeconfig', minLength: 1, maxLength: 253 },
              },
            },
          },
        },
        state: {
          type: 'string',
          description:
            'Active: takes workloads. Cordoned: keeps what it has and takes nothing new. Draining: what it has moves elsewhere.',
          enum: ['Active', 'Cordoned', 'Draining'],
          default: 'Active',
        },
        logicalClusterSelector: labelSelectorSchema(
          'Which logical clusters may run workloads here, by the labels of their LogicalCluster. Absent or empty: all.',
        ),
        serviceNetwork: {
          type: 'object',
          description: 'How pods of other members are reached.',
          properties: {
            type: {
              type: 'string',
              description:
                'None: not at all; namespaces move whole. Flat: pods of all Flat members reach each other by their own addresses.',
              enum: ['None', 'Flat'],
              default: 'None',
            },
          },
        },
        annotationPrefixes: {
          type: 'array',
          description:
            "Prefixes of tenants' annotations that are copied into this member, besides a few harmless ones. Controllers of the member act on annotations with their own rights: allow only what any tenant may ask of them.",
          maxItems: 64,
          'x-kubernetes-list-type': 'set',
          items: { type: 'string', minLength: 1, maxLength: 253 },
        },
      },
    },
    status: {
      type: 'object',
      description: 'What was found; written by the operator.',
      properties: {
        id: { type: 'string', description: "The uid of the member's namespace kube-system.", maxLength: 253 },
        version: { type: 'string', description: "The member's Kubernetes version.", maxLength: 253 },
        nodes: {
          type: 'object',
          required: ['ready', 'total'],
          properties: {
            ready: { type: 'integer', format: 'int32', minimum: 0 },
            total: { type: 'integer', format: 'int32', minimum: 0 },
          },
        },
        placed: { type: 'integer', format: 'int32', minimum: 0, description: 'Objects that have a copy there.' },
        lastHeartbeatTime: { type: 'string', format: 'date-time', description: 'When the member answered last.' },
        observedGeneration: observedGenerationSchema,
        conditions: conditionsSchema(memberClusterConditions),
      },
    },
  },
  status: true,
  columns: [
    conditionColumn('Ready', 'Ready'),
    { ...reasonColumn('Reason', 'Ready'), priority: 1 },
    { name: 'State', type: 'string', jsonPath: '.spec.state' },
    { name: 'Version', type: 'string', jsonPath: '.status.version' },
    { name: 'Nodes', type: 'integer', jsonPath: '.status.nodes.ready' },
    { name: 'Placed', type: 'integer', jsonPath: '.status.placed' },
    { name: 'Heartbeat', type: 'date', jsonPath: '.status.lastHeartbeatTime', priority: 1 },
    ageColumn,
  ],
}

export const memberClusters = { group: 'kcp.dev', version: 'v1alpha1', resource: 'memberclusters' } as const
