// Schemas of built-in kinds as graphs of SchemaNode. A graph is linked on first use; kinds share the nodes of common
// definitions.
import type { GroupVersionKind } from '#apimachinery/meta/index.ts'
import type { SchemaNode } from '#apimachinery/schema/index.ts'
import { readGenerated } from './generated-facts.ts'
import { goStructName, isNamedScalar, structOfDefinition, type StructType } from './typed/go-types.ts'

/** A node as the generated table stores it: a child may be a `$ref`, with other attributes beside it. */
export interface SchemaTableNode extends Omit<SchemaNode, 'properties' | 'items' | 'additionalProperties'> {
  readonly $ref?: string
  readonly properties?: Readonly<Record<string, SchemaTableNode>>
  readonly items?: SchemaTableNode
  readonly additionalProperties?: SchemaTableNode | boolean
}

/** The generated table of schemas: the definition of each kind, and the definitions by name. */
export interface SchemaTable {
  readonly kinds: Readonly<Record<string, string>>
  readonly definitions: Readonly<Record<string, SchemaTableNode>>
}

let loadedTable: SchemaTable | undefined
const linked = new Map<string, SchemaNode>()

/**
 * The schema of a built-in kind; undefined for other kinds. Includes the kinds of subresources (Scale, Eviction,
 * Binding, TokenRequest, the reviews), and DeleteOptions and Status in every group. The result is shared and may be
 * cyclic: treat it as read-only.
 */
export function builtInSchema({ group, version, kind }: GroupVersionKind): SchemaNode | undefined {
  const { kinds } = builtInSchemaTable()
  const name = kinds[`${group}/${version}/${kind}`] ?? kinds[`*/${kind}`]
  return name === undefined ? undefined : new Linker(builtInSchemaTable()).definition(name)
}

/** The table from which the schemas are linked; the OpenAPI documents are built from it too. */
export function builtInSchemaTable(): SchemaTable {
  loadedTable ??= readGenerated('schemas') as SchemaTable
  return loadedTable
}

/**
 * Links one kind. A `$ref` with attributes beside it becomes a copy of its target. Copies are made last, when their
 * targets are complete.
 */
class Linker {
  readonly #table: SchemaTable
  readonly #copies: (() => void)[] = []

  constructor(table: SchemaTable) {
    this.#table = table
  }

  definition(name: string): SchemaNode {
    const node = this.#reference(name)
    for (const copy of this.#copies) copy()
    this.#copies.length = 0
    return node
  }

  #reference(name: string): SchemaNode {
    const known = linked.get(name)
    if (known !== undefined) return known
    const source = this.#table.definitions[name]
    if (source === undefined) throw new Error(`schema table: "${name}" is referenced but missing`)
    const node: SchemaNode = {}
    // Decoding errors name the Go type of structs and times.
    if (source.properties !== undefined || source.format === 'date-time')
      node.typeName = name.slice(name.lastIndexOf('.') + 1)
    linked.set(name, node)
    this.#fill(node, source)
    // In OpenAPI these two types are objects, but Go decodes any JSON value into them.
    if (/\.(RawExtension|FieldsV1)$/.test(name)) delete node.type
    node.goType = goStructName(name)
    nameGoTypes(node, source, structOfDefinition(name))
    return node
  }

  #node(source: SchemaTableNode): SchemaNode {
    if (source.$ref !== undefined && Object.keys(source).length === 1) return this.#reference(source.$ref)
    const node: SchemaNode = {}
    this.#fill(node, source)
    return node
  }

  #fill(node: SchemaNode, source: SchemaTableNode): void {
    const { $ref, properties, items, additionalProperties, ...own } = source
    Object.assign(node, own)
    if (properties !== undefined)
      node.properties = Object.fromEntries(Object.entries(properties).map(([key, child]) => [key, this.#node(child)]))
    if (items !== undefined) node.items = this.#node(items)
    if (additionalProperties !== undefined)
      node.additionalProperties =
        typeof additionalProperties === 'boolean' ? additionalProperties : this.#node(additionalProperties)
    if ($ref === undefined) return
    const target = this.#reference($ref)
    this.#copies.push(() => Object.assign(node, { ...target, ...own }))
  }
}

/** Adds the Go type names that OpenAPI does not carry, because decoding errors contain them. */
function nameGoTypes(node: SchemaNode, source: SchemaTableNode, struct: StructType | undefined): void {
  for (const member of struct?.members ?? []) {
    const property = node.properties?.[member.name]
    const given = source.properties?.[member.name]
    // A node that is only a reference is shared between kinds; its own definition names it.
    if (property === undefined || given === undefined || isReference(given)) continue
    const { container, collectionName } = member
    const value = valueOf(property)
    if (collectionName !== undefined) property.goType = collectionName
    if (container === 'mapOfLists') nameItems(property, collectionName)
    else if (isNamedScalar(member)) {
      if (container === 'none') property.goType = member.goName
      else if (value !== undefined && !isReference(valueOf(given))) value.goType = member.goName
    }
  }
}

const isReference = (given: SchemaTableNode | undefined): boolean =>
  given?.$ref !== undefined && Object.keys(given).length === 1

/** The schema of the elements of a list or map. */
function valueOf<Node extends { readonly items?: Node; readonly additionalProperties?: Node | boolean }>(
  node: Node,
): Node | undefined {
  const { items, additionalProperties } = node
  return items ?? (typeof additionalProperties === 'object' ? additionalProperties : undefined)
}

/** Names the lists in a map of lists: `map[string]v1.ExtraValue` holds lists of type `v1.ExtraValue`. */
function nameItems(map: SchemaNode, name = ''): void {
  const list = valueOf(map)
  if (list !== undefined) list.goType = name.replace(/^map\[.*?\]/, '')
}
