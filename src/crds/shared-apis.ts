// The kinds of group apis.kcp.io: APIs that one logical cluster publishes and others use. Their shapes are those of the
// kcp project (sdk/apis/apis v1alpha1 and v1alpha2). Fields that kcp does not have are additions, which its clients
// ignore.
import { createHash } from 'node:crypto'
import { groupResourceText, type KubeObject, type ObjectMeta } from '#apimachinery/meta/index.ts'
import type { CustomResourceDefinition, JsonSchema, Kind, PrinterColumn } from './crd.ts'
import { crdOf } from './crd.ts'
import { ageColumn, conditionColumn, reasonColumn } from './conditions.ts'
import { labelSelectorSchema, type LabelSelector } from './label-selector.ts'

export const sharedApisGroup = 'apis.kcp.io'
/** Holds a binding that is being deleted. Only the server adds and removes it. */
export const apiBindingFinalizer = 'apis.kcp.io/apibinding-finalizer'
/** Names the parent whose APIBinding made this one. */
export const inheritedFromAnnotation = 'apis.kcp.io/inherited-from'
/** Marks a revision of an export while other logical clusters have it: that of the export is not deleted then. */
export const revisionFinalizer = 'apis.kcp.io/consumers'

const gvr = (resource: string, version = 'v1alpha2') => ({ group: sharedApisGroup, version, resource })
export const apiExports = gvr('apiexports')
export const apiBindings = gvr('apibindings')
export const apiResourceSchemas = gvr('apiresourceschemas', 'v1alpha1')
export const apiExportEndpointSlices = gvr('apiexportendpointslices', 'v1alpha1')
export const apiExportRevisions = gvr('apiexportrevisions', 'v1alpha1')

/** The identity hash of an export, which claims of other exports name. */
export function identityHashOf(exportUid: string): string {
  return createHash('sha256').update(exportUid).digest('hex')
}

/** The name of the APIExportRevision that keeps a revision of an export. */
export function revisionName(exportUid: string, revision: number): string {
  return `${exportUid}-${revision}`
}

/** The same text for a claim of an export and the answer of a consumer to it. */
export function claimId({ group = '', resource, identityHash = '' }: PermissionClaim): string {
  return `${groupResourceText({ group, resource })}:${identityHash}`
}

/** A condition as the kcp project has them: without observedGeneration. */
export interface SharingCondition {
  type: string
  status: 'True' | 'False' | 'Unknown'
  severity?: 'Error' | 'Warning' | 'Info'
  lastTransitionTime: string
  reason?: string
  message?: string
}

/** A resource that an export offers: a CustomResourceDefinition, or an APIResourceSchema, of the same logical cluster. */
export interface ExportedResource {
  name: string
  group: string
  /** The name of an APIResourceSchema. */
  schema?: string
  /** The name of a CustomResourceDefinition. */
  crd?: string
}

/** How a claim finds objects that objects of the export name. */
export interface ClaimReference {
  /** The exported resource whose objects name the claimed ones. */
  resource: string
  group?: string
  /** The field with the name, such as `spec.secretRef.name`; `[*]` for each item of a list. */
  namePath: string
  /** The field with the namespace. Default: the namespace of the naming object. */
  namespacePath?: string
}

export interface ClaimSelector {
  matchLabels?: Record<string, string>
  matchExpressions?: NonNullable<LabelSelector['matchExpressions']>
  matchAll?: boolean
}

/** What a claim covers besides group and resource. Both sides may narrow it. */
export interface ClaimBounds {
  /** `*`: all. */
  verbs?: string[]
  /** Subresources; absent: those that are parts of the object. */
  subresources?: string[]
  namespaces?: string[]
  /** Single objects; absent: all. */
  objects?: { name?: string; namespace?: string }[]
  /** A CEL expression over `object`. */
  cel?: string
  reference?: ClaimReference
}

