// Drops the fields that a schema does not know, and reports their paths: for pruning custom resources and for
// fieldValidation.
import type { JsonObject, JsonValue } from '#apimachinery/meta/index.ts'
import { objectMetaSchema } from './object-meta-schema.ts'
import { propertyOf } from './property.ts'
import type { SchemaNode } from './schema-node.ts'
import { pathText, type ValuePath } from './value-path.ts'

export interface PruneOptions {
  /** The value is a whole object: apiVersion, kind and the fields of ObjectMeta are known without the schema. */
  isResourceRoot: boolean
  /** Types were checked before, so maps of scalars need not be searched. Default false. */
  typesChecked?: boolean
}

/** Maximum number of paths reported; fields beyond it are dropped all the same. */
const maxPaths = 1000

/**
 * Changes `object`: removes the fields that the schema does not know. Returns their paths in order, such as
 * `spec.containers[0].bar`. Where the schema preserves unknown fields they stay, but known fields below them are still
 * pruned.
 */
export function pruneUnknown(
  object: JsonObject,
  schema: SchemaNode,
  { isResourceRoot, typesChecked = false }: PruneOptions,
): string[] {
  const pruner: Pruner = { path: [], dropped: [], typesChecked }
  if (isResourceRoot && !(schema.embeddedResource ?? false)) pruneObject(object, schema, pruner, { isResource: true })
  else prune(object, schema, pruner, false)
  return pruner.dropped
}

interface Pruner {
  readonly path: ValuePath
  readonly dropped: string[]
  readonly typesChecked: boolean
}

/** Prunes a value. `keep`: the value is an item of a list that preserves unknown fields, so the item does, too. */
function prune(value: JsonValue, schema: SchemaNode | undefined, pruner: Pruner, keep: boolean): void {
  if (typeof value !== 'object' || value === null) return
  if (!Array.isArray(value)) {
    pruneObject(value, schema, pruner, { isResource: schema?.embeddedResource ?? false, keep })
    return
  }
  const keepItems = keep || schema?.preserveUnknownFields === true
  if (keepItems && schema?.items === undefined) return
  for (let i = 0; i < value.length; i++) {
    const item = value[i]
    if (typeof item !== 'object' || item === null) continue
    pruner.path.push(i)
    prune(item, schema?.items, pruner, keepItems)
    pruner.path.pop()
  }
}

function pruneObject(
  object: JsonObject,
  schema: SchemaNode | undefined,
  pruner: Pruner,
  { isResource, keep = false }: { isResource: boolean; keep?: boolean },
): void {
  const { path, dropped } = pruner
  const additional = schema?.additionalProperties
  if (pruner.typesChecked && !isResource && schema?.properties === undefined && isScalar(additional)) return
  const keepUnknown = keep || schema?.preserveUnknownFields === true || additional === true
  for (const key in object) {
    if (isResource && (key === 'apiVersion' || key === 'kind')) continue
    const value = object[key] ?? null
    const field = isResource && key === 'metadata' ? objectMetaSchema : fieldOf(schema, key, additional)
    if (field !== undefined) {
      if (typeof value !== 'object') continue
      path.push(key)
      prune(value, field, pruner, false)
      path.pop()
    } else if (!keepUnknown) {
      if (dropped.length < maxPaths) dropped.push(pathText(path, key))
      // eslint-disable-next-line @typescript-eslint/no-dynamic-delete -- this is the job
      delete object[key]
    }
  }
}

function isScalar(schema: SchemaNode | boolean | undefined): boolean {
  return (
    typeof schema === 'object' && (schema.type === 'string' || schema.type === 'boolean' || schema.type === 'integer')
  )
}

function fieldOf(
  schema: SchemaNode | undefined,
  key: string,
  additional: SchemaNode | boolean | undefined,
): SchemaNode | undefined {
  if (schema === undefined) return undefined
  return propertyOf(schema, key) ?? (typeof additional === 'object' ? additional : undefined)
}
