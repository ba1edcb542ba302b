// MemberCluster: a physical cluster that runs workloads. Cluster-scoped, in the same cluster as LogicalClusters.
import type { Condition, DeepReadonly, KubeObject, ObjectMeta } from '#apimachinery/meta/index.ts'
import {
  ageColumn,
  conditionColumn,
  conditionsSchema,
  observedGenerationSchema,
  reasonColumn,
  unobservedStatus,
} from './conditions.ts'
import type { JsonSchema, Kind } from './crd.ts'
import { agentGrantSchema, agentStatusSchema, type AgentGrant, type AgentStatus } from './member-agent.ts'
import { gatewayAddressPattern, type MemberGateway } from './member-gateway.ts'
import {
  exportedApisSchema,
  exportedApiStatusSchema,
  type ExportedApi,
  type ExportedApiStatus,
} from './exported-api.ts'
import { clusterAccessSchema, type ClusterAccess } from './cluster-access.ts'
import { labelSelectorSchema, type LabelSelector } from './label-selector.ts'
import { memberClassesSchema, type MemberClasses } from './member-classes.ts'

export interface MemberCluster extends KubeObject {
  apiVersion: 'kcp.dev/v1alpha1'
  kind: 'MemberCluster'
  metadata: ObjectMeta & { name: string }
  spec?: MemberClusterSpec
  status?: MemberClusterStatus
}

export interface MemberClusterSpec {
  /** Exactly one of them. */
  connection?: {
    kubeconfigSecretRef?: { namespace: string; name: string; key?: string }
    /** Pull mode: an agent in the member dials out to the installation. */
    agent?: Record<string, never>
  }
  /** Which agent may connect. Also while the member is reached by a kubeconfig, until its agent has connected. */
  agent?: AgentGrant
  /** Access for others through kcp. Absent: none. */
  access?: ClusterAccess
  /** Default Active. */
  state?: 'Active' | 'Cordoned' | 'Draining'
  /** Set by an admin who has made sure that nothing runs in the member any more, while kcp cannot reach it. */
  fenced?: boolean
  /** What happens to the workloads there when the MemberCluster is deleted. Default Drain. */
  deletionPolicy?: 'Drain' | 'Orphan' | 'Force'
  logicalClusterSelector?: LabelSelector
  /** Default None. */
  serviceNetwork?: {
    type?: ServiceNetwork
    /** `HOST:PORT` at which other members reach its gateway. Default: found in the member. */
    gatewayAddress?: string
  }
  /** Prefixes of annotations that are copied into the member, besides defaultAnnotationPrefixes. */
  annotationPrefixes?: string[]
  /** Its custom resources that are offered to the logical clusters that may use it. */
  exportedAPIs?: ExportedApi[]
  taints?: Taint[]
  capacity?: {
    /** A ResourceList: the most that workloads may request there. Absent: what its nodes can allocate. */
    limits?: Record<string, string>
    /** How many percent of the limits stay free. Default 0. */
    reservePercent?: number
  }
}

/** The ways in which pods of other members reach the pods of a member. */
export const serviceNetworks = ['None', 'Flat', 'Gateway'] as const
export type ServiceNetwork = (typeof serviceNetworks)[number]

/** Whether pods in one member may use Services whose pods run in the other. */
export function areJoined(one: ServiceNetwork | undefined, other: ServiceNetwork | undefined): boolean {
  return one === other && (one === 'Flat' || one === 'Gateway')
}

/**
 * The value of reachableAnnotation on EndpointSlices of a member; members with the same value can reach their
 * endpoints.
 */
export function reachabilityOf(network: ServiceNetwork): string | undefined {
  const values = { None: undefined, Flat: 'true', Gateway: 'gateway' } as const
  return values[network]
}

/** Like a taint of a Node: keeps away workloads that do not tolerate it. */
export interface Taint {
  key: string
  value?: string
  effect: 'NoSchedule' | 'PreferNoSchedule' | 'NoExecute'
}

