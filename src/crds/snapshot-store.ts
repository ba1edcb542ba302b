// SnapshotStore: where snapshots of logical clusters are kept. Written by admins beside the LogicalClusters, never inside
// of one: it names a directory of the operator, or a bucket with credentials.
import type { Condition, KubeObject, ObjectMeta } from '#apimachinery/meta/index.ts'
import { ageColumn, conditionColumn, conditionsSchema, observedGenerationSchema, reasonColumn } from './conditions.ts'
import type { JsonSchema, Kind } from './crd.ts'

export interface SnapshotStore extends KubeObject {
  apiVersion: 'kcp.dev/v1alpha1'
  kind: 'SnapshotStore'
  metadata: ObjectMeta & { name: string }
  spec: SnapshotStoreSpec
  status?: { observedGeneration?: number; conditions?: Condition[] }
}

export interface SnapshotStoreSpec {
  /** A directory below the operator's `--snapshot-directory`. */
  file?: { path: string }
  s3?: S3Spec
  encryption?: {
    /** Public keys of age. */
    recipients: string[]
    /** Secret with key `identity`: the secret keys of age, for restores by the operator. */
    identitySecretRef?: { name: string }
  }
  /** Whether a snapshot is read back before it counts as complete. Default true. */
  verify?: boolean
}

export interface S3Spec {
  bucket: string
  prefix?: string
  /** URL. Absent: AWS. */
  endpoint?: string
  /** Default us-east-1. */
  region?: string
  forcePathStyle?: boolean
  /** PEM. */
  certificateAuthority?: string
  credentialsSecretRef: { name: string }
}

/** The keys of the Secret with credentials, as AWS' own tools call them. */
export const s3SecretKeys = {
  accessKeyId: 'AWS_ACCESS_KEY_ID',
  secretAccessKey: 'AWS_SECRET_ACCESS_KEY',
  sessionToken: 'AWS_SESSION_TOKEN',
} as const
/** The key of the Secret with secret keys of age. */
export const identitySecretKey = 'identity'

export const snapshotStores = { group: 'kcp.dev', version: 'v1alpha1', resource: 'snapshotstores' } as const
export const snapshotStoreConditions = ['Ready'] as const

const objectName: JsonSchema = {
  type: 'string',
  minLength: 1,
  maxLength: 253,
  pattern: '^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$',
}
const path: JsonSchema = {
  type: 'string',
  minLength: 1,
  maxLength: 253,
  pattern: '^[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9._-]*)*$',
}
const secretRef = (description: string): JsonSchema => ({
  type: 'object',
  description,
  required: ['name'],
  properties: { name: objectName },
})

export const snapshotStoreKind: Kind = {
  group: snapshotStores.group,
  version: snapshotStores.version,
  kind: 'SnapshotStore',
  plural: snapshotStores.resource,
  shortNames: ['sst'],
  categories: ['kcp'],
  scope: 'Cluster',
  description: 'A SnapshotStore is a place that keeps snapshots of logical clusters: a directory or a bucket.',
  properties: {
    spec: {
      type: 'object',
      description: 'The desired state.',
      properties: {
        file: {
          type: 'object',
          description: 'A directory below the one of the operator (--snapshot-directory).',
          required: ['path'],
          properties: {
            path: {
              ...path,
              description: 'Its path there, which is made. It does not change.',
              'x-kubernetes-validations': [
                { rule: 'self == oldSelf', message: 'snapshots are there: it does not change' },
              ],
            },
          },
        },
        s3: {
          type: 'object',
          description: 'A bucket of an object store that speaks S3.',
          required: ['bucket', 'credentialsSecretRef'],
          properties: {
            bucket: {
              type: 'string',
              minLength: 3,
              maxLength: 63,
              pattern: '^[a-z0-9][a-z0-9.-]*[a-z0-9]$',
              description: 'Its name, which does not change.',
              'x-kubernetes-validations': [
                { rule: 'self == oldSelf', message: 'snapshots are there: it does not change' },
              ],
            },
            prefix: {
              ...path,
              description: 'The beginning of all keys, without a slash at the end. It does not change.',
              'x-kubernetes-validations': [
                { rule: 'self == oldSelf', message: 'snapshots are there: it does not change' },
              ],
            },
            endpoint: {
              type: 'string',
              maxLength: 2048,
              pattern: '^https?://[^@?#]+$',
              description: 'URL of the object store. Absent: that of AWS in the region. Redirects are not followed.',
            },
            region: { type: 'string', minLength: 1, maxLength: 64, description: 'Default us-east-1.' },
            forcePathStyle: {
              type: 'boolean',
              description:
                'True: the bucket is in the path of URLs. False: it is in the name of the host. Default: true with an endpoint.',
            },
            certificateAuthority: {
              type: 'string',
              maxLength: 65536,
              description: 'PEM certificates of the authority of the object store. Absent: those of the system.',
            },
            credentialsSecretRef: secretRef(
              'A Secret in the namespace of the operator with keys AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and, if needed, AWS_SESSION_TOKEN. It is read for each use.',
            ),
          },
          'x-kubernetes-validations': [
            { rule: 'has(self.prefix) == has(oldSelf.prefix)', message: 'the prefix does not change' },
          ],
        },
        encryption: {
          type: 'object',
          description: 'Encrypts snapshots in the format of age. Absent: Secrets of tenants are in them in plain text.',
          required: ['recipients'],
          properties: {
            recipients: {
              type: 'array',
              description: 'Public keys of age; each of them can decrypt.',
              minItems: 1,
              maxItems: 16,
              'x-kubernetes-list-type': 'set',
              items: { type: 'string', maxLength: 4096, pattern: '^age1[0-9a-z]+$' },
            },
            identitySecretRef: secretRef(
              'A Secret in the namespace of the operator whose key identity has secret keys of age, for spec.source.snapshot of LogicalClusters. Absent: only people with a key restore (kcp snapshot restore --identity).',
            ),
          },
        },
        verify: {
          type: 'boolean',
          default: true,
          description: 'Whether each snapshot is read back and compared before it counts as complete.',
        },
      },
      'x-kubernetes-validations': [
        { rule: 'has(self.file) != has(self.s3)', message: 'exactly one of file and s3' },
        { rule: 'has(self.file) == has(oldSelf.file)', message: 'snapshots are there: file and s3 do not change' },
        {
          rule: "!has(self.s3) || !has(self.s3.endpoint) || !self.s3.endpoint.startsWith('http://') || has(self.encryption)",
          message: 'http:// would send Secrets of tenants in plain text: use https://, or set encryption.recipients',
        },
      ],
    },
    status: {
      type: 'object',
      description: 'The observed state; written by the operator.',
      properties: {
        observedGeneration: observedGenerationSchema,
        conditions: conditionsSchema(snapshotStoreConditions),
      },
    },
  },
  required: ['spec'],
  status: true,
  columns: [
    { name: 'Bucket', type: 'string', jsonPath: '.spec.s3.bucket' },
    { name: 'Path', type: 'string', jsonPath: '.spec.file.path' },
    conditionColumn('Ready', 'Ready'),
    reasonColumn('Reason', 'Ready'),
    { name: 'Message', type: 'string', jsonPath: '.status.conditions[?(@.type=="Ready")].message', priority: 1 },
    ageColumn,
  ],
}
