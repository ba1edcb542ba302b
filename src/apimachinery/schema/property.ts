// Finds the schema of a field of an object.
import type { SchemaNode } from './schema-node.ts'

/** The schema of a named property; ignores additionalProperties. */
export function propertyOf({ properties }: SchemaNode, key: string): SchemaNode | undefined {
  return properties !== undefined && Object.hasOwn(properties, key) ? properties[key] : undefined
}

/** The schema of a field: the property's, else that of additionalProperties. */
export function fieldSchemaOf(schema: SchemaNode, key: string): SchemaNode | undefined {
  const property = propertyOf(schema, key)
  if (property !== undefined) return property
  return typeof schema.additionalProperties === 'object' ? schema.additionalProperties : undefined
}
