// Adoption: a running namespace of a member that a logical cluster takes over. Written by admins beside the
// LogicalClusters; never inside of one, because an adoption gives a tenant what runs in a member.
import type { Condition, KubeObject, ObjectMeta } from '#apimachinery/meta/index.ts'
import { ageColumn, conditionColumn, conditionsSchema, observedGenerationSchema, reasonColumn } from './conditions.ts'
import type { Kind } from './crd.ts'
import { memberParts } from './sync-contract.ts'

export interface Adoption extends KubeObject {
  apiVersion: 'kcp.dev/v1alpha1'
  kind: 'Adoption'
  metadata: ObjectMeta & { name: string }
  spec: AdoptionSpec
  status?: AdoptionStatus
}

export const adoptionModes = ['Plan', 'Adopt', 'Undo'] as const
export type AdoptionMode = (typeof adoptionModes)[number]

export interface AdoptionSpec {
  readonly member: string
  /** The namespace in the member. */
  readonly namespace: string
  readonly logicalCluster: string
  /** Default: the name of the namespace in the member. */
  readonly targetNamespace?: string
  /** Default Plan. */
  readonly mode?: AdoptionMode
}

/**
 * Adopt: the object is made in the logical cluster, and the member's becomes its copy. Carry: it is made in the logical
 * cluster, and the member's object stays alone. Keep: it stays in the member, and the logical cluster does not get it.
 * Refuse: with it, nothing of the namespace is adopted.
 */
export const adoptionActions = ['Adopt', 'Carry', 'Keep', 'Refuse'] as const
export type AdoptionAction = (typeof adoptionActions)[number]

/** What becomes of one object of the namespace. */
export interface PlannedObject {
  readonly kind: string
  readonly name: string
  readonly action: AdoptionAction
  /** Why it is not adopted, or what to know. */
  readonly message?: string
  /** Those that own fields of it. */
  readonly owners?: readonly FieldOwner[]
}

/** A manager of fields in the member's object. */
export interface FieldOwner {
  readonly manager: string
  readonly operation: string
  /** How many fields it owns. */
  readonly fields: number
  /** How many of these kcp owns, too, after the adoption, with the same values. The others stay the manager's alone. */
  readonly shared: number
  /** The first of its fields, with what becomes of each: shared or kept. */
  readonly examples: readonly { readonly path: string; readonly becomes: 'Shared' | 'Kept' }[]
}

/** What an adoption has to know besides its objects, such as names in other namespaces that lead into this one. */
export interface AdoptionFinding {
  readonly about: string
  readonly message: string
}

/** What a member says that refuses kcp, with what to do if it joined with an older release. */
export function withRenewal(message: string, member: string): string {
  const isOfMember = [memberParts.syncerAccount, 'kcp writes only in namespaces'].some((part) => message.includes(part))
  return isOfMember
    ? `${message}. If "${member}" joined with an older release, kcp needs new rights there: give kcp adopt the flag --member-kubeconfig, or join again as before: kcp member join ${member} with --kubeconfig FILE or --pull`
    : message
}

/** How many objects the status lists; those that are refused come first. */
export const maxPlannedObjects = 300

export interface AdoptionStatus {
  /** The id of the logical cluster, which the admin of the member writes on the namespace. */
  clusterId?: string
  counts?: { action: AdoptionAction; objects: number }[]
  objects?: PlannedObject[]
  findings?: AdoptionFinding[]
  observedGeneration?: number
  conditions?: Condition[]
}

export const adoptionConditions = ['Consented', 'Planned', 'Adopted'] as const

export const adoptions = { group: 'kcp.dev', version: 'v1alpha1', resource: 'adoptions' } as const

const fixed = { 'x-kubernetes-validations': [{ rule: 'self == oldSelf', message: 'only mode can be changed' }] }

const text = { type: 'string', maxLength: 1024 } as const