export interface PermissionClaim extends ClaimBounds {
  group?: string
  resource: string
  identityHash?: string
  defaultSelector?: ClaimSelector
}

export interface AcceptedClaim extends PermissionClaim {
  selector?: ClaimSelector
  state: 'Accepted' | 'Rejected'
  /** RFC 3339; the claim counts as rejected from then on. */
  expires?: string
}

/**
 * The admission of the export's logical cluster that acts on exported objects in consumers that accept it. Without this
 * field all that matches is offered, because exports that were written for the kcp project have no such field.
 */
export interface ExportAdmission {
  /** Names of webhook configurations. Absent: all whose rules match an exported resource. */
  webhooks?: string[]
  /** Names of admission policies that have a binding. Absent: all that match an exported resource. */
  policies?: string[]
  /** Consumers write exported objects only after they have accepted both. */
  required?: boolean
}

export type Answer = 'Accepted' | 'Rejected'

export interface APIExport extends KubeObject {
  metadata: ObjectMeta & { name: string }
  spec?: {
    resources?: ExportedResource[]
    permissionClaims?: PermissionClaim[]
    maximalPermissionPolicy?: { local?: Record<string, never> }
    rollout?: ExportRollout
    admission?: ExportAdmission
    transfer?: ExportTransfer
  }
  status?: APIExportStatus
}

/**
 * A transfer of an export to another owner, which needs both sides: the present one names the new logical cluster, and
 * an APIExport there names this one. Identity, bindings and stored objects stay as they are.
 */
export interface ExportTransfer {
  /** The logical cluster that may take the export over. */
  to?: string
  /** The export that this one continues. */
  from?: { path: string; name: string }
}

/** The identity of an export that continues another one, and where the other one is until all bindings have followed. */
export interface ExportOrigin {
  uid: string
  /** How many times the identity has changed its owner. */
  transfers: number
  /** Absent: the transfer is complete. */
  from?: { cluster: string; name: string }
}

/** The identity of an export: its uid, or that of the export that it continues. */
export function identityOf({ metadata, status }: APIExport): string {
  return status?.origin?.uid ?? metadata.uid ?? ''
}

/** A group of consumers: those of these names, and those whose APIBinding has the labels. */
export interface RolloutGroup {
  consumers?: string[]
  /**
   * Over labels of APIBindings, which the provider sees in its view. Labels of LogicalClusters belong to the
   * installation: a selector would tell a provider of them.
   */
  selector?: LabelSelector
}

/** How consumers get a new revision. */
export interface ExportRollout {
  /** Groups that get it one after the other, before all other consumers. */
  order?: RolloutGroup[]
  /** How many of the consumers, in percent, are to have the newest revision. Default 100. */
  percent?: number
  /** No further consumer gets it. */
  pause?: boolean
  /** Stop at the first consumer whose stored objects the revision would break. Default true. */
  holdOnError?: boolean
}

export interface APIExportStatus {
  identityHash?: string
  /** The number of the newest revision. */
  revision?: number
  consumers?: number
  /** Consumers that have the newest revision. */
  updatedConsumers?: number
  /** Consumers that the newest revision would break; the first by name. */
  heldConsumers?: { cluster: string; message: string }[]
  rollout?: {
    /** The share of the consumers, in percent, that may have the newest revision. */
    released: number
    /** How many groups of spec.rollout.order may have it; absent: all. */
    groups?: number
  }
  /** What the export brings; absent: nothing. */
  admission?: ExportAdmission
  /** Of an export that continues another one. */
  origin?: ExportOrigin
  /** The id of the logical cluster that `spec.transfer.to` meant when it was written: names are used again. */
  offeredTo?: { name: string; id: string }
  conditions?: SharingCondition[]
}

/** An immutable set of definitions of an export. */
export interface APIExportRevision extends KubeObject {
  spec: {
    export: { name: string; uid: string }
    revision: number
    /** JSON of the `spec` of CustomResourceDefinitions, so that the server stores and reads it as one text. */
    definitions: { name: string; schemaName: string; uid: string; text: string }[]
  }
}

