// Generates the smallest object that a structural schema accepts: only required fields.

export interface Schema {
  readonly type?: string
  readonly format?: string
  readonly enum?: readonly unknown[]
  readonly default?: unknown
  readonly minimum?: number
  readonly minLength?: number
  readonly minItems?: number
  readonly pattern?: string
  readonly required?: readonly string[]
  readonly properties?: Readonly<Record<string, Schema>>
  readonly items?: Schema
  readonly 'x-kubernetes-int-or-string'?: boolean
  readonly 'x-kubernetes-embedded-resource'?: boolean
}

// Tried in order against a pattern: names, URLs, durations, versions and digests as these projects require.
const words = [
  'sample',
  'https://example.test/a.git',
  'oci://example.test/a',
  '5m',
  '1h',
  'example.test/sample',
  'v1',
  '1',
]

/** The smallest value that this schema accepts. Throws if a pattern matches none of `words`. */
export function sampleOf(schema: Schema): unknown {
  if (schema.default !== undefined) return schema.default
  if (schema.enum !== undefined) return schema.enum[0]
  if (schema['x-kubernetes-int-or-string'] === true) return 1
  if (schema['x-kubernetes-embedded-resource'] === true)
    return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'embedded', namespace: 'default' } }
  switch (schema.type) {
    case 'object':
      return Object.fromEntries(
        (schema.required ?? []).map((name) => [name, sampleOf(schema.properties?.[name] ?? {})]),
      )
    case 'array':
      return Array.from({ length: schema.minItems ?? 0 }, () => sampleOf(schema.items ?? {}))
    case 'integer':
    case 'number':
      return schema.minimum ?? 1
    case 'boolean':
      return false
    case 'string':
      return sampleText(schema)
    default:
      return {}
  }
}

function sampleText({ pattern, format, minLength = 0 }: Schema): string {
  if (format === 'date-time') return '2026-01-01T00:00:00Z'
  if (format === 'byte') return 'YQ=='
  const fitting = words.find(
    (word) => word.length >= minLength && (pattern === undefined || new RegExp(pattern).test(word)),
  )
  if (fitting === undefined) throw new Error(`no sample for pattern "${pattern}"`)
  return fitting
}
