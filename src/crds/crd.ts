// The parts of CustomResourceDefinition that ours use, and how to make one from a kind.
import type { JsonValue, KubeObject } from '#apimachinery/meta/index.ts'

/** The parts of JSONSchemaProps (apiextensions.k8s.io/v1) that our schemas use. */
export interface JsonSchema {
  type?: 'object' | 'array' | 'string' | 'integer' | 'number' | 'boolean'
  description?: string
  format?: string
  default?: JsonValue
  enum?: JsonValue[]
  pattern?: string
  minLength?: number
  maxLength?: number
  minimum?: number
  maximum?: number
  minItems?: number
  maxItems?: number
  items?: JsonSchema
  properties?: Record<string, JsonSchema>
  additionalProperties?: JsonSchema
  required?: string[]
  'x-kubernetes-list-type'?: 'atomic' | 'set' | 'map'
  'x-kubernetes-list-map-keys'?: string[]
  'x-kubernetes-map-type'?: 'granular' | 'atomic'
  'x-kubernetes-preserve-unknown-fields'?: true
  'x-kubernetes-validations'?: { rule: string; message: string }[]
}

export interface PrinterColumn {
  name: string
  type: 'string' | 'integer' | 'date' | 'boolean' | 'number'
  jsonPath: string
  description?: string
  /** Above 0: only with `-o wide`. */
  priority?: number
}

export interface CustomResourceDefinition extends KubeObject {
  spec: {
    group: string
    scope: 'Cluster' | 'Namespaced'
    names: {
      plural: string
      singular: string
      kind: string
      listKind: string
      shortNames?: string[]
      categories?: string[]
    }
    versions: {
      name: string
      served: boolean
      storage: boolean
      schema: { openAPIV3Schema: JsonSchema }
      subresources?: { status: Record<string, never> }
      additionalPrinterColumns?: PrinterColumn[]
    }[]
  }
}

/** One kind of ours: names, schema, printer columns. */
export interface Kind {
  readonly group: string
  readonly version: string
  readonly kind: string
  readonly plural: string
  readonly shortNames?: readonly string[]
  readonly categories?: readonly string[]
  readonly scope: 'Cluster' | 'Namespaced'
  readonly description: string
  /** Schemas of the fields besides apiVersion, kind and metadata. */
  readonly properties: Readonly<Record<string, JsonSchema>>
  readonly required?: readonly string[]
  /**
   * The schema names nothing but `properties`, and other fields are kept unchecked: for each property that it knows,
   * also of every object's own like `metadata`, a kube-apiserver does work in every write.
   */
  readonly open?: true
  readonly validations?: readonly { rule: string; message: string }[]
  readonly status: boolean
  readonly columns: readonly PrinterColumn[]
}

/** The CustomResourceDefinition that serves a kind. */
export function crdOf(kind: Kind): CustomResourceDefinition {
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${kind.plural}.${kind.group}` },
    spec: {
      group: kind.group,
      scope: kind.scope,
      names: {
        plural: kind.plural,
        singular: kind.kind.toLowerCase(),
        kind: kind.kind,
        listKind: `${kind.kind}List`,
        ...(kind.shortNames && { shortNames: [...kind.shortNames] }),
        ...(kind.categories && { categories: [...kind.categories] }),
      },
      versions: [
        {
          name: kind.version,
          served: true,
          storage: true,
          schema: { openAPIV3Schema: schemaOf(kind) },
          ...(kind.status && { subresources: { status: {} } }),
          additionalPrinterColumns: kind.columns.map((column) => ({ ...column })),
        },
      ],
    },
  }
}

function schemaOf({ description, properties, required = [], open, validations = [] }: Kind): JsonSchema {
  return {
    type: 'object',
    description,
    properties: { ...(open ? {} : ofEveryObject()), ...structuredClone(properties) },
    ...(open && { 'x-kubernetes-preserve-unknown-fields': true as const }),
    ...(required.length > 0 && { required: [...required] }),
    ...(validations.length > 0 && { 'x-kubernetes-validations': validations.map((rule) => ({ ...rule })) }),
  }
}

function ofEveryObject(): Record<string, JsonSchema> {
  return {
    apiVersion: { type: 'string', description: 'The group and version of this object.' },
    kind: { type: 'string', description: 'The kind of this object.' },
    metadata: { type: 'object' },
  }
}
