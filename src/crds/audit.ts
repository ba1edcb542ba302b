// Audit policies (audit.k8s.io/v1), and spec.audit of LogicalClusters.
import type { JsonSchema } from './crd.ts'

export const auditLevels = ['None', 'Metadata', 'Request', 'RequestResponse'] as const
export const auditStages = ['RequestReceived', 'ResponseStarted', 'ResponseComplete', 'Panic'] as const

/** A rule of a Policy of audit.k8s.io/v1, unchecked. */
export interface AuditRule {
  readonly level: string
  readonly users?: readonly string[]
  readonly userGroups?: readonly string[]
  readonly verbs?: readonly string[]
  readonly resources?: readonly {
    readonly group?: string
    readonly resources?: readonly string[]
    readonly resourceNames?: readonly string[]
  }[]
  readonly namespaces?: readonly string[]
  readonly nonResourceURLs?: readonly string[]
  readonly omitStages?: readonly string[]
  readonly omitManagedFields?: boolean
}

/** The fields of a Policy of audit.k8s.io/v1, unchecked. */
export interface AuditPolicy {
  readonly rules?: readonly AuditRule[]
  readonly omitStages?: readonly string[]
  readonly omitManagedFields?: boolean
}

/** spec.audit of a LogicalCluster. */
export interface ClusterAudit extends AuditPolicy {
  /** True: users of the logical cluster with the right to get `/audit` read its last events there. */
  readonly readable?: boolean
  readonly webhook?: {
    readonly url: string
    readonly certificateAuthority?: string
    /** A Secret of the logical cluster with a bearer token under the key `token`. */
    readonly tokenSecretRef?: { readonly namespace: string; readonly name: string }
  }
}

/** The path at which a logical cluster's audit log is read. */
export const auditPath = '/audit'
/** The annotation of an event in this log with its position, which a reader passes as `after`. */
export const auditPositionAnnotation = 'kcp.dev/audit-position'

/** How audit events are sent to a webhook in batches. */
export interface AuditWebhookSettings {
  /** Events that wait. */
  readonly bufferSize: number
  /** Events of a batch. */
  readonly maxBatchSize: number
  /** How long an event waits for a batch to fill, milliseconds. */
  readonly maxBatchWaitMs: number
  /** Batches per second, and the burst; absent: no limit. */
  readonly throttle?: { readonly qps: number; readonly burst: number }
  /** The wait before the second of five attempts, milliseconds; each further one is half as long again. */
  readonly initialBackoffMs: number
  /** An event with more bytes loses its bodies; if it is still too long, it is dropped. Default: no bound. */
  readonly maxEventBytes?: number
  /** Bytes of a batch. */
  readonly maxBatchBytes: number
  /** Bytes of all events that wait or are under way. */
  readonly maxBufferedBytes: number
  /** Batches that are under way at the same time. */
  readonly maxParallel: number
}

/** Defaults of kube-apiserver; the bounds in bytes and of parallel batches are ours. */
export const defaultAuditWebhook: AuditWebhookSettings = {
  bufferSize: 10_000,
  maxBatchSize: 400,
  maxBatchWaitMs: 30_000,
  throttle: { qps: 10, burst: 15 },
  initialBackoffMs: 10_000,
  maxBatchBytes: 10 * 1024 * 1024,
  maxBufferedBytes: 64 * 1024 * 1024,
  maxParallel: 4,
}

const maxRules = 32
const text = { type: 'string', maxLength: 253 } as const
const texts = (description: string, items: JsonSchema = text): JsonSchema => ({
  type: 'array',
  description,
  maxItems: 32,
  'x-kubernetes-list-type': 'atomic',
  items,
})
const stages = texts('Stages without events.', { type: 'string', enum: [...auditStages] })
const name = { type: 'string', minLength: 1, maxLength: 253 } as const

export const clusterAuditSchema: JsonSchema = {
  type: 'object',
  description:
    'The audit log of this logical cluster. The first rule that matches a request decides; without one, the request is in no event. The fields of the policy are those of Policy of audit.k8s.io.',
  required: ['rules'],
  properties: {
    omitStages: stages,
    omitManagedFields: { type: 'boolean', description: 'True: bodies are recorded without managedFields.' },
    rules: {
      type: 'array',
      description: 'The rules, in order.',
      minItems: 1,
      maxItems: maxRules,
      'x-kubernetes-list-type': 'atomic',
      items: {
        type: 'object',
        required: ['level'],
        properties: {
          level: {
            type: 'string',
            description:
              'None: no events. Metadata: without bodies. Request: with the object in the request. RequestResponse: also with the object in the response.',
            enum: [...auditLevels],
          },
          users: texts('Names of users. Default: all.'),
          userGroups: texts('Groups of users. Default: all.'),
          verbs: texts('Verbs. Default: all.'),
          resources: {
            type: 'array',
            description: 'Resources. Default: all, and requests for no resource.',
            maxItems: 32,
            'x-kubernetes-list-type': 'atomic',
            items: {
              type: 'object',
              properties: {
                group: {
                  ...text,
                  description: 'The API group; empty for the core group, * for all.',
                  pattern: '^([*]|[a-z0-9]([-a-z0-9.]*[a-z0-9])?)?$',
                },
                resources: texts('Resources, such as pods, pods/log, pods/*, */scale, *. Default: all.'),
                resourceNames: texts('Names of objects. Default: all.'),
              },
              'x-kubernetes-validations': [
                {
                  rule: '!has(self.resourceNames) || size(self.resourceNames) == 0 || (has(self.resources) && size(self.resources) > 0)',
                  message: 'using resourceNames requires at least one resource',
                },
              ],
            },
          },
          namespaces: texts('Namespaces; empty for cluster-scoped resources. Default: all.'),
          nonResourceURLs: texts('Paths; a final * stands for any rest.', {
            ...text,
            pattern: '^([*]|/[^*]*[*]?)$',
          }),
          omitStages: stages,
          omitManagedFields: { type: 'boolean', description: 'Replaces omitManagedFields of the policy.' },
        },
        'x-kubernetes-validations': [
          {
            rule: '!has(self.nonResourceURLs) || size(self.nonResourceURLs) == 0 || ((!has(self.resources) || size(self.resources) == 0) && (!has(self.namespaces) || size(self.namespaces) == 0))',
            message: 'rules cannot apply to both regular resources and non-resource URLs',
          },
        ],
      },
    },
    readable: {
      type: 'boolean',
      description:
        'True: users of the logical cluster with the right to get the path /audit read its last events there, and so does kcp audit. The server keeps them in memory: 1 MiB, until it restarts.',
    },
    webhook: {
      type: 'object',
      description: 'Gets the events in batches, as EventList of audit.k8s.io/v1.',
      required: ['url'],
      properties: {
        url: { type: 'string', maxLength: 1024, pattern: '^https://', description: 'Where they are posted.' },
        certificateAuthority: {
          type: 'string',
          maxLength: 32768,
          description: "PEM certificates that sign the webhook's. Default: the usual authorities.",
        },
        tokenSecretRef: {
          type: 'object',
          description: 'A Secret of the logical cluster with a bearer token under the key token.',
          required: ['namespace', 'name'],
          properties: { namespace: { ...name, maxLength: 63 }, name },
        },
      },
    },
  },
}
