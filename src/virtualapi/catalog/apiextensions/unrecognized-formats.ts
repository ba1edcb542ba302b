// Finds string formats in the schemas of a CustomResourceDefinition that the server does not enforce. The writer of the
// definition gets a warning.
import { isJsonObject, type JsonValue } from '#apimachinery/meta/index.ts'
import { formatCheck } from '#apimachinery/schema/index.ts'
import type { CustomResourceDefinition } from './crd-types.ts'

/** The formats that are not enforced, one entry per occurrence; versions with equal schemas are counted once. */
export function unrecognizedFormats({ spec }: CustomResourceDefinition): string[] {
  const seen = new Set<string>()
  const formats: string[] = []
  for (const { schema } of spec.versions) {
    const root = schema?.openAPIV3Schema
    if (root === undefined || seen.has(JSON.stringify(root))) continue
    seen.add(JSON.stringify(root))
    collect(root, formats)
  }
  return formats
}

const schemas = ['items', 'additionalProperties', 'not'] as const
const lists = ['allOf', 'anyOf', 'oneOf'] as const

function collect(schema: JsonValue | undefined, formats: string[]): void {
  if (!isJsonObject(schema)) return
  const { type, format, properties } = schema
  if (type === 'string' && typeof format === 'string' && format !== '' && formatCheck(format) === undefined)
    formats.push(format)
  if (isJsonObject(properties)) for (const property of Object.values(properties)) collect(property, formats)
  for (const key of schemas) collect(schema[key], formats)
  for (const key of lists) for (const item of Array.isArray(schema[key]) ? schema[key] : []) collect(item, formats)
}
