// Bounds the total size of the patterns of a CustomResourceDefinition, because each is compiled when the definition is
// written.
import { fieldForbidden } from '#apimachinery/field/index.ts'
import { isJsonObject, type JsonValue } from '#apimachinery/meta/index.ts'
import { estimatePatternSize } from '#apimachinery/schema/index.ts'
import type { StatusCause } from '#apimachinery/status/index.ts'
import type { CustomResourceDefinition } from './crd-types.ts'

/**
 * The limit of all different patterns of a definition together, in instructions. Compiling that many takes some 200 ms.
 */
const maxTotalSize = 50_000

/** An error if the patterns of all versions are too large together; equal patterns count once. */
export function patternLimitCauses({ spec }: CustomResourceDefinition): StatusCause[] {
  const patterns = new Set<string>()
  for (const { schema } of spec.versions) collect(schema?.openAPIV3Schema, patterns)
  let size = 0
  for (const pattern of patterns) {
    size += estimatePatternSize(pattern)
    if (size <= maxTotalSize) continue
    const why = `all patterns together must not be larger than ${maxTotalSize} instructions of a regular expression`
    return [fieldForbidden('spec.versions', why)]
  }
  return []
}

function collect(value: JsonValue | undefined, patterns: Set<string>): void {
  if (Array.isArray(value)) for (const item of value) collect(item, patterns)
  if (!isJsonObject(value)) return
  for (const name in value) {
    const member = value[name]
    if (name === 'pattern' && typeof member === 'string') patterns.add(member)
    else if (typeof member === 'object') collect(member, patterns)
  }
}
