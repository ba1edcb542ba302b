// The type by which the objects of a resource version are owned field by field: its schema, and ObjectMeta.
import { fieldTypeOf, type FieldType } from '#apimachinery/managed-fields/index.ts'
import type { SchemaNode } from '#apimachinery/schema/index.ts'
import { builtInSchema } from './builtin-schemas.ts'
import type { ResourceDefinition } from './resource-definition.ts'

const known = new WeakMap<SchemaNode, FieldType>()

/** The ownership type of a resource version; the same one for the same schema. */
export function ownershipTypeOf({ info, schema }: Pick<ResourceDefinition, 'info' | 'schema'>): FieldType {
  if (info.builtIn || schema === undefined) return fieldTypeOf(schema)
  let type = known.get(schema)
  if (type === undefined) {
    type = fieldTypeOf(asResource(schema))
    known.set(schema, type)
  }
  return type
}

/** The schema of a custom resource, or of an object embedded in one, says nothing of what every object has. */
function asResource(schema: SchemaNode): SchemaNode {
  const { properties } = withEmbedded(schema)
  const objectMeta = builtInSchema({ group: '', version: 'v1', kind: 'ConfigMap' })?.properties?.['metadata'] ?? {}
  const text: SchemaNode = { type: 'string' }
  return { ...schema, properties: { ...properties, apiVersion: text, kind: text, metadata: objectMeta } }
}

/** The schema with what every object embedded in it has. */
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