export interface BoundResource {
  group: string
  resource: string
  schema: { name: string; UID: string; identityHash: string }
  storageVersions?: string[]
}

export type DeletionPolicy = 'Hold' | 'Delete' | 'Orphan'

export interface APIBinding extends KubeObject {
  metadata: ObjectMeta & { name: string }
  spec?: {
    reference?: { export?: { path?: string; name: string } }
    permissionClaims?: AcceptedClaim[]
    /** What a deletion of the binding does with the objects. Default Hold. */
    deletionPolicy?: DeletionPolicy
    /** Objects of these resources that an earlier binding left may become objects of this export. */
    adoptExisting?: boolean
    /** Whether the provider's admission acts on the objects of the export here. Absent: it does not. */
    admission?: { webhooks?: Answer; policies?: Answer }
  }
  status?: APIBindingStatus
}

export interface APIBindingStatus {
  apiExportClusterName?: string
  /** uid of the export. */
  exportUID?: string
  /** The revision of the export that this binding has. */
  revision?: number
  boundResources?: BoundResource[]
  phase?: '' | 'Binding' | 'Bound'
  appliedPermissionClaims?: AcceptedClaim[]
  exportPermissionClaims?: PermissionClaim[]
  /** The admission that the export brings; absent: none. In force is what `spec.admission` accepts of it. */
  exportAdmission?: ExportAdmission
  conditions?: SharingCondition[]
}

const text = (description: string, more: JsonSchema = {}): JsonSchema => ({ type: 'string', description, ...more })
const record = (description: string, properties: Record<string, JsonSchema>, required: string[] = []): JsonSchema => ({
  type: 'object',
  description,
  properties,
  ...(required.length > 0 && { required }),
})
const atomic = (description: string, items: JsonSchema, maxItems = 64): JsonSchema => ({
  type: 'array',
  description,
  maxItems,
  'x-kubernetes-list-type': 'atomic',
  items,
})
const mapOf = (description: string, keys: string[], items: JsonSchema, maxItems = 64): JsonSchema => ({
  type: 'array',
  description,
  maxItems,
  'x-kubernetes-list-type': 'map',
  'x-kubernetes-list-map-keys': keys,
  items,
})
const integer = (description: string, minimum = 0): JsonSchema => ({
  type: 'integer',
  format: 'int32',
  minimum,
  description,
})
const answer = (description: string): JsonSchema => ({ type: 'string', enum: ['Accepted', 'Rejected'], description })
const flag = (description: string): JsonSchema => ({ type: 'boolean', description })
const anything = (description: string): JsonSchema => ({
  type: 'object',
  description,
  'x-kubernetes-preserve-unknown-fields': true,
})

const maxName = { minLength: 1, maxLength: 253 }
const name = (description: string): JsonSchema => text(description, maxName)
const optionalGroup = text('The API group; empty for the core group.', { default: '', maxLength: 253 })

const sharingConditions: JsonSchema = mapOf(
  'Observations of the current state of this object.',
  ['type'],
  record(
    'An observation.',
    {
      type: text('The type of the condition.', { minLength: 1, maxLength: 316 }),
      status: { type: 'string', enum: ['True', 'False', 'Unknown'] },
      severity: text('How bad a status False is: Error, Warning or Info.', { maxLength: 32 }),
      lastTransitionTime: { type: 'string', format: 'date-time', description: 'When the status last changed.' },
      reason: text('Why, in one word for programs.', { maxLength: 1024 }),
      message: text('Why, in a sentence for people.', { maxLength: 32768 }),
    },
    ['type', 'status', 'lastTransitionTime'],
  ),
  32,
)

function claimSelector(description: string): JsonSchema {
  const schema = labelSelectorSchema(description)
  return { ...schema, properties: { ...schema.properties, matchAll: flag('All objects.') } }
}

