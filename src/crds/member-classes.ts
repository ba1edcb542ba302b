// The classes of a member: StorageClasses, IngressClasses, RuntimeClasses and PriorityClasses, which objects of tenants
// name. The operator writes them into the status of the MemberCluster; placement and the projection into logical
// clusters read them.
import type { GroupVersionResource, KubeObject } from '#apimachinery/meta/index.ts'
import type { JsonSchema } from './crd.ts'

export const classKindNames = ['StorageClass', 'IngressClass', 'RuntimeClass', 'PriorityClass'] as const
export type ClassKindName = (typeof classKindNames)[number]

/**
 * One class, with the fields that its tenants may know: no parameters, which name Secrets and backends of the member.
 */
export interface MemberClass {
  name: string
  isDefault?: boolean
  /** The provisioner of a StorageClass, the controller of an IngressClass, the handler of a RuntimeClass. */
  provider?: string
  reclaimPolicy?: string
  volumeBindingMode?: string
  allowVolumeExpansion?: boolean
  /** The value of a PriorityClass. */
  value?: number
  preemptionPolicy?: string
}

/** The classes of one kind. */
export interface MemberClasses {
  kind: ClassKindName
  /**
   * There are more than maxClasses. The classes that are left out are not projected, and kcp does not call them
   * missing.
   */
  truncated?: boolean
  items: MemberClass[]
}

/** How many classes of one kind the status of a MemberCluster lists. */
export const maxClasses = 100

export interface ClassKind {
  readonly kind: ClassKindName
  readonly apiVersion: string
  readonly gvr: GroupVersionResource
  /** Annotation that marks the default class. */
  readonly defaultAnnotation?: string
}

export const classKinds: readonly ClassKind[] = [
  {
    kind: 'StorageClass',
    apiVersion: 'storage.k8s.io/v1',
    gvr: { group: 'storage.k8s.io', version: 'v1', resource: 'storageclasses' },
    defaultAnnotation: 'storageclass.kubernetes.io/is-default-class',
  },
  {
    kind: 'IngressClass',
    apiVersion: 'networking.k8s.io/v1',
    gvr: { group: 'networking.k8s.io', version: 'v1', resource: 'ingressclasses' },
    defaultAnnotation: 'ingressclass.kubernetes.io/is-default-class',
  },
  {
    kind: 'RuntimeClass',
    apiVersion: 'node.k8s.io/v1',
    gvr: { group: 'node.k8s.io', version: 'v1', resource: 'runtimeclasses' },
  },
  {
    kind: 'PriorityClass',
    apiVersion: 'scheduling.k8s.io/v1',
    gvr: { group: 'scheduling.k8s.io', version: 'v1', resource: 'priorityclasses' },
  },
]

interface AnyClass extends KubeObject {
  readonly provisioner?: string
  readonly handler?: string
  readonly reclaimPolicy?: string
  readonly volumeBindingMode?: string
  readonly allowVolumeExpansion?: boolean
  readonly value?: number
  readonly preemptionPolicy?: string
}

/** The entry in the status for a class of a member. */
export function memberClassOf({ defaultAnnotation }: ClassKind, object: KubeObject): MemberClass {
  const { provisioner, handler, ...rest } = object as AnyClass
  const { controller } = (rest['spec'] ?? {}) as { controller?: string }
  const provider = provisioner ?? handler ?? controller
  const { reclaimPolicy, volumeBindingMode, allowVolumeExpansion, value, preemptionPolicy } = rest
  const isDefault = defaultAnnotation !== undefined && rest.metadata.annotations?.[defaultAnnotation] === 'true'
  return {
    name: rest.metadata.name ?? '',
    ...(isDefault && { isDefault }),
    ...(provider !== undefined && { provider }),
    ...(reclaimPolicy !== undefined && { reclaimPolicy }),
    ...(volumeBindingMode !== undefined && { volumeBindingMode }),
    ...(allowVolumeExpansion !== undefined && { allowVolumeExpansion }),
    ...(value !== undefined && { value }),
    ...(preemptionPolicy !== undefined && { preemptionPolicy }),
  }
}

/** The object that shows a class of a member in a logical cluster. */
export function classObject({ kind, apiVersion, defaultAnnotation }: ClassKind, shown: MemberClass): KubeObject {
  const { name, isDefault, provider, ...rest } = shown
  const annotations = isDefault && defaultAnnotation !== undefined ? { [defaultAnnotation]: 'true' } : {}
  const named = {
    StorageClass: { provisioner: provider },
    IngressClass: { spec: { controller: provider } },
    RuntimeClass: { handler: provider },
    PriorityClass: { description: 'A priority class of member clusters.' },
  }[kind]
  return { apiVersion, kind, metadata: { name, annotations }, ...named, ...rest }
}

const text = (maxLength: number): JsonSchema => ({ type: 'string', maxLength })

/** The schema of status.classes. */
export const memberClassesSchema: JsonSchema = {
  type: 'array',
  description:
    'The classes that objects may use there. If a kind is absent, its classes are not known, because kcp may not read them.',
  maxItems: classKindNames.length,
  'x-kubernetes-list-type': 'map',
  'x-kubernetes-list-map-keys': ['kind'],
  items: {
    type: 'object',
    required: ['kind', 'items'],
    properties: {
      kind: { type: 'string', enum: [...classKindNames] },
      truncated: { type: 'boolean', description: `There are more than ${maxClasses}.` },
      items: {
        type: 'array',
        maxItems: maxClasses,
        'x-kubernetes-list-type': 'map',
        'x-kubernetes-list-map-keys': ['name'],
        items: {
          type: 'object',
          required: ['name'],
          properties: {
            name: text(253),
            isDefault: { type: 'boolean' },
            provider: text(253),
            reclaimPolicy: text(63),
            volumeBindingMode: text(63),
            allowVolumeExpansion: { type: 'boolean' },
            value: { type: 'integer', format: 'int32' },
            preemptionPolicy: text(63),
          },
        },
      },
    },
  },
}
