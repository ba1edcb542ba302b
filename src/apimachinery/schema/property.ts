// Which schema a field of an object has.
import type { SchemaNode } from './schema-node.ts'

/** The schema of a named property, without those of map values. */
export function propertyOf({ properties }: SchemaNode, key: string): SchemaNode | undefined {
  return properties !== undefined && Object.hasOwn(properties, key) ? properties[key] : undefined
}

/** The schema of any field: a property's, else that of map values. */
export function fieldSchemaOf(schema: SchemaNode, key: string): SchemaNode | undefined {
  const property = propertyOf(schema, key)
  if (property !== undefined) return property
  return typeof schema.additionalProperties === 'object' ? schema.additionalProperties : undefined
}
