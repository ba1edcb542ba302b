// LogicalCluster: what a tenant gets. Cluster-scoped; in the host, or in logical cluster `root` without a host.
import { parseJsonText } from '#apimachinery/json/index.ts'
import type { Condition, DeepReadonly, KubeObject, ObjectMeta } from '#apimachinery/meta/index.ts'
import { podSecurityLevels, type PodSecurityLevel } from '#apimachinery/pod-security/index.ts'
import {
  ageColumn,
  conditionColumn,
  conditionsSchema,
  observedGenerationSchema,
  reasonColumn,
  unobservedStatus,
} from './conditions.ts'
import { clusterAuditSchema, type ClusterAudit } from './audit.ts'
import { clusterAuthenticationSchema, type ClusterAuthentication } from './authentication.ts'
import type { ClusterUsage } from './cluster-usage.ts'
import { clusterAccessSchema, type ClusterAccess } from './cluster-access.ts'
import {
  clusterSleepSchema,
  clusterSleepStatusSchema,
  type ClusterSleep,
  type ClusterSleepStatus,
} from './cluster-sleep.ts'
import { crdOf, type CustomResourceDefinition, type JsonSchema, type Kind } from './crd.ts'

/** An rbac Subject. */
export interface Subject {
  kind: 'User' | 'Group' | 'ServiceAccount'
  name: string
  namespace?: string
  apiGroup?: string
}

export const kubeconfigFormats = ['ClusterAPI', 'Flux', 'ArgoCD'] as const
export type KubeconfigFormat = (typeof kubeconfigFormats)[number]

/** A Secret with a kubeconfig that is kept for a tool. */
export interface KubeconfigEntry {
  namespace: string
  /** Name of the Secret; with format ClusterAPI, the Secret is called NAME-kubeconfig. */
  name: string
  format: KubeconfigFormat
  /** Default: an admin of the logical cluster. */
  subject?: { kind: 'User' | 'ServiceAccount'; name: string; namespace?: string }
}

export interface LogicalCluster extends KubeObject {
  apiVersion: 'kcp.dev/v1alpha1'
  kind: 'LogicalCluster'
  metadata: ObjectMeta & { name: string }
  spec?: {
    owners?: Subject[]
    /** Default baseline. */
    podSecurity?: { enforce?: PodSecurityLevel }
    kubeconfigs?: KubeconfigEntry[]
    /** The parent in the tree of logical clusters. */
    parentRef?: { name: string }
    limits?: SubtreeLimits
    inherit?: Inheritance
    /** Access for others. Absent: none. */
    access?: ClusterAccess
    authentication?: ClusterAuthentication
    /** When it sleeps. Absent: never. */
    sleep?: ClusterSleep
    /** Its audit log. Absent: it has none of its own. */
    audit?: ClusterAudit
    /** What it begins as. Absent: empty. */
    source?: ClusterSource
  }
  status?: LogicalClusterStatus
}

/** What a logical cluster begins as: exactly one of these. */
export interface ClusterSource {
  /** A copy of this LogicalCluster as it is then. */
  logicalClusterRef?: { name: string }
  /** The objects of this LogicalClusterSnapshot. */
  snapshot?: { name: string }
  /** The objects of a file, which an admin uploads: `kcp snapshot restore`. */
  upload?: {
    /** What the file is a snapshot of, for people. */
    description?: string
  }
}

/** Bounds of a logical cluster together with all below it. */
export interface SubtreeLimits {
  /** A quantity of bytes. */
  storage?: string
  objects?: number
  /** How many logical clusters may be below, at all levels. */
  children?: number
  /** How many levels of logical clusters may be below. */
  depth?: number
  /** CustomResourceDefinitions and APIBindings. */
  crds?: number
  /** Watches that are open at the same time. */
  watches?: number
  /** Requests in a second, in the mean; a burst is half a second's worth, and at least five. */
  requestsPerSecond?: number
  /** Quantity: the sum of what the pods of placed workloads request. */
  cpu?: string
  /** The same, a quantity of bytes. */
  memory?: string
  /** Pods of placed workloads. */
  pods?: number
}

/** The limits that the scheduler keeps: what the copies of workloads request in members. */
export const placedLimits = ['cpu', 'memory', 'pods'] as const
export type PlacedLimit = (typeof placedLimits)[number]

/** What a logical cluster takes from its ancestors, and what it lets its descendants leave out. */
export interface Inheritance {
  /** Names of inherited admission policies that do not act here, as far as the ancestor that has them allows it. */
  exclude?: string[]
  /** Names of admission policies of this logical cluster that descendants may exclude; `*` for all. */
  allowExclusions?: string[]
}