const claimBounds: Record<string, JsonSchema> = {
  verbs: atomic('Verbs, or `*` for all of them.', text('A verb.', { minLength: 1, maxLength: 63 })),
  subresources: atomic(
    'Subresources, such as `status`. Absent: those that are parts of the object, so neither `token` nor `exec`.',
    text('A subresource.', maxName),
  ),
  namespaces: atomic('Namespaces. Absent: all of them.', name('A namespace.'), 256),
  objects: atomic(
    'Single objects. Absent: all of them.',
    record('An object.', {
      name: text('Its name.', { maxLength: 253 }),
      namespace: text('Its namespace.', { maxLength: 63 }),
    }),
    256,
  ),
  cel: text('A CEL expression over `object` that must be true.', { minLength: 1, maxLength: 1024 }),
  reference: record(
    'Only objects that objects of the export name.',
    {
      group: text('The API group of the naming objects.', { maxLength: 253 }),
      resource: name('The exported resource whose objects name the claimed ones.'),
      namePath: text('The field with the name, such as spec.secretRef.name; [*] for each item of a list.', {
        minLength: 1,
        maxLength: 253,
      }),
      namespacePath: text('The field with the namespace. Default: the namespace of the naming object.', {
        maxLength: 253,
      }),
    },
    ['resource', 'namePath'],
  ),
}

const claim: Record<string, JsonSchema> = {
  group: optionalGroup,
  resource: name('The resource, in plural.'),
  identityHash: text('The identity of the export that offers the resource; empty for built-in resources.', {
    default: '',
    maxLength: 128,
  }),
  ...claimBounds,
}
const exportClaim = { ...claim, defaultSelector: claimSelector('The objects that consumers are expected to accept.') }
const bindingClaim = {
  ...exportClaim,
  selector: claimSelector('The objects of the claim that the consumer accepts. Absent: all of them.'),
  state: { type: 'string', enum: ['Accepted', 'Rejected'] } as JsonSchema,
  expires: {
    type: 'string',
    format: 'date-time',
    description: 'The claim counts as rejected from then on.',
  } as JsonSchema,
}
const exportClaims = mapOf(
  'What the provider asks of each consumer.',
  ['group', 'resource'],
  record('A claim.', exportClaim, ['resource']),
)
const bindingClaims = mapOf(
  'The answer of the consumer to each claim of the export.',
  ['group', 'resource', 'identityHash'],
  record('An answer to a claim.', bindingClaim, ['resource', 'state']),
)

const exportReference = record(
  'The export.',
  {
    path: text('The logical cluster of the export. Default: this one.', { maxLength: 253 }),
    name: name('The name of the export.'),
  },
  ['name'],
)
const immutableReference = { rule: 'self == oldSelf', message: 'the reference is immutable: create another binding' }

/** Claims of v1alpha1. */
const oldClaim: Record<string, JsonSchema> = {
  group: optionalGroup,
  resource: name('The resource, in plural.'),
  all: flag('All objects.'),
  resourceSelector: atomic(
    'Single objects.',
    record('An object.', {
      name: text('Its name.', { maxLength: 253 }),
      namespace: text('Its namespace.', { maxLength: 63 }),
    }),
    256,
  ),
  identityHash: text('The identity of the export that offers the resource.', { default: '', maxLength: 128 }),
}
const oldBindingClaim = { ...oldClaim, state: { type: 'string', enum: ['Accepted', 'Rejected'] } as JsonSchema }
const oldClaims = (items: Record<string, JsonSchema>, required: string[]): JsonSchema =>
  atomic('Claims.', record('A claim.', items, ['resource', ...required]))

const category = { group: sharedApisGroup, scope: 'Cluster', categories: ['kcp'], status: true } as const

