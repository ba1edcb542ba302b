// The Strategy of custom resources: what their CustomResourceDefinition says, nothing in code.
import type { JsonObject, KubeObject } from '../../apimachinery/meta/index.ts'
import { applyDefaults, pruneUnknown, validate, type SchemaNode } from '../../apimachinery/schema/index.ts'
import { subdomainName } from './names.ts'
import type { ResourceInfo } from './resource-info.ts'
import type { Strategy } from './resource-definition.ts'

interface CustomKind {
  readonly info: ResourceInfo
  readonly schema?: SchemaNode
  /** JSON paths that the CustomResourceDefinition allows in field selectors. */
  readonly selectableFields?: readonly string[]
}

/** Made once per compiled CustomResourceDefinition and version. */
export function customStrategy({ info, schema, selectableFields = [] }: CustomKind): Strategy {
  const hasStatus = info.subresources.some(({ name }) => name === 'status')
  const asJson = (object: KubeObject): JsonObject => object as unknown as JsonObject
  const check = (object: KubeObject) => (schema === undefined ? [] : validate(asJson(object), schema))
  return {
    hasStatus,
    hasGeneration: true,
    // With a status subresource only the status is no change of the spec; without one everything is.
    statusMembers: hasStatus ? ['status'] : [],
    allowUnconditionalUpdate: false,
    selectableFields: Object.fromEntries(
      selectableFields.map((path) => [path.replace(/^\./, ''), (object) => valueAt(object, path)]),
    ),
    validateName: subdomainName,
    applyDefaults(object) {
      if (schema === undefined) return
      pruneUnknown(asJson(object), schema, { isResourceRoot: true })
      applyDefaults(asJson(object), schema)
    },
    validateCreate: check,
    validateUpdate: check,
  }
}

/** The value at a simple JSON path (`.spec.color`) as field selectors see it: text, empty where there is none. */
function valueAt(object: KubeObject, path: string): string {
  let value: unknown = object
  for (const field of path.replace(/^\./, '').split('.'))
    value = typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[field] : undefined
  return typeof value === 'string'
    ? value
    : typeof value === 'number' || typeof value === 'boolean'
      ? String(value)
      : ''
}