export const adoptionKind: Kind = {
  group: adoptions.group,
  version: adoptions.version,
  kind: 'Adoption',
  plural: adoptions.resource,
  categories: ['kcp'],
  scope: 'Cluster',
  description:
    'An Adoption takes a running namespace of a member cluster into a logical cluster, without a restart of a pod.',
  properties: {
    spec: {
      type: 'object',
      description: 'The desired state.',
      required: ['member', 'namespace', 'logicalCluster'],
      properties: {
        member: {
          type: 'string',
          minLength: 1,
          maxLength: 253,
          description: 'The name of the MemberCluster.',
          ...fixed,
        },
        namespace: {
          type: 'string',
          minLength: 1,
          maxLength: 63,
          description: 'The namespace in the member cluster.',
          ...fixed,
        },
        logicalCluster: {
          type: 'string',
          minLength: 1,
          maxLength: 253,
          description: 'The name of the LogicalCluster that gets it.',
          ...fixed,
        },
        targetNamespace: {
          type: 'string',
          minLength: 1,
          maxLength: 63,
          description: 'The namespace in the logical cluster. Default: the same name.',
          ...fixed,
        },
        mode: {
          type: 'string',
          enum: [...adoptionModes],
          default: 'Plan',
          description:
            'Plan: the status tells what would be adopted, and nothing is changed. Adopt: it is adopted. Undo: the member cluster gets its namespace back.',
        },
      },
      'x-kubernetes-validations': [
        {
          rule: 'has(self.targetNamespace) == has(oldSelf.targetNamespace)',
          message: 'only mode can be changed',
        },
      ],
    },
    status: {
      type: 'object',
      description: 'The observed state; written by the operator.',
      properties: {
        clusterId: { ...text, description: 'The id of the logical cluster, for the label of consent.' },
        counts: {
          type: 'array',
          description: 'How many objects the plan has, by what becomes of them.',
          maxItems: adoptionActions.length,
          'x-kubernetes-list-type': 'map',
          'x-kubernetes-list-map-keys': ['action'],
          items: {
            type: 'object',
            required: ['action', 'objects'],
            properties: {
              action: { type: 'string', enum: [...adoptionActions] },
              objects: { type: 'integer', format: 'int32', minimum: 0 },
            },
          },
        },
        objects: {
          type: 'array',
          description: 'The plan: the objects of the namespace and what becomes of each, those that are refused first.',
          maxItems: maxPlannedObjects,
          'x-kubernetes-list-type': 'atomic',
          items: {
            type: 'object',
            required: ['kind', 'name', 'action'],
            properties: {
              kind: text,
              name: text,
              action: { type: 'string', enum: [...adoptionActions] },
              message: text,
              owners: {
                type: 'array',
                description: 'Who owns fields of the object in the member cluster, and what becomes of these fields.',
                maxItems: 16,
                'x-kubernetes-list-type': 'atomic',
                items: {
                  type: 'object',
                  required: ['manager', 'operation', 'fields', 'shared'],
                  properties: {
                    manager: text,
                    operation: text,
                    fields: { type: 'integer', format: 'int32', minimum: 0 },
                    shared: { type: 'integer', format: 'int32', minimum: 0 },
                    examples: {
                      type: 'array',
                      maxItems: 8,
                      'x-kubernetes-list-type': 'atomic',
                      items: {
                        type: 'object',
                        required: ['path', 'becomes'],
                        properties: { path: text, becomes: { type: 'string', enum: ['Shared', 'Kept'] } },
                      },
                    },
                  },
                },
              },
            },
          },
        },
        findings: {
          type: 'array',
          description:
            'What to know besides the objects: APIs that are not seen, and references from and to other namespaces.',
          maxItems: 100,
          'x-kubernetes-list-type': 'atomic',
          items: { type: 'object', required: ['about', 'message'], properties: { about: text, message: text } },
        },
        observedGeneration: observedGenerationSchema,
        conditions: conditionsSchema(adoptionConditions),
      },
    },
  },
  required: ['spec'],
  status: true,
  columns: [
    { name: 'Member', type: 'string', jsonPath: '.spec.member' },
    { name: 'Namespace', type: 'string', jsonPath: '.spec.namespace' },
    { name: 'Logical cluster', type: 'string', jsonPath: '.spec.logicalCluster' },
    { name: 'Mode', type: 'string', jsonPath: '.spec.mode' },
    conditionColumn('Adopted', 'Adopted'),
    reasonColumn('Reason', 'Adopted'),
    { name: 'Message', type: 'string', jsonPath: '.status.conditions[?(@.type=="Adopted")].message', priority: 1 },
    ageColumn,
  ],
}
