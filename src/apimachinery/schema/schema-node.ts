// The internal form of a schema, the same for built-in kinds (from generated tables) and for structural schemas of
// CustomResourceDefinitions. References are resolved: a node may be shared and, for recursive kinds, cyclic.
import type { JsonValue } from '#apimachinery/meta/json.ts'

export type SchemaType = 'object' | 'array' | 'string' | 'integer' | 'number' | 'boolean'

export interface SchemaNode {
  type?: SchemaType
  format?: string
  /** Go type of a built-in object or scalar, such as `DeploymentSpec` or `Quantity`: decoding errors show it. */
  typeName?: string
  /** Go's full name of the type, where the other members do not determine it: `v1.Protocol`, `[]v1.Capability`. */
  goType?: string
  description?: string
  nullable?: boolean
  default?: JsonValue
  /** object */
  properties?: Record<string, SchemaNode>
  /** object used as a map: the schema of its values; true = any value */
  additionalProperties?: SchemaNode | boolean
  required?: string[]
  minProperties?: number
  maxProperties?: number
  /** array */
  items?: SchemaNode
  minItems?: number
  maxItems?: number
  uniqueItems?: boolean
  /** string */
  enum?: JsonValue[]
  pattern?: string
  minLength?: number
  maxLength?: number
  /** number */
  minimum?: number
  maximum?: number
  exclusiveMinimum?: boolean
  exclusiveMaximum?: boolean
  multipleOf?: number
  allOf?: SchemaNode[]
  anyOf?: SchemaNode[]
  oneOf?: SchemaNode[]
  not?: SchemaNode
  /** x-kubernetes-int-or-string */
  intOrString?: boolean
  /** x-kubernetes-preserve-unknown-fields */
  preserveUnknownFields?: boolean
  /** x-kubernetes-embedded-resource */
  embeddedResource?: boolean
  /** x-kubernetes-list-type */
  listType?: 'atomic' | 'set' | 'map'
  /** x-kubernetes-list-map-keys */
  listMapKeys?: string[]
  /** x-kubernetes-map-type */
  mapType?: 'granular' | 'atomic'
  /** x-kubernetes-patch-strategy, split at commas: merge, replace, retainKeys */
  patchStrategy?: string[]
  /** x-kubernetes-patch-merge-key */
  patchMergeKey?: string
  /** x-kubernetes-validations, as written (compiled by the CEL engine) */
  validations?: JsonValue[]
}