const rollout = record('How consumers get a new revision.', {
  percent: {
    ...integer('How many of the consumers, in percent, are to have the newest revision. Default 100.'),
    maximum: 100,
  },
  order: atomic(
    'Groups of consumers that get it before all others, one after the other. `percent` is the share of the others.',
    record('A group.', {
      consumers: atomic('Names of logical clusters.', name('A name.'), 256),
      selector: labelSelectorSchema('Labels of APIBindings, which consumers set.'),
    }),
    16,
  ),
  pause: flag('No further consumer gets the newest revision.'),
  holdOnError: flag('Stop at the first consumer whose stored objects the revision would break. Default true.'),
})

function exportAdmission(description: string): JsonSchema {
  return record(description, {
    webhooks: atomic('Names of webhook configurations. Absent: all that match an exported resource.', name('A name.')),
    policies: atomic('Names of admission policies. Absent: all that match an exported resource.', name('A name.')),
    required: flag('Consumers write exported objects only after they have accepted webhooks and policies.'),
  })
}

const exportStatus: Record<string, JsonSchema> = {
  identityHash: text('The identity of the export: the SHA-256 of its uid.'),
  revision: integer('The number of the newest revision.'),
  consumers: integer('How many bindings there are.'),
  updatedConsumers: integer('How many of them have the newest revision.'),
  heldConsumers: atomic(
    'Consumers that the newest revision would break.',
    record('A consumer.', { cluster: text('Its logical cluster.'), message: text('What would break.') }),
    10,
  ),
  rollout: record('How far the newest revision has come.', {
    released: integer('The share of the consumers, in percent, that may have it.'),
    groups: integer('How many groups of spec.rollout.order may have it. Absent: all.'),
  }),
  admission: exportAdmission('The admission that the export brings.'),
  origin: record('The identity of an export that continues another one.', {
    uid: text('The identity.'),
    transfers: integer('How many times the identity has changed its owner.'),
    from: record('The former export, until all bindings have followed.', {
      cluster: text('The id of its logical cluster.'),
      name: text('Its name.'),
    }),
  }),
  offeredTo: record('The logical cluster that may take this export over.', {
    name: text('Its name.'),
    id: text('Its id.'),
  }),
  conditions: sharingConditions,
  virtualWorkspaces: atomic('Not used.', record('A URL.', { url: text('The URL.') })),
}

const exportColumns: PrinterColumn[] = [
  { name: 'Revision', type: 'integer', jsonPath: '.status.revision' },
  { name: 'Consumers', type: 'integer', jsonPath: '.status.consumers' },
  { name: 'Updated', type: 'integer', jsonPath: '.status.updatedConsumers' },
  reasonColumn('Rollout', 'RolledOut'),
  ageColumn,
]

const exportKind = (version: string, spec: Record<string, JsonSchema>): Kind => ({
  ...category,
  version,
  kind: 'APIExport',
  plural: 'apiexports',
  description: 'An APIExport offers resources of this logical cluster to others, which bind them with an APIBinding.',
  properties: { spec: record('The desired state.', spec), status: record('The observed state.', exportStatus) },
  columns: exportColumns,
})

const policySpec: Record<string, JsonSchema> = {
  maximalPermissionPolicy: record('The most that consumers may do with the resources.', {
    local: anything('RBAC of this logical cluster decides.'),
  }),
  identity: anything('Accepted from clients of the kcp project. The identity is the uid of the export.'),
  rollout,
  transfer: record('A transfer of the export to another logical cluster. It needs both sides.', {
    to: text('The logical cluster that may take this export over.', { maxLength: 253 }),
    from: record(
      'The export of another logical cluster that this one continues, with its identity and its consumers.',
      { path: name('Its logical cluster.'), name: name('Its name.') },
      ['path', 'name'],
    ),
  }),
  admission: exportAdmission(
    'The admission of this logical cluster that acts on exported objects in consumers that accept it. Default: all that matches.',
  ),
}

