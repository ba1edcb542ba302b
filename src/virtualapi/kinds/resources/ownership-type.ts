// The type by which fields of a resource version's objects are owned: its schema with ObjectMeta.
import { fieldTypeOf, type FieldType } from '#apimachinery/managed-fields/index.ts'
import type { SchemaNode } from '#apimachinery/schema/index.ts'
import { builtInSchema } from './builtin-schemas.ts'
import type { ResourceDefinition } from './resource-definition.ts'

const known = new WeakMap<SchemaNode, FieldType>()

/** The ownership type of a resource version. The same schema always gives the same object. */
export function ownershipTypeOf({ info, schema }: Pick<ResourceDefinition, 'info' | 'schema'>): FieldType {
  if (info.builtIn || schema === undefined) return fieldTypeOf(schema)
  let type = known.get(schema)
  if (type === undefined) {
    type = fieldTypeOf(asResource(schema))
    known.set(schema, type)
  }
  return type
}

/**
 * Adds apiVersion, kind and metadata to the schema of a custom resource or of an embedded object, which does not
 * contain them.
 */
function asResource(schema: SchemaNode): SchemaNode {
  const { properties } = withEmbedded(schema)
  const objectMeta = builtInSchema({ group: '', version: 'v1', kind: 'ConfigMap' })?.properties?.['metadata'] ?? {}
  const text: SchemaNode = { type: 'string' }
  return { ...schema, properties: { ...properties, apiVersion: text, kind: text, metadata: objectMeta } }
}

/** The schema in which every embedded object has apiVersion, kind and metadata. */
function withEmbedded(schema: SchemaNode): SchemaNode {
  const { properties, items, additionalProperties } = schema
  return {
    ...schema,
    ...(properties === undefined
      ? {}
      : { properties: Object.fromEntries(Object.entries(properties).map(([key, node]) => [key, resourceOr(node)])) }),
    ...(items === undefined ? {} : { items: resourceOr(items) }),
    ...(typeof additionalProperties === 'object' ? { additionalProperties: resourceOr(additionalProperties) } : {}),
  }
}

function resourceOr(schema: SchemaNode): SchemaNode {
  return schema.embeddedResource === true ? asResource(schema) : withEmbedded(schema)
}
