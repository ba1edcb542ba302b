// The library `kcp/managed-fields`: server-side apply and the owners of fields, as in structured-merge-diff.
import { fieldTypeOf, type FieldType } from '#apimachinery/managed-fields/index.ts'
import type { JsonObject } from '#apimachinery/meta/index.ts'
import { objectMetaSchema, parseStructuralSchema, type SchemaNode } from '#apimachinery/schema/index.ts'

export * from '#apimachinery/managed-fields/index.ts'
export { parseStructuralSchema, type SchemaNode } from '#apimachinery/schema/index.ts'
export type { JsonObject, JsonValue, KubeObject, ManagedFieldsEntry } from '#apimachinery/meta/index.ts'

const text: SchemaNode = { type: 'string' }

/** The ownership type of a kind: the structural schema of its definition, with apiVersion, kind and ObjectMeta. */
export function fieldTypeOfKind(openApiSchema: JsonObject): FieldType {
  const schema = parseStructuralSchema(openApiSchema)
  const own = { apiVersion: text, kind: text, metadata: objectMetaSchema }
  return fieldTypeOf({ ...schema, properties: { ...schema.properties, ...own } })
}
