// The type with which expressions are checked against the schema of a kind.
import { type DeclaredType, declaredType } from '#apimachinery/cel/index.ts'
import type { SchemaNode } from '#apimachinery/schema/index.ts'
import { builtInSchema } from '#virtualapi/kinds/resources/builtin-schemas.ts'

const known = new WeakMap<SchemaNode, { readonly type: DeclaredType | undefined }>()

/**
 * The type of the objects of a schema; undefined if expressions cannot read their fields. The same schema always gives
 * the same type.
 */
export function checkedType(
  schema: SchemaNode,
  { kind, builtIn }: { readonly kind: string; readonly builtIn: boolean },
): DeclaredType | undefined {
  let found = known.get(schema)
  if (found === undefined) {
    const whole = unrolled(builtIn ? schema : withMeta(schema), builtIn, new Set())
    found = { type: declaredType(whole, kind, { isResource: true }) }
    known.set(schema, found)
  }
  return found.type
}

const text: SchemaNode = { type: 'string' }

/** Adds apiVersion, kind and metadata to the schema of a custom resource, which does not contain them. */
function withMeta(schema: SchemaNode): SchemaNode {
  const metadata = builtInSchema({ group: '', version: 'v1', kind: 'ConfigMap' })?.properties?.['metadata'] ?? {}
  return { ...schema, properties: { ...schema.properties, apiVersion: text, kind: text, metadata } }
}

/** The schema without cycles: as upstream, a definition that occurs within itself is an object with unknown fields. */
function unrolled(schema: SchemaNode, builtIn: boolean, above: Set<SchemaNode>): SchemaNode {
  if (above.has(schema)) return { type: 'object' }
  // Upstream's documents give a quantity no type, so expressions cannot use it.
  if (builtIn && schema.format === 'quantity') return {}
  const { properties, items, additionalProperties } = schema
  if (properties === undefined && items === undefined && typeof additionalProperties !== 'object') return schema
  above.add(schema)
  const inner = (node: SchemaNode): SchemaNode => unrolled(node, builtIn, above)
  const members = properties && Object.entries(properties).map(([name, node]) => [name, inner(node)] as const)
  const result: SchemaNode = {
    ...schema,
    ...(members && { properties: Object.fromEntries(members) }),
    ...(items && { items: inner(items) }),
    ...(typeof additionalProperties === 'object' ? { additionalProperties: inner(additionalProperties) } : {}),
  }
  above.delete(schema)
  return result
}