export interface LogicalClusterStatus {
  /** The id of the logical cluster, as clusterIdOf gives it. */
  id?: string
  url?: string
  directURL?: string
  /** The Secrets of spec.kubeconfigs, listed before they are written and until they are gone. */
  kubeconfigs?: { namespace: string; name: string }[]
  /** What it and all below it use, where it has limits. */
  usage?: ClusterUsage
  /** Whether it sleeps, where it has rules for that. */
  sleep?: ClusterSleepStatus
  observedGeneration?: number
  conditions?: Condition[]
}

/** The condition that is there, and False, while spec.audit.webhook fails. */
export const auditDelivered = 'AuditDelivered'

export const logicalClusterConditions = [
  'Ready',
  'ContentDeleted',
  'KubeconfigsWritten',
  'ParentValid',
  'AuthenticationValid',
  'WithinLimits',
  'Asleep',
  auditDelivered,
] as const

/**
 * Label `kcp.dev/inherit: "true"` of a ClusterRole, ClusterRoleBinding, CustomResourceDefinition, admission policy or
 * its binding: it holds in the descendants of its logical cluster, too. A label, because clients can select it, and
 * because the server finds it without decoding the object.
 */
export const inheritLabel = 'kcp.dev/inherit'

/** Label of a LogicalCluster that a tenant has created: its name in the API of the parent. */
export const childNameLabel = 'kcp.dev/child-name'

/** Annotation of a LogicalCluster with spec.source: what it was filled from. Until it is there, its users wait. */
export const filledAnnotation = 'kcp.dev/filled-from'
/** Annotation of a LogicalCluster while a snapshot is put back into it: which one. Until it is gone, its users wait. */
export const restoringAnnotation = 'kcp.dev/restoring'

/**
 * Annotation of a LogicalCluster while `kcp snapshot restore` puts a LogicalClusterSnapshot into it: its name, a slash and
 * its uid. Until it is gone, the snapshot is not deleted.
 */
export const restoredFromAnnotation = 'kcp.dev/restored-from'

/** Annotation of a LogicalCluster that goes to another installation, or comes from one: JSON of TransferNote. */
export const transferAnnotation = 'kcp.dev/transfer'

/** What a LogicalCluster says of its move to or from another installation. The marks of its objects decide, not this. */
export interface TransferNote {
  readonly role: 'source' | 'target'
  /** Names the move in both installations. */
  readonly id: string
  /** The logical cluster at the other end, for people: its name and the address of its server. */
  readonly with: string
  /** At the target: SHA-256 of the key that opens it. */
  readonly keyHash?: string
  /** At the source: the move is over. */
  readonly moved?: true
}

/** The note; undefined if there is none, or if it cannot be read. */
export function transferOf({
  metadata,
}: {
  readonly metadata: { readonly annotations?: Readonly<Record<string, string>> }
}): TransferNote | undefined {
  const text = metadata.annotations?.[transferAnnotation]
  if (text === undefined) return undefined
  try {
    const note = parseJsonText(text) as Partial<TransferNote> | null
    const isWhole = typeof note?.id === 'string' && typeof note.with === 'string'
    return isWhole && (note.role === 'source' || note.role === 'target') ? (note as TransferNote) : undefined
  } catch {
    return undefined
  }
}

/** What the users of the logical cluster wait for, because its objects are not all there yet; undefined: nothing. */
export function fillingOf({
  metadata,
  spec,
}: {
  readonly metadata: { readonly name?: string; readonly annotations?: Readonly<Record<string, string>> }
  readonly spec?: { readonly source?: DeepReadonly<ClusterSource> }
}): string | undefined {
  const { name = '', annotations = {} } = metadata
  const restored = annotations[restoringAnnotation]
  if (restored !== undefined)
    return `a snapshot is being put back into it (${restored}); if that was broken off, run the same command again`
  const note = transferOf({ metadata })
  if (note?.role === 'target')
    return `it is on its way from ${note.with}; if that was broken off, run the same kcp transfer there again`
  if (spec?.source === undefined || annotations[filledAnnotation] !== undefined) return undefined
  const from = spec.source.logicalClusterRef?.name
  if (from !== undefined) return `the objects of "${from}" are being copied into it`
  const { snapshot } = spec.source
  if (snapshot !== undefined) return `the objects of snapshot "${snapshot.name}" are being put into it`
  return `it waits for its objects: kcp snapshot restore FILE --as ${name}`
}