export interface MemberClusterStatus {
  /** uid of the member's namespace kube-system. */
  id?: string
  version?: string
  /** Whether it serves metrics.k8s.io/v1beta1. */
  metricsAPI?: boolean
  nodes?: { ready: number; total: number }
  /** The fields of workloads that our API has and the member's API does not have. */
  unsupportedFields?: UnsupportedFields[]
  /** The classes by kind; nothing is known of a kind that is absent. */
  classes?: MemberClasses[]
  /** ResourceLists: sums over the nodes that are Ready and take pods. */
  capacity?: Record<string, string>
  allocatable?: Record<string, string>
  /** A ResourceList: what the pods of workloads with a copy there request. */
  requested?: Record<string, string>
  /** Number of workloads with a copy there. */
  placed?: number
  /** While it drains: how many placed workloads are moving to another member, and how many have nowhere to go. */
  moving?: number
  held?: number
  /** While it drains: the first maxRemaining placed workloads; those that have nowhere to go come first. */
  remaining?: RemainingWorkload[]
  /** With service network Gateway: how other members reach its gateway. */
  gateway?: MemberGateway
  /** Written by the API server, and by nobody else. */
  agent?: AgentStatus
  /** The APIs that it exports, and the APIs that are still being withdrawn. */
  exportedAPIs?: ExportedApiStatus[]
  lastHeartbeatTime?: string
  observedGeneration?: number
  conditions?: Condition[]
}

/** A workload that still has a copy in a draining member. */
export interface RemainingWorkload {
  logicalCluster: string
  kind: string
  namespace: string
  name: string
  /** Moving: another copy is being brought up, or this one is being removed. Held: no other member can take it. */
  state: 'Moving' | 'Held'
  /** Where it is going, or why it has nowhere to go. */
  message: string
}

/**
 * Fields of a kind of workload, such as `spec.containers[*].restartPolicyRules`; `.` is the kind itself. Fields of a
 * pod template are listed as those of a Pod.
 */
export interface UnsupportedFields {
  kind: string
  paths: string[]
}

/** How many fields of one kind status.unsupportedFields lists; a member that lacks more is much too old. */
export const maxUnsupportedFields = 200

/** A member that has not answered for so long is lost. */
export const lostAfterMs = 40_000

/** The reason of condition Ready of a member that is lost. */
export const lostReason = 'Lost'

/** Whether the operator has found that the member is lost. */
export function isLostMember(member: DeepReadonly<MemberCluster> | undefined): boolean {
  return member?.status?.conditions?.some(({ type, reason }) => type === 'Ready' && reason === lostReason) ?? false
}

/** How many workloads status.remaining lists. */
export const maxRemaining = 50