const exportSpec: Record<string, JsonSchema> = {
  resources: mapOf(
    'The offered resources.',
    ['name', 'group'],
    record(
      'A resource.',
      {
        name: name('The resource, in plural.'),
        group: optionalGroup,
        schema: text('The name of an APIResourceSchema of this logical cluster.', { maxLength: 253 }),
        crd: text('The name of a CustomResourceDefinition of this logical cluster, instead of a schema.', {
          maxLength: 253,
        }),
        storage: anything('How objects are stored: `crd`, in each consumer.'),
      },
      ['name'],
    ),
    128,
  ),
  permissionClaims: exportClaims,
  ...policySpec,
}

const oldExportSpec: Record<string, JsonSchema> = {
  latestResourceSchemas: {
    type: 'array',
    description: 'Names of APIResourceSchemas of this logical cluster.',
    maxItems: 128,
    'x-kubernetes-list-type': 'set',
    items: name('A name.'),
  },
  permissionClaims: oldClaims(oldClaim, []),
  ...policySpec,
}

const bindingStatus = (claims: JsonSchema, accepted: JsonSchema): Record<string, JsonSchema> => ({
  apiExportClusterName: text('The logical cluster of the export.'),
  exportUID: text('The uid of the export.'),
  revision: integer('The revision of the export that this binding has.'),
  boundResources: mapOf(
    'The resources that this logical cluster serves by the binding.',
    ['group', 'resource'],
    record(
      'A resource.',
      {
        group: optionalGroup,
        resource: text('The resource, in plural.'),
        schema: record('Its definition.', {
          name: text('The name of the schema or definition.'),
          UID: text('Its uid.'),
          identityHash: text('The identity of the export.'),
        }),
        storageVersions: atomic('The version in which objects are stored.', text('A version.')),
      },
      ['group', 'resource'],
    ),
    128,
  ),
  phase: text('Empty, Binding or Bound.'),
  appliedPermissionClaims: accepted,
  exportPermissionClaims: claims,
  exportAdmission: exportAdmission(
    'The admission that the export brings, the first five names of each. In force is what spec.admission accepts.',
  ),
  conditions: sharingConditions,
})

const bindingColumns: PrinterColumn[] = [
  { name: 'Cluster', type: 'string', jsonPath: '.spec.reference.export.path' },
  { name: 'Export', type: 'string', jsonPath: '.spec.reference.export.name' },
  conditionColumn('Ready', 'Ready'),
  { name: 'Message', type: 'string', jsonPath: '.status.conditions[?(@.type=="Ready")].message', priority: 1 },
  ageColumn,
]

const bindingKind = (version: string, claims: JsonSchema, status: Record<string, JsonSchema>): Kind => ({
  ...category,
  version,
  kind: 'APIBinding',
  plural: 'apibindings',
  description: 'An APIBinding makes the resources of an APIExport of another logical cluster resources of this one.',
  required: ['spec'],
  properties: {
    spec: record(
      'The desired state.',
      {
        reference: {
          ...record('The export.', { export: exportReference }, ['export']),
          'x-kubernetes-validations': [immutableReference],
        },
        permissionClaims: claims,
        deletionPolicy: {
          type: 'string',
          enum: ['Hold', 'Delete', 'Orphan'],
          description:
            'What a deletion of the binding does: Hold waits until no objects exist, Delete deletes them, Orphan keeps them for another binding. Default Hold.',
        },
        admission: record('Whether admission of the provider acts on the objects of the export here. Default: no.', {
          webhooks: answer('Its webhooks, which get the objects and the names and groups of users.'),
          policies: answer('Its admission policies, which the server evaluates.'),
        }),
        adoptExisting: flag('Objects of these resources that an earlier binding left become objects of this export.'),
      },
      ['reference'],
    ),
    status: record('The observed state.', status),
  },
  columns: bindingColumns,
})