/** How many levels of logical clusters a tree may have below its top, unless limits.depth of the top says otherwise. */
export const defaultLevelsBelow = 4
/** The most that limits.depth can be. */
export const maxLevelsBelow = 15

/** How many entries spec.kubeconfigs may have. */
export const maxKubeconfigs = 16
/** How many entries status.kubeconfigs may have, with Secrets of former entries that could not be deleted yet. */
export const maxKubeconfigSecrets = 64

/** The level of the Pod Security Standards of a LogicalCluster that names none. */
export const defaultPodSecurity: PodSecurityLevel = 'baseline'

/** Finalizer of a LogicalCluster until its content is gone. */
export const contentFinalizer = 'kcp.dev/content'

const namespaceName: JsonSchema = {
  type: 'string',
  minLength: 1,
  maxLength: 63,
  pattern: '^[a-z0-9]([-a-z0-9]*[a-z0-9])?$',
}
const objectName: JsonSchema = {
  type: 'string',
  minLength: 1,
  maxLength: 253,
  pattern: '^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$',
}

const kubeconfigsSchema: JsonSchema = {
  type: 'array',
  description:
    'Secrets with kubeconfigs for GitOps tools. The operator writes them in the cluster that this object is in, renews them after two thirds of their validity, and deletes them with their entry or this object. It never overwrites a Secret that it did not create.',
  maxItems: maxKubeconfigs,
  'x-kubernetes-list-type': 'map',
  'x-kubernetes-list-map-keys': ['namespace', 'name'],
  items: {
    type: 'object',
    required: ['namespace', 'name', 'format'],
    properties: {
      namespace: { ...namespaceName, description: 'Namespace of the Secret; it must exist.' },
      name: {
        ...objectName,
        description: 'Name of the Secret; with format ClusterAPI, the Secret is called NAME-kubeconfig.',
      },
      format: {
        type: 'string',
        enum: [...kubeconfigFormats],
        description:
          'Which tool reads it. ClusterAPI: type cluster.x-k8s.io/secret, key value. Flux: key value, label reconcile.fluxcd.io/watch. ArgoCD: a cluster Secret with keys name, server and config.',
      },
      subject: {
        type: 'object',
        description:
          'The user that the kubeconfig authenticates as. Absent: an admin of the logical cluster. User: a client certificate with that name, and the permissions that RBAC in the logical cluster grants. ServiceAccount: a token of a ServiceAccount of the logical cluster.',
        required: ['kind', 'name'],
        properties: {
          kind: { type: 'string', enum: ['User', 'ServiceAccount'] },
          name: { type: 'string', minLength: 1, maxLength: 253 },
          namespace: { ...namespaceName, description: 'Namespace of a ServiceAccount.' },
        },
        'x-kubernetes-validations': [
          {
            rule: "(self.kind == 'ServiceAccount') == has(self.__namespace__)",
            message: 'a ServiceAccount needs a namespace, and a User has none',
          },
        ],
      },
    },
    'x-kubernetes-validations': [
      {
        rule: "self.format != 'ClusterAPI' || self.name.size() <= 242",
        message: 'with format ClusterAPI the name has at most 242 characters: the Secret is NAME-kubeconfig',
      },
    ],
  },
}

const limitsSchema: JsonSchema = {
  type: 'object',
  description:
    'Bounds of this logical cluster and all below it together. A logical cluster below with limits of its own takes them out of these; others share the rest.',
  properties: {
    storage: {
      type: 'string',
      maxLength: 32,
      pattern: '^[0-9]+([.][0-9]+)?(k|M|G|T|Ki|Mi|Gi|Ti)?$',
      description: 'Stored bytes, such as 10Gi.',
    },
    objects: { type: 'integer', minimum: 0, maximum: 1_000_000_000, description: 'Stored objects.' },
    children: {
      type: 'integer',
      minimum: 0,
      maximum: 1_000_000,
      description: 'Logical clusters below, at all levels.',
    },
    depth: {
      type: 'integer',
      minimum: 0,
      maximum: maxLevelsBelow,
      description: `Levels of logical clusters below. Default ${defaultLevelsBelow} below the top of a tree.`,
    },
    crds: {
      type: 'integer',
      minimum: 0,
      maximum: 1_000_000,
      description: 'CustomResourceDefinitions and APIBindings.',
    },
    watches: { type: 'integer', minimum: 0, maximum: 1_000_000, description: 'Open watches.' },
    requestsPerSecond: {
      type: 'integer',
      minimum: 1,
      maximum: 1_000_000,
      description:
        "Requests of users per second. A burst may have half a second's worth more, at least five. More are answered 429 with Retry-After.",
    },
    cpu: {
      type: 'string',
      maxLength: 32,
      pattern: '^[0-9]+([.][0-9]{1,3})?(m|k)?$',
      description:
        'CPU that the pods of placed workloads request, such as 500m or 16. A workload beyond it waits: condition Placed says so.',
    },
    memory: {
      type: 'string',
      maxLength: 32,
      pattern: '^[0-9]+([.][0-9]+)?(k|M|G|T|Ki|Mi|Gi|Ti)?$',
      description: 'Memory that the pods of placed workloads request, such as 64Gi.',
    },
    pods: { type: 'integer', minimum: 0, maximum: 10_000_000, description: 'Pods of placed workloads.' },
  },
}

