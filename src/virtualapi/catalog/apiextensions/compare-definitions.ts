// Differences between two states of a CustomResourceDefinition that harm its users or its stored objects.
import {
  compareSchemas,
  parseStructuralSchema,
  type SchemaDifference,
  type SchemaNode,
} from '#apimachinery/schema/index.ts'
import type { CrdVersion, CustomResourceDefinition } from './crd-types.ts'

export interface DefinitionDifference extends SchemaDifference {
  /** The version of the definition; absent if the difference concerns all. */
  readonly version?: string
}

/**
 * The harmful differences from `before` to `after`: those of the definition itself, of each version that both serve, and
 * of the stored form. Types of both must be right, as decoding checks them.
 */
export function compareDefinitions(
  before: CustomResourceDefinition,
  after: CustomResourceDefinition,
): DefinitionDifference[] {
  const versions = before.spec.versions.filter(({ served }) => served)
  return [
    ...compareIdentity(before, after),
    ...versions.flatMap((version) => compareVersions(version, after)),
    ...compareStorage(before, after),
  ]
}

function compareIdentity({ spec: was }: CustomResourceDefinition, { spec: is }: CustomResourceDefinition) {
  const found: DefinitionDifference[] = []
  const members = [
    ['group', was.group, is.group],
    ['scope', was.scope, is.scope],
    ['names.plural', was.names.plural, is.names.plural],
    ['names.kind', was.names.kind, is.names.kind],
  ] as const
  for (const [path, before, after] of members)
    if (before !== after) found.push({ path: `spec.${path}`, harm: 'refused', what: `is ${after} and was ${before}` })
  return found
}

function compareVersions(was: CrdVersion, { spec }: CustomResourceDefinition): DefinitionDifference[] {
  const is = spec.versions.find(({ name }) => name === was.name)
  const { name: version } = was
  if (is?.served !== true) return [{ version, path: '.', harm: 'refused', what: 'is not served any more' }]
  const found: DefinitionDifference[] = []
  for (const subresource of ['status', 'scale'] as const)
    if (was.subresources?.[subresource] !== undefined && is.subresources?.[subresource] === undefined)
      found.push({ version, path: `/${subresource}`, harm: 'refused', what: 'does not exist any more' })
  for (const { jsonPath } of was.selectableFields ?? [])
    if (is.selectableFields?.some((field) => field.jsonPath === jsonPath) !== true)
      found.push({ version, path: jsonPath, harm: 'refused', what: 'cannot be selected by any more' })
  for (const difference of compareSchemas(schemaOf(was), schemaOf(is))) found.push({ version, ...difference })
  return found
}

/** Another storage version without conversion: stored objects are written in it with the fields that it knows. */
function compareStorage({ spec: was }: CustomResourceDefinition, { spec: is }: CustomResourceDefinition) {
  const [from, to] = [was, is].map(({ versions }) => versions.find(({ storage }) => storage))
  if (from === undefined || to === undefined || from.name === to.name || is.conversion?.strategy === 'Webhook')
    return []
  return compareSchemas(schemaOf(from), schemaOf(to))
    .filter(({ harm }) => harm !== 'changed')
    .map((difference) => ({ ...difference, version: `${from.name} stored as ${to.name}` }))
}

function schemaOf({ schema }: CrdVersion): SchemaNode {
  return parseStructuralSchema(
    schema?.openAPIV3Schema ?? { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
  )
}