const schemaKind: Kind = {
  ...category,
  status: false,
  version: 'v1alpha1',
  kind: 'APIResourceSchema',
  plural: 'apiresourceschemas',
  description: 'An APIResourceSchema is an immutable definition of a resource, for APIExports.',
  required: ['spec'],
  properties: {
    spec: {
      ...record(
        'The definition, as in a CustomResourceDefinition.',
        {
          group: optionalGroup,
          names: anything('The names of the resource.'),
          scope: { type: 'string', enum: ['Cluster', 'Namespaced'] },
          versions: atomic('The versions.', anything('A version; `schema` is the OpenAPI schema itself.'), 64),
          nameValidation: text('Which names objects may have: DNS1123Subdomain or PathSegmentName.', { maxLength: 63 }),
          conversion: anything('How versions are converted.'),
        },
        ['names', 'scope', 'versions'],
      ),
    },
  },
  columns: [ageColumn],
}

const sliceKind: Kind = {
  ...category,
  version: 'v1alpha1',
  kind: 'APIExportEndpointSlice',
  plural: 'apiexportendpointslices',
  description: 'An APIExportEndpointSlice has the URLs at which the provider of an APIExport reaches its consumers.',
  required: ['spec'],
  properties: {
    spec: record(
      'The desired state.',
      {
        export: { ...exportReference, 'x-kubernetes-validations': [immutableReference] },
        partition: text('Not used.', { maxLength: 253 }),
      },
      ['export'],
    ),
    status: record('The observed state.', {
      endpoints: mapOf('The URLs.', ['url'], record('A URL.', { url: text('The URL.') }, ['url'])),
      shardSelector: text('Not used.'),
      conditions: sharingConditions,
    }),
  },
  columns: [
    { name: 'Export', type: 'string', jsonPath: '.spec.export.name' },
    { name: 'URL', type: 'string', jsonPath: '.status.endpoints[0].url' },
    ageColumn,
  ],
}

const revisionKind: Kind = {
  ...category,
  status: false,
  version: 'v1alpha1',
  kind: 'APIExportRevision',
  plural: 'apiexportrevisions',
  description:
    'An APIExportRevision keeps the definitions of an APIExport as they were at one time. The server writes it.',
  required: ['spec'],
  properties: {
    spec: record('The definitions.', {
      export: record('The export.', { name: text('Its name.'), uid: text('Its uid.') }, ['name', 'uid']),
      revision: integer('The number of the revision.', 1),
      definitions: atomic(
        'The definitions.',
        record('A definition.', {
          name: text('PLURAL.GROUP.'),
          schemaName: text('The object that the definition comes from.'),
          uid: text('The uid of that object.'),
          text: text('JSON of the spec of a CustomResourceDefinition.'),
        }),
        128,
      ),
    }),
  },
  columns: [
    { name: 'Export', type: 'string', jsonPath: '.spec.export.name' },
    { name: 'Revision', type: 'integer', jsonPath: '.spec.revision' },
    ageColumn,
  ],
}

/** The kinds of group apis.kcp.io; the newest version of each is the stored one. */
export function sharedApiCrds(): CustomResourceDefinition[] {
  return [
    versionsOf(exportKind('v1alpha2', exportSpec), exportKind('v1alpha1', oldExportSpec)),
    versionsOf(
      bindingKind('v1alpha2', bindingClaims, bindingStatus(exportClaims, bindingClaims)),
      bindingKind(
        'v1alpha1',
        oldClaims(oldBindingClaim, ['state']),
        bindingStatus(oldClaims(oldClaim, []), oldClaims(oldBindingClaim, [])),
      ),
    ),
    versionsOf(schemaKind),
    versionsOf(sliceKind),
    versionsOf(revisionKind),
  ]
}

/** One definition with several versions. The first one is stored. */
function versionsOf(...kinds: [Kind, ...Kind[]]): CustomResourceDefinition {
  const crd = crdOf(kinds[0])
  const versions = kinds.flatMap((kind, i) => crdOf(kind).spec.versions.map((one) => ({ ...one, storage: i === 0 })))
  return { ...crd, spec: { ...crd.spec, versions } }
}