const quantitySchema: JsonSchema = { type: 'string', maxLength: 32 }
const countSchema: JsonSchema = { type: 'integer', minimum: 0 }

const usageSchema: JsonSchema = {
  type: 'object',
  description:
    'What it and all below it use, with what limits below set aside. Written where spec.limits is set, after changes of a hundredth of the limit, at most every 10 s.',
  properties: {
    storage: { ...quantitySchema, description: 'Stored bytes.' },
    objects: { ...countSchema, description: 'Stored objects.' },
    crds: { ...countSchema, description: 'CustomResourceDefinitions and APIBindings.' },
    watches: { ...countSchema, description: 'Open watches.' },
    cpu: { ...quantitySchema, description: 'CPU that the pods of placed workloads request.' },
    memory: { ...quantitySchema, description: 'Memory that they request.' },
    pods: { ...countSchema, description: 'Pods of placed workloads.' },
  },
}

const policyNames: JsonSchema = {
  type: 'array',
  maxItems: 64,
  'x-kubernetes-list-type': 'set',
  items: { type: 'string', minLength: 1, maxLength: 253 },
}

const inheritSchema: JsonSchema = {
  type: 'object',
  description: 'Exceptions from what is inherited.',
  properties: {
    exclude: {
      ...policyNames,
      description:
        'Names of inherited admission policies that do not act here. It counts only for policies that the ancestor names in allowExclusions.',
    },
    allowExclusions: {
      ...policyNames,
      description: 'Names of admission policies of this logical cluster that those below may exclude; "*": all.',
    },
  },
}

const sourceSchema: JsonSchema = {
  type: 'object',
  description: 'What the logical cluster begins as; immutable. Absent: empty.',
  properties: {
    logicalClusterRef: {
      type: 'object',
      description:
        'A copy of another logical cluster: its objects at one moment, with uids of their own. What runs in members, volumes and their data are not copied; workloads begin anew.',
      required: ['name'],
      properties: { name: { ...namespaceName, description: 'Name of a LogicalCluster.' } },
    },
    snapshot: {
      type: 'object',
      description:
        'The objects of a complete LogicalClusterSnapshot, with uids of their own, by the same rules as a copy. The operator reads it from its SnapshotStore.',
      required: ['name'],
      properties: { name: { ...objectName, description: 'Name of a LogicalClusterSnapshot.' } },
    },
    upload: {
      type: 'object',
      description: 'The objects of a snapshot, which kcp snapshot restore uploads.',
      properties: {
        description: { type: 'string', maxLength: 256, description: 'What it is a snapshot of, for people.' },
      },
    },
  },
  'x-kubernetes-validations': [
    {
      rule: '[has(self.logicalClusterRef), has(self.snapshot), has(self.upload)].filter(one, one).size() == 1',
      message: 'exactly one of logicalClusterRef, snapshot and upload',
    },
    { rule: 'self == oldSelf', message: 'the source of a logical cluster does not change' },
  ],
}

