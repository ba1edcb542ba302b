// LogicalCluster: what a tenant gets. Cluster-scoped; in the host, or in logical cluster `root` without a host.
import type { Condition, KubeObject, ObjectMeta } from '../apimachinery/meta/index.ts'
import { podSecurityLevels, type PodSecurityLevel } from '../apimachinery/pod-security/index.ts'
import { ageColumn, conditionColumn, conditionsSchema, observedGenerationSchema, reasonColumn } from './conditions.ts'
import type { Kind } from './crd.ts'

/** An rbac Subject. */
export interface Subject {
  kind: 'User' | 'Group' | 'ServiceAccount'
  name: string
  namespace?: string
  apiGroup?: string
}

export interface LogicalCluster extends KubeObject {
  apiVersion: 'kcp.dev/v1alpha1'
  kind: 'LogicalCluster'
  metadata: ObjectMeta & { name: string }
  spec?: {
    owners?: Subject[]
    /** Default baseline. */
    podSecurity?: { enforce?: PodSecurityLevel }
  }
  status?: LogicalClusterStatus
}

export interface LogicalClusterStatus {
  /** See clusterIdOf. */
  id?: string
  url?: string
  directURL?: string
  observedGeneration?: number
  conditions?: Condition[]
}

export const logicalClusterConditions = ['Ready', 'ContentDeleted'] as const

/** The level of the Pod Security Standards of a LogicalCluster that names none. */
export const defaultPodSecurity: PodSecurityLevel = 'baseline'

/** Finalizer of a LogicalCluster until its content is gone. */
export const contentFinalizer = 'kcp.dev/content'

export const logicalClusterKind: Kind = {
  group: 'kcp.dev',
  version: 'v1alpha1',
  kind: 'LogicalCluster',
  plural: 'logicalclusters',
  shortNames: ['lc'],
  categories: ['kcp'],
  scope: 'Cluster',
  description:
    'A LogicalCluster is a Kubernetes API of its own: own namespaces, own CustomResourceDefinitions, own RBAC. Deleting it deletes everything in it.',
  properties: {
    spec: {
      type: 'object',
      description: 'What is wanted.',
      properties: {
        owners: {
          type: 'array',
          description: 'Who is cluster-admin inside. ServiceAccounts are those of the cluster this object is in.',
          maxItems: 64,
          'x-kubernetes-list-type': 'atomic',
          items: {
            type: 'object',
            required: ['kind', 'name'],
            properties: {
              kind: { type: 'string', enum: ['User', 'Group', 'ServiceAccount'] },
              name: { type: 'string', minLength: 1, maxLength: 512 },
              namespace: { type: 'string', maxLength: 63, description: 'Of a ServiceAccount.' },
              apiGroup: { type: 'string', maxLength: 253 },
            },
            'x-kubernetes-validations': [
              {
                rule: "self.kind != 'ServiceAccount' || (has(self.__namespace__) && self.__namespace__ != '')",
                message: 'a ServiceAccount needs a namespace',
              },
            ],
          },
        },
        podSecurity: {
          type: 'object',
          description: 'Which pods its tenants may run. They share nodes with those of other logical clusters.',
          properties: {
            enforce: {
              type: 'string',
              description:
                'The level of the Pod Security Standards that pods and pod templates must keep: privileged refuses nothing, baseline what reaches the node, restricted requires hardened pods.',
              enum: [...podSecurityLevels],
              default: defaultPodSecurity,
            },
          },
        },
      },
    },
    status: {
      type: 'object',
      description: 'What was found; written by the operator.',
      properties: {
        id: {
          type: 'string',
          description:
            'Short id, unique for ever: a logical cluster created again under the same name has another one.',
          maxLength: 63,
        },
        url: { type: 'string', description: 'Where its API is served: the `server` of a kubeconfig.', maxLength: 2048 },
        directURL: {
          type: 'string',
          description: 'Where its API is served without the host in between: for tokens and certificates of its own.',
          maxLength: 2048,
        },
        observedGeneration: observedGenerationSchema,
        conditions: conditionsSchema(logicalClusterConditions),
      },
    },
  },
  validations: [
    { rule: "self.metadata.name != 'root'", message: 'the name "root" is reserved' },
    {
      rule: "self.metadata.name.size() <= 63 && !self.metadata.name.contains('.')",
      message: 'the name must be an RFC 1123 label: at most 63 characters, no dots',
    },
  ],
  status: true,
  columns: [
    conditionColumn('Ready', 'Ready'),
    { ...reasonColumn('Reason', 'Ready'), priority: 1 },
    { name: 'ID', type: 'string', jsonPath: '.status.id' },
    { name: 'URL', type: 'string', jsonPath: '.status.url' },
    { name: 'Direct URL', type: 'string', jsonPath: '.status.directURL', priority: 1 },
    ageColumn,
  ],
}

export const logicalClusters = { group: 'kcp.dev', version: 'v1alpha1', resource: 'logicalclusters' } as const
