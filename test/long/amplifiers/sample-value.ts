// Values for the fields of an OpenAPI schema: plausible for their names, and as many different ones as are asked for.
import { resolved, type OpenApiDocument, type Schema } from './schema.ts'

/** Deep enough for every entry that is required; a schema may refer to itself. */
const maxDepth = 8

/** A value of this schema with what is required in it. Values of different `index` differ wherever they can. */
export function sampleValue(
  document: OpenApiDocument,
  schema: Schema,
  { name, index, depth = 0 }: { name: string; index: number; depth?: number },
): unknown {
  const { type, properties, additionalProperties, items, required = [], ...rest } = resolved(document, schema)
  if (rest.enum !== undefined) return rest.enum[0]
  if (additionalProperties !== undefined)
    return { [keyOf(name, index)]: sampleValue(document, additionalProperties, { name: 'value', index, depth }) }
  if (properties !== undefined && depth < maxDepth) {
    const chosen = required.length > 0 ? [...required, 'name', 'key', 'operator'] : Object.keys(properties)
    const entries = chosen.flatMap((key) => {
      const property = properties[key]
      if (property === undefined || (required.length === 0 && !isScalar(document, property))) return []
      return [[key, sampleValue(document, property, { name: key, index, depth: depth + 1 })]] as const
    })
    return Object.fromEntries(entries)
  }
  if (type === 'array' && items !== undefined && depth < maxDepth)
    return [sampleValue(document, items, { name, index, depth: depth + 1 })]
  if (type === 'integer' || type === 'number') return /port/i.test(name) ? 1 + (index % 65_535) : 1
  if (type === 'boolean') return false
  if (type === 'object') return {}
  return sampleText(name, index, rest.format)
}

function isScalar(document: OpenApiDocument, schema: Schema): boolean {
  const { type, properties } = resolved(document, schema)
  return properties === undefined && type !== 'array' && type !== 'object'
}

/** A key of a map field: resource names have a domain, all others need none. */
export function keyOf(field: string, index: number): string {
  return ['hard', 'limits', 'requests', 'capacity', 'allocatable'].includes(field)
    ? `example.com/k${index}`
    : `k${index}`
}

function sampleText(field: string, index: number, format: string | undefined): string {
  if (format === 'byte') return 'YQ=='
  if (format === 'date-time') return '2026-01-01T00:00:00Z'
  const address = `10.${(index >> 16) & 255}.${(index >> 8) & 255}.${index & 255}`
  if (/cidr/i.test(field)) return `${address}/32`
  if (/^(ip|ips|podIP|hostIP|addresses|nameservers|externalIPs)$/.test(field)) return address
  if (/path/i.test(field)) return `/p${index}`
  if (field === 'image') return `example.test/a:${index}`
  if (field === 'apiVersion') return 'v1'
  if (field === 'kind') return 'ConfigMap'
  if (field === 'finalizers') return `example.com/n${index}`
  if (field === 'operator') return 'In'
  if (field === 'value' || field === 'cpu' || field === 'memory') return String(1 + index)
  return `n${index}`
}
