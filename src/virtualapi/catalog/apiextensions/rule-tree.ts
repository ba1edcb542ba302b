// The part of a schema that has validation rules, compiled. It is compiled when the first object is checked.
import { type DeclaredType, declaredType, escapeFieldName } from '#apimachinery/cel/index.ts'
import type { SchemaNode } from '#apimachinery/schema/index.ts'
import { type CompiledRule, compileRules } from './compile-rules.ts'

/** A node that has rules, or has nodes with rules below. */
export interface RuleTree {
  readonly schema: SchemaNode
  /** The schema that expressions use: resources always have a kind and a name. */
  readonly valueSchema: SchemaNode
  readonly rules: readonly CompiledRule[]
  /** True if the rules cannot be compiled because the type of the values is unknown. */
  readonly untyped: boolean
  readonly items: RuleTree | undefined
  readonly values: RuleTree | undefined
  readonly properties: ReadonlyMap<string, RuleTree>
  readonly allOf: readonly RuleTree[]
}

const withRules = new WeakMap<SchemaNode, boolean>()

/** True if a schema has validation rules, apart from alternatives (allOf and the like). */
export function hasRules(schema: SchemaNode): boolean {
  const known = withRules.get(schema)
  if (known !== undefined) return known
  const { validations, items, properties = {}, additionalProperties } = schema
  const below = [items, additionalProperties, ...Object.values(properties)]
  const response = validations !== undefined || below.some((node) => typeof node === 'object' && hasRules(node))
  withRules.set(schema, response)
  return response
}

const trees = new WeakMap<SchemaNode, RuleTree | undefined>()

/** The rules of a schema; undefined if there are none. `isResource`: the schema is the schema of a whole resource. */
export function ruleTreeOf(schema: SchemaNode, { isResource }: { isResource: boolean }): RuleTree | undefined {
  if (!hasRules(schema)) return undefined
  if (trees.has(schema)) return trees.get(schema)
  const self = declaredType(schema, 'selfType', { isResource })
  const tree = build(schema, schema, { self, root: self, isResource })
  trees.set(schema, tree)
  return tree
}

interface Place {
  readonly self: DeclaredType | undefined
  /** The type of the resource, which contains the types of all its fields. */
  readonly root: DeclaredType | undefined
  readonly isResource: boolean
}

/**
 * The tree of a node; undefined if it has no rules. `schema` has the rules; `node` is the schema of the value, which
 * differs from `schema` within alternatives.
 */
function build(schema: SchemaNode, node: SchemaNode, place: Place): RuleTree | undefined {
  const { self, root, isResource } = place
  const isTyped = self !== undefined && root !== undefined
  const rules = isTyped && schema.validations ? compileRules(schema, { node, isResource, self, root }) : []
  const below = (child: SchemaNode | boolean | undefined, of: SchemaNode | boolean | undefined) =>
    typeof child === 'object' && typeof of === 'object'
      ? build(child, of, { self: self?.element, root, isResource: of.embeddedResource === true })
      : undefined
  const tree: RuleTree = {
    schema: node,
    valueSchema: isResource && node.embeddedResource !== true ? { ...node, embeddedResource: true } : node,
    rules,
    untyped: !isTyped && schema.validations !== undefined,
    items: below(schema.items, node.items),
    values: below(schema.additionalProperties, node.additionalProperties),
    properties: propertyTrees(schema, node, place),
    allOf: (schema.allOf ?? []).flatMap((one) => build(one, node, place) ?? []),
  }
  const has =
    rules.length + tree.properties.size + tree.allOf.length > 0 ||
    (tree.items ?? tree.values) !== undefined ||
    tree.untyped
  return has ? tree : undefined
}

function propertyTrees(schema: SchemaNode, node: SchemaNode, { self, root }: Place): ReadonlyMap<string, RuleTree> {
  const found = new Map<string, RuleTree>()
  for (const [name, child] of Object.entries(schema.properties ?? {})) {
    const of = node.properties?.[name]
    const type = of && typeOfField(self, name, of)
    if (type === undefined) continue
    const known = self?.fields?.get(escapeFieldName(name) ?? '') === type
    const place = { self: type, root: known ? root : type, isResource: of?.embeddedResource === true }
    const tree = of && build(child, of, place)
    if (tree !== undefined) found.set(name, tree)
  }
  return found
}

/** The type of a field. If expressions cannot name the field, the type of its own schema. */
function typeOfField(parent: DeclaredType | undefined, name: string, node: SchemaNode): DeclaredType | undefined {
  const identifier = escapeFieldName(name)
  if (identifier !== undefined) return parent?.fields?.get(identifier)
  return declaredType(node, 'selfType', { isResource: node.embeddedResource === true })
}
