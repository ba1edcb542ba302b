// The rules that a definition had before an update. The update may keep them although a new definition may not have
// them.
import type { JsonValue } from '#apimachinery/meta/index.ts'
import { jsonEqual } from '#apimachinery/json/index.ts'
import type { SchemaNode } from '#apimachinery/schema/index.ts'
import type { KeptRules } from './check-rules.ts'
import { internSchema } from './compile-crd.ts'
import type { CrdVersion } from './crd-types.ts'
import { validationRule } from './validation-rule.ts'

/** The rules that a version may keep from the versions before the update; none on create. */
export function keptRules(old: readonly CrdVersion[]): (version: CrdVersion) => KeptRules {
  const rules = new Set<string>()
  const messageExpressions = new Set<string>()
  for (const { schema } of old) {
    if (schema?.openAPIV3Schema === undefined) continue
    for (const { rule, messageExpression } of rulesIn(internSchema(schema.openAPIV3Schema))) {
      rules.add(rule)
      if (messageExpression !== '') messageExpressions.add(messageExpression)
    }
  }
  return ({ name, schema }) => {
    const before = old.find((version) => version.name === name)?.schema
    return { rules, messageExpressions, unchanged: before !== undefined && jsonEqual(asJson(before), asJson(schema)) }
  }
}

const asJson = (schema: CrdVersion['schema']): JsonValue => (schema as unknown as JsonValue | undefined) ?? null

function* rulesIn(node: SchemaNode): Generator<ReturnType<typeof validationRule>> {
  for (const rule of node.validations ?? []) yield validationRule(rule)
  const { items, additionalProperties, not, properties = {}, allOf = [], anyOf = [], oneOf = [] } = node
  const below = [items, additionalProperties, not, ...Object.values(properties), ...allOf, ...anyOf, ...oneOf]
  for (const child of below) if (typeof child === 'object') yield* rulesIn(child)
}
