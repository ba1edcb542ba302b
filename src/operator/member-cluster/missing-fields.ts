// The fields that our API has and the API of a member has not, from the OpenAPI v3 documents of both. Pure.
import { isJsonObject } from '#apimachinery/meta/index.ts'

interface Schema {
  readonly $ref?: string
  readonly allOf?: readonly Schema[]
  readonly properties?: Readonly<Record<string, Schema>>
  readonly items?: Schema
  readonly additionalProperties?: Schema | boolean
  readonly 'x-kubernetes-group-version-kind'?: readonly GroupVersionKind[]
}
interface GroupVersionKind {
  readonly group: string
  readonly version: string
  readonly kind: string
}

/** The part of an OpenAPI v3 document that is read. */
export interface OpenApiDocument {
  readonly components?: { readonly schemas?: Readonly<Record<string, Schema>> }
}

/** The pattern of a kind that the member does not serve at all. */
export const wholeKind = '.'

/**
 * Patterns of the fields of a kind that only our document has, such as `spec.containers[*].restartPolicyRules`; of a field
 * that is missing, not what is in it. What is below the paths in `without` is not compared.
 */
export function missingFields(
  { ours, theirs }: Readonly<Record<'ours' | 'theirs', OpenApiDocument>>,
  gvk: GroupVersionKind,
  without: readonly string[] = [],
): string[] {
  const [own, other] = [definitionOf(ours, gvk), definitionOf(theirs, gvk)]
  if (own === undefined) return []
  if (other === undefined) return [wholeKind]
  const skipped = new Set(['.status', '.metadata', ...without.map((path) => `.${path}`)])
  const known = new Map<Schema, readonly string[]>()
  /** Relative to the two schemas. `path`: only for what is skipped; undefined below a list or map. */
  const compare = (one: Schema, two: Schema, path: string | undefined): readonly string[] => {
    const [left, right] = [resolved(ours, one), resolved(theirs, two)]
    const before = known.get(left)
    // What is skipped is at the top only, so what was found elsewhere holds for a definition that comes again.
    if (before !== undefined) return before
    known.set(left, [])
    const found = Object.entries(left.properties ?? {}).flatMap(([name, field]) => {
      const here = path === undefined ? undefined : `${path}.${name}`
      if (here !== undefined && skipped.has(here)) return []
      const counterpart = right.properties?.[name]
      if (counterpart === undefined) return right.properties === undefined ? [] : [`.${name}`]
      return compare(field, counterpart, here).map((rest) => `.${name}${rest}`)
    })
    if (left.items && right.items)
      found.push(...compare(left.items, right.items, undefined).map((rest) => `[*]${rest}`))
    const [all, others] = [left.additionalProperties, right.additionalProperties]
    if (isJsonObject(all) && isJsonObject(others))
      found.push(...compare(all, others, undefined).map((rest) => `{*}${rest}`))
    known.set(left, found)
    return found
  }
  return compare(own, other, '').map((path) => path.slice(1))
}

function definitionOf({ components }: OpenApiDocument, { group, version, kind }: GroupVersionKind): Schema | undefined {
  return Object.values(components?.schemas ?? {}).find((schema) =>
    schema['x-kubernetes-group-version-kind']?.some(
      (one) => one.group === group && one.version === version && one.kind === kind,
    ),
  )
}

const prefix = '#/components/schemas/'

/** The schema behind references; documents wrap one in `allOf` to give it a default. */
function resolved({ components }: OpenApiDocument, schema: Schema): Schema {
  const { $ref = schema.allOf?.[0]?.$ref } = schema
  return $ref === undefined ? schema : (components?.schemas?.[$ref.slice(prefix.length)] ?? {})
}