export const memberClusterConditions = [
  'Accepted',
  'Reachable',
  'CredentialsValid',
  'Ready',
  'Schedulable',
  'Drained',
  'DeletionsSuspended',
  'SyncFailing',
  'APIsExported',
  'GatewayReady',
  'CertificateValid',
] as const

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
      description: 'The desired state.',
      properties: {
        connection: {
          type: 'object',
          description: 'How the member is reached.',
          'x-kubernetes-validations': [
            {
              rule: 'has(self.kubeconfigSecretRef) != has(self.agent)',
              message: 'exactly one of kubeconfigSecretRef and agent must be set',
            },
          ],
          properties: {
            agent: {
              type: 'object',
              description: 'An agent in the member dials out to kcp, which needs no way into the member.',
            },
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
        agent: agentGrantSchema,
        access: clusterAccessSchema(
          'Access for others through kcp, as a ServiceAccount of the member whose rights they then have there. It appears in the ClusterProfile. Absent: nobody has access.',
        ),
        state: {
          type: 'string',
          description:
            'Active: takes workloads. Cordoned: keeps its workloads and takes no new ones. Draining: its workloads move elsewhere.',
          enum: ['Active', 'Cordoned', 'Draining'],
          default: 'Active',
        },
        fenced: {
          type: 'boolean',
          description:
            'Set by an admin who has made sure that nothing runs any more in a member cluster that does not answer: workloads that must not run twice may then start elsewhere. Ignored while the member answers.',
        },
        deletionPolicy: {
          type: 'string',
          description:
            'What happens to the workloads here when this object is deleted. Drain: waits until they have moved. Force: deletes their copies at once. Orphan: leaves their copies running in the member, which kcp does not touch any more.',
          enum: ['Drain', 'Orphan', 'Force'],
          default: 'Drain',
        },
        logicalClusterSelector: labelSelectorSchema(
          'Which logical clusters may run workloads here, by the labels of their LogicalCluster. Absent or empty: all.',
        ),
        serviceNetwork: {
          type: 'object',
          description: 'How pods of this member and of other members reach each other.',
          properties: {
            type: {
              type: 'string',
              description:
                'None: they do not, so a namespace moves as a whole. Flat: pods of all Flat members reach each other by their own addresses. Gateway: pods of all Gateway members reach Services of each other through a gateway that kcp runs in each of them.',
              enum: [...serviceNetworks],
              default: 'None',
            },
            gatewayAddress: {
              type: 'string',
              description:
                'HOST:PORT at which the other members reach its gateway. Absent: an address of its Service of type LoadBalancer, else the node port of the Service on a node.',
              maxLength: 259,
              pattern: gatewayAddressPattern,
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
        exportedAPIs: exportedApisSchema(
          'Custom resources of this member that are offered to the logical clusters that may run workloads here. Their objects are copied into the member. kcp needs permissions for them there: kcp member join --export RESOURCE.GROUP.',
        ),
        taints: {
          type: 'array',
          description:
            'Keep away workloads that do not tolerate them. NoSchedule: no new workloads. PreferNoSchedule: new workloads only if no other member fits. NoExecute: running workloads move away, too.',
          maxItems: 64,
          'x-kubernetes-list-type': 'map',
          'x-kubernetes-list-map-keys': ['key', 'effect'],
          items: {
            type: 'object',
            required: ['key', 'effect'],
            properties: {
              key: { type: 'string', minLength: 1, maxLength: 316 },
              value: { type: 'string', maxLength: 63 },
              effect: { type: 'string', enum: ['NoSchedule', 'PreferNoSchedule', 'NoExecute'] },
            },
          },
        },
        capacity: {
          type: 'object',
          description: 'How much workloads may request here.',
          properties: {
            limits: resourceListSchema(
              'The most that all workloads together may request. Absent: what the nodes can allocate.',
            ),
            reservePercent: {
              type: 'integer',
              format: 'int32',
              minimum: 0,
              maximum: 100,
              description: 'How many percent of the limits stay free. Default 0.',
            },
          },
        },
      },
    },
    status: {
      type: 'object',
      default: unobservedStatus,
      description: 'The observed state; written by the operator.',
      properties: {
        id: { type: 'string', description: "The uid of the member's namespace kube-system.", maxLength: 253 },
        version: { type: 'string', description: "The member's Kubernetes version.", maxLength: 253 },
        metricsAPI: {
          type: 'boolean',
          description:
            'It serves metrics.k8s.io/v1beta1, so `kubectl top` works in the logical clusters that may run workloads here.',
        },
        nodes: {
          type: 'object',
          required: ['ready', 'total'],
          properties: {
            ready: { type: 'integer', format: 'int32', minimum: 0 },
            total: { type: 'integer', format: 'int32', minimum: 0 },
          },
        },
        unsupportedFields: {
          type: 'array',
          description:
            'Fields of workloads that kcp serves and this member does not know: workloads that use them are not placed there.',
          maxItems: 16,
          'x-kubernetes-list-type': 'map',
          'x-kubernetes-list-map-keys': ['kind'],
          items: {
            type: 'object',
            required: ['kind', 'paths'],
            properties: {
              kind: { type: 'string', maxLength: 63 },
              paths: { type: 'array', maxItems: maxUnsupportedFields, items: { type: 'string', maxLength: 1024 } },
            },
          },
        },
        classes: memberClassesSchema,
        capacity: resourceListSchema('The capacity of its nodes that are Ready and take pods.'),
        allocatable: resourceListSchema('What these nodes can allocate.'),
        requested: resourceListSchema('What the pods of the workloads that are placed here request.'),
        placed: {
          type: 'integer',
          format: 'int32',
          minimum: 0,
          description: 'Number of workloads that have a copy here.',
        },
        moving: {
          type: 'integer',
          format: 'int32',
          minimum: 0,
          description: 'While it drains: number of workloads that are moving away.',
        },
        held: {
          type: 'integer',
          format: 'int32',
          minimum: 0,
          description: 'While it drains: number of workloads that no other member cluster can take.',
        },
        remaining: {
          type: 'array',
          description:
            'While it drains: the first of these workloads; those that no other member cluster can take come first.',
          maxItems: maxRemaining,
          'x-kubernetes-list-type': 'atomic',
          items: {
            type: 'object',
            required: ['logicalCluster', 'kind', 'namespace', 'name', 'state', 'message'],
            properties: {
              logicalCluster: { type: 'string', maxLength: 253 },
              kind: { type: 'string', maxLength: 63 },
              namespace: { type: 'string', maxLength: 63 },
              name: { type: 'string', maxLength: 253 },
              state: { type: 'string', enum: ['Moving', 'Held'] },
              message: { type: 'string', maxLength: 1024 },
            },
          },
        },
        gateway: {
          type: 'object',
          description: 'With service network Gateway: how other members reach its gateway.',
          properties: {
            address: { type: 'string', maxLength: 259, description: 'HOST:PORT of its gateway.' },
            certificates: {
              type: 'array',
              description: 'The certificates that its gateway may present, as PEM; other gateways trust only these.',
              maxItems: 4,
              items: { type: 'string', maxLength: 8192 },
            },
          },
        },
        agent: agentStatusSchema,
        exportedAPIs: exportedApiStatusSchema('What it exports, and what is still being withdrawn.'),
        lastHeartbeatTime: { type: 'string', format: 'date-time', description: 'When the member answered last.' },
        observedGeneration: observedGenerationSchema,
        conditions: conditionsSchema(memberClusterConditions),
      },
    },
  },
  status: true,
  columns: [
    conditionColumn('Ready', 'Ready'),
    reasonColumn('Reason', 'Ready'),
    conditionColumn('Schedulable', 'Schedulable'),
    { name: 'State', type: 'string', jsonPath: '.spec.state' },
    { name: 'Version', type: 'string', jsonPath: '.status.version' },
    { name: 'Nodes', type: 'integer', jsonPath: '.status.nodes.ready' },
    { name: 'Placed', type: 'integer', jsonPath: '.status.placed' },
    conditionColumn('Drained', 'Drained', { priority: 1 }),
    { name: 'Moving', type: 'integer', jsonPath: '.status.moving', priority: 1 },
    { name: 'Held', type: 'integer', jsonPath: '.status.held', priority: 1 },
    { name: 'CPU', type: 'string', jsonPath: '.status.allocatable.cpu', priority: 1 },
    { name: 'Memory', type: 'string', jsonPath: '.status.allocatable.memory', priority: 1 },
    { name: 'Heartbeat', type: 'date', jsonPath: '.status.lastHeartbeatTime', priority: 1 },
    ageColumn,
  ],
}

/** The state that an admin has set; a member that is being deleted drains. */
export function memberState({
  metadata,
  spec,
}: {
  readonly metadata: { readonly deletionTimestamp?: string }
  readonly spec?: { readonly state?: NonNullable<MemberClusterSpec['state']> }
}): NonNullable<MemberClusterSpec['state']> {
  return metadata.deletionTimestamp === undefined ? (spec?.state ?? 'Active') : 'Draining'
}

function resourceListSchema(description: string): JsonSchema {
  return { type: 'object', description, additionalProperties: { type: 'string', maxLength: 64 } }
}

export const memberClusters = { group: 'kcp.dev', version: 'v1alpha1', resource: 'memberclusters' } as const