export const logicalClusterKind: Kind = {
  group: 'kcp.dev',
  version: 'v1alpha1',
  kind: 'LogicalCluster',
  plural: 'logicalclusters',
  shortNames: ['lc'],
  categories: ['kcp'],
  scope: 'Cluster',
  description:
    'A LogicalCluster is a separate Kubernetes API with its own namespaces, CustomResourceDefinitions and RBAC. Deleting it deletes everything in it.',
  properties: {
    spec: {
      type: 'object',
      description: 'The desired state.',
      properties: {
        owners: {
          type: 'array',
          description:
            'Who is cluster-admin in the logical cluster: users, groups and ServiceAccounts of the cluster that this object is in.',
          maxItems: 64,
          'x-kubernetes-list-type': 'atomic',
          items: {
            type: 'object',
            required: ['kind', 'name'],
            properties: {
              kind: { type: 'string', enum: ['User', 'Group', 'ServiceAccount'] },
              name: { type: 'string', minLength: 1, maxLength: 512 },
              namespace: { type: 'string', maxLength: 63, description: 'Namespace of a ServiceAccount.' },
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
          description: 'Which pods tenants may run. Pods of several logical clusters share the nodes.',
          properties: {
            enforce: {
              type: 'string',
              description:
                'The level of the Pod Security Standards that pods and pod templates must comply with. privileged: everything is allowed. baseline: access to the node is refused. restricted: pods must be hardened.',
              enum: [...podSecurityLevels],
              default: defaultPodSecurity,
            },
          },
        },
        kubeconfigs: kubeconfigsSchema,
        parentRef: {
          type: 'object',
          description:
            'The parent in the tree of logical clusters: roles, CustomResourceDefinitions and admission policies there with label kcp.dev/inherit hold here, and its limits bound this logical cluster. A change moves this logical cluster with all below it.',
          required: ['name'],
          properties: {
            name: { ...namespaceName, description: 'Name of another LogicalCluster.' },
          },
        },
        limits: limitsSchema,
        access: clusterAccessSchema(
          'Access for tools that read ClusterProfiles, as a ServiceAccount of the logical cluster. Absent: nobody has it.',
        ),
        inherit: inheritSchema,
        authentication: clusterAuthenticationSchema,
        sleep: clusterSleepSchema,
        audit: clusterAuditSchema,
        source: sourceSchema,
      },
    },
    status: {
      type: 'object',
      default: unobservedStatus,
      description: 'The observed state; written by the operator.',
      properties: {
        id: {
          type: 'string',
          description:
            'Short id, never reused: a logical cluster that is created again under the same name has another id.',
          maxLength: 63,
        },
        url: { type: 'string', description: 'Where its API is served: the `server` of a kubeconfig.', maxLength: 2048 },
        directURL: {
          type: 'string',
          description:
            'URL of its API without the host in between, for clients with tokens or certificates of the logical cluster.',
          maxLength: 2048,
        },
        kubeconfigs: {
          type: 'array',
          description: 'The Secrets of spec.kubeconfigs; each is listed from before it is written until it is deleted.',
          maxItems: maxKubeconfigSecrets,
          'x-kubernetes-list-type': 'map',
          'x-kubernetes-list-map-keys': ['namespace', 'name'],
          items: {
            type: 'object',
            required: ['namespace', 'name'],
            properties: { namespace: { type: 'string', maxLength: 63 }, name: { type: 'string', maxLength: 253 } },
          },
        },
        usage: usageSchema,
        sleep: clusterSleepStatusSchema,
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
    {
      rule: '!has(self.spec) || !has(self.spec.parentRef) || self.spec.parentRef.name != self.metadata.name',
      message: 'a logical cluster is not its own parent',
    },
    {
      rule: '!has(self.spec) || !has(self.spec.source) || !has(self.spec.source.logicalClusterRef) || self.spec.source.logicalClusterRef.name != self.metadata.name',
      message: 'a logical cluster is not its own source',
    },
    {
      rule: '(has(self.spec) && has(self.spec.source)) == (has(oldSelf.spec) && has(oldSelf.spec.source))',
      message: 'the source of a logical cluster is given when it is created',
    },
  ],
  status: true,
  columns: [
    conditionColumn('Ready', 'Ready'),
    { ...reasonColumn('Reason', 'Ready'), priority: 1 },
    { name: 'Parent', type: 'string', jsonPath: '.spec.parentRef.name', priority: 1 },
    { ...conditionColumn('Asleep', 'Asleep'), priority: 1 },
    { name: 'ID', type: 'string', jsonPath: '.status.id' },
    { name: 'URL', type: 'string', jsonPath: '.status.url' },
    { name: 'Direct URL', type: 'string', jsonPath: '.status.directURL', priority: 1 },
    ageColumn,
  ],
}

export const logicalClusters = { group: 'kcp.dev', version: 'v1alpha1', resource: 'logicalclusters' } as const

/** The definition of LogicalCluster, as logical clusters serve it for their children. */
export function logicalClusterCrd(): CustomResourceDefinition {
  return crdOf(logicalClusterKind)
}
