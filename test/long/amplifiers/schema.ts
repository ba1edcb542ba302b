// The schemas of the OpenAPI v3 documents that a server serves, with their references followed.

export interface Schema {
  readonly $ref?: string
  readonly allOf?: readonly Schema[]
  readonly type?: string
  readonly format?: string
  readonly enum?: readonly unknown[]
  readonly required?: readonly string[]
  readonly properties?: Readonly<Record<string, Schema>>
  readonly items?: Schema
  readonly additionalProperties?: Schema
}

interface Operation {
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly schema: Schema }>> }
  readonly 'x-kubernetes-group-version-kind'?: unknown
}

/** One document: that of one group and version. */
export interface OpenApiDocument {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> }
}

const prefix = '#/components/schemas/'

/** The name of the schema that this one refers to. */
export function referenceOf(schema: Schema): string | undefined {
  return (schema.$ref ?? schema.allOf?.[0]?.$ref)?.slice(prefix.length)
}

/** The schema without references. */
export function resolved(document: OpenApiDocument, schema: Schema): Schema {
  const reference = referenceOf(schema)
  if (reference !== undefined) return resolved(document, document.components.schemas[reference] ?? {})
  const [first] = schema.allOf ?? []
  return first === undefined ? schema : resolved(document, first)
}
