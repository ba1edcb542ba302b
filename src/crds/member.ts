// Member: what a tenant sees of a MemberCluster that its logical cluster may use. Read-only and not stored: the API
// server makes it from the MemberCluster for each request.
import type { Condition, KubeObject, ObjectMeta } from '#apimachinery/meta/index.ts'
import { ageColumn, conditionColumn, conditionsSchema, reasonColumn } from './conditions.ts'
import { crdOf, type CustomResourceDefinition, type Kind } from './crd.ts'
import type { ServiceNetwork, Taint } from './member-cluster.ts'

export interface Member extends KubeObject {
  apiVersion: 'kcp.dev/v1alpha1'
  kind: 'Member'
  metadata: ObjectMeta & { name: string }
  status: MemberViewStatus
}

export interface MemberViewStatus {
  /** The version of Kubernetes in the member. */
  version?: string
  serviceNetwork: ServiceNetwork
  taints: readonly Readonly<Taint>[]
  /** Names of classes by kind. */
  classes: { readonly kind: string; readonly names: readonly string[] }[]
  conditions: Condition[]
}

export const members = { group: 'kcp.dev', version: 'v1alpha1', resource: 'members' } as const

export const memberKind: Kind = {
  group: members.group,
  version: members.version,
  kind: 'Member',
  plural: members.resource,
  categories: ['kcp'],
  scope: 'Cluster',
  description:
    'A Member is a member cluster on which workloads of this logical cluster may run; annotation kcp.dev/clusters names it.',
  properties: {
    status: {
      type: 'object',
      description: 'The observed state.',
      properties: {
        version: { type: 'string', description: 'The version of its Kubernetes.' },
        serviceNetwork: {
          type: 'string',
          description:
            'Flat: its pods and those of other Flat members reach each other. Gateway: they reach Services of other Gateway members. None: they reach nothing there.',
        },
        taints: {
          type: 'array',
          description: 'Taints that workloads must tolerate to run there.',
          items: {
            type: 'object',
            properties: { key: { type: 'string' }, value: { type: 'string' }, effect: { type: 'string' } },
          },
        },
        classes: {
          type: 'array',
          description: 'The classes that workloads may use there.',
          items: {
            type: 'object',
            properties: { kind: { type: 'string' }, names: { type: 'array', items: { type: 'string' } } },
          },
        },
        conditions: conditionsSchema(['Ready', 'Usable']),
      },
    },
  },
  status: true,
  columns: [
    conditionColumn('Ready', 'Ready'),
    conditionColumn('Usable', 'Usable'),
    reasonColumn('Reason', 'Usable'),
    { name: 'Version', type: 'string', jsonPath: '.status.version', priority: 1 },
    { name: 'Message', type: 'string', jsonPath: '.status.conditions[?(@.type=="Usable")].message', priority: 1 },
    ageColumn,
  ],
}

/** The CustomResourceDefinition with which Members are served; no cluster stores it. */
export function memberCrd(): CustomResourceDefinition {
  return crdOf(memberKind)
}
