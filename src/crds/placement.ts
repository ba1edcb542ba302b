// Placement: which members workloads run on. Written by admins beside the LogicalClusters, by tenants inside one.
import type { Condition, KubeObject, ObjectMeta } from '../apimachinery/meta/index.ts'
import { ageColumn, conditionColumn, conditionsSchema, observedGenerationSchema } from './conditions.ts'
import type { Kind } from './crd.ts'
import { labelSelectorSchema, type LabelSelector } from './label-selector.ts'

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
}

export interface PlacementStatus {
  observedGeneration?: number
  conditions?: Condition[]
}

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
      },
    },
    status: {
      type: 'object',
      description: 'What was found; written by the operator.',
      properties: {
        observedGeneration: observedGenerationSchema,
        conditions: conditionsSchema(placementConditions),
      },
    },
  },
  status: true,
  columns: [
    conditionColumn('Scheduled', 'Scheduled'),
    { name: 'Clusters', type: 'string', jsonPath: '.spec.clusters' },
    { name: 'Priority', type: 'integer', jsonPath: '.spec.priority' },
    ageColumn,
  ],
}

export const placements = { group: 'kcp.dev', version: 'v1alpha1', resource: 'placements' } as const
