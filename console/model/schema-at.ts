// The schema of a place in an object, from the OpenAPI v3 documents of a logical cluster.
import { isRecord } from '#console/kube/objects.ts'

export interface Schema {
  readonly type?: string
  readonly format?: string
  readonly description?: string
  readonly properties?: Readonly<Record<string, Schema>>
  readonly items?: Schema
  readonly additionalProperties?: Schema | boolean
  readonly enum?: readonly unknown[]
  readonly required?: readonly string[]
  readonly $ref?: string
  readonly allOf?: readonly Schema[]
  readonly 'x-kubernetes-group-version-kind'?: readonly GroupVersionKind[]
}

interface GroupVersionKind {
  readonly group: string
  readonly version: string
  readonly kind: string
}

export interface OpenApiDocument {
  readonly components?: { readonly schemas?: Readonly<Record<string, Schema>> }
}

/** The schema of a kind; undefined if the document does not have it. */
export function schemaOfKind(document: OpenApiDocument, wanted: GroupVersionKind): Schema | undefined {
  return Object.values(document.components?.schemas ?? {}).find((schema) =>
    schema['x-kubernetes-group-version-kind']?.some(
      ({ group, version, kind }) => group === wanted.group && version === wanted.version && kind === wanted.kind,
    ),
  )
}

/** The schema below `path`, with references resolved; `-` is an item of a list. */
export function schemaAt(document: OpenApiDocument, root: Schema, path: readonly string[]): Schema | undefined {
  let schema = resolved(document, root)
  for (const part of path) {
    const next: Schema | boolean | undefined =
      part === '-' ? schema?.items : (own(schema?.properties, part) ?? schema?.additionalProperties)
    if (!isRecord(next)) return undefined
    schema = resolved(document, next)
  }
  return schema
}

function own(properties: Schema['properties'], key: string): Schema | undefined {
  return properties !== undefined && Object.hasOwn(properties, key) ? properties[key] : undefined
}

/** Follows `$ref`, also as Kubernetes writes it: `allOf` with one reference beside a description. */
function resolved(document: OpenApiDocument, schema: Schema): Schema | undefined {
  let found: Schema | undefined = schema
  for (let depth = 0; depth < 8; depth++) {
    const reference: string | undefined = found?.$ref ?? found?.allOf?.[0]?.$ref
    if (reference === undefined) return found
    found = own(document.components?.schemas, reference.slice(reference.lastIndexOf('/') + 1))
  }
  return found
}

/** The type of a schema in a word or two, such as `[]string`. */
export function typeText(document: OpenApiDocument, schema: Schema): string {
  const found = resolved(document, schema) ?? schema
  if (found.type === 'array' && found.items !== undefined) return `[]${typeText(document, found.items)}`
  return found.format ?? found.type ?? 'object'
}
