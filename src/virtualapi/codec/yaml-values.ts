// Turns a parsed YAML document into JSON values as Go does: with aliases and merge keys expanded, and keys as text.
import {
  isAlias,
  isMap,
  isScalar,
  isSeq,
  visit,
  type Alias,
  type Document,
  type Node,
  type Pair,
  type Scalar as ScalarNode,
  type YAMLMap,
} from 'yaml'
import { putField, type JsonObject, type JsonValue } from '#apimachinery/meta/index.ts'
import { jsonOfScalar, keyOfScalar, plainScalar, taggedScalar, type Scalar } from './yaml-scalars.ts'

export interface ValueLimits {
  /** The most values, and the most characters of text in values, after aliases are expanded. */
  readonly maxValues: number
  readonly maxText: number
}

/**
 * The value of a document whose scalars were not resolved. Throws an Error in Go's words, or with `excessive aliasing`.
 */
export function valueOfDocument(document: Document.Parsed, limits: ValueLimits): JsonValue {
  const reader = new Reader(anchorsOf(document), limits)
  return reader.value(document.contents)
}

/** The resolved scalar of a node. */
export function scalarOf(node: ScalarNode): Scalar {
  const text = typeof node.value === 'string' ? node.value : ''
  if (node.tag !== undefined && node.tag !== '!') return taggedScalar(node.tag, text)
  return node.type === 'PLAIN' && node.tag === undefined ? plainScalar(text) : { kind: 'string', value: text }
}

/** Each alias with its node: the last node before the alias that has its anchor. */
function anchorsOf(document: Document.Parsed): Map<Alias, Node> {
  const anchors = new Map<string, Node>()
  const targets = new Map<Alias, Node>()
  visit(document, {
    Node(_, node) {
      if (isAlias(node)) {
        const target = anchors.get(node.source)
        if (target !== undefined) targets.set(node, target)
      } else if (node.anchor !== undefined) anchors.set(node.anchor, node)
    },
  })
  return targets
}

class Reader {
  readonly #targets: ReadonlyMap<Alias, Node>
  readonly #open = new Set<Node>()
  #values: number
  #text: number

  constructor(targets: ReadonlyMap<Alias, Node>, { maxValues, maxText }: ValueLimits) {
    this.#targets = targets
    this.#values = maxValues
    this.#text = maxText
  }

  value(node: unknown): JsonValue {
    if (--this.#values < 0) throw new Error('yaml: document contains excessive aliasing')
    if (isAlias(node)) return this.#inside(node, (target) => this.value(target))
    if (isMap(node)) return this.#map(node)
    if (isSeq(node)) return node.items.map((item) => this.value(item))
    return isScalar(node) ? this.#counted(jsonOfScalar(scalarOf(node))) : null
  }

  #counted<T extends JsonValue>(value: T): T {
    if (typeof value === 'string' && (this.#text -= value.length) < 0)
      throw new Error('yaml: document contains excessive aliasing')
    return value
  }

  #inside<T>(alias: Alias, read: (target: Node) => T): T {
    const target = this.#targets.get(alias)
    if (target === undefined) throw new Error(`yaml: unknown anchor '${alias.source}' referenced`)
    if (this.#open.has(target)) throw new Error(`yaml: anchor '${alias.source}' value contains itself`)
    this.#open.add(target)
    const result = read(target)
    this.#open.delete(target)
    return result
  }

  #map(map: YAMLMap): JsonObject {
    const result: JsonObject = {}
    for (const pair of map.items) this.#add(result, pair)
    return result
  }

  /** Adds a pair to the map. Later pairs replace earlier ones, so a merge key replaces members that come before it. */
  #add(result: JsonObject, { key, value }: Pair): void {
    const scalar = this.#key(key)
    if (scalar.kind === 'merge') this.#merge(result, value)
    else putField(result, this.#counted(keyOfScalar(scalar)), this.value(value))
  }

  #key(key: unknown): Scalar {
    if (isAlias(key)) return this.#inside(key, (target) => this.#key(target))
    if (key === null) return { kind: 'null' }
    if (!isScalar(key)) throw new Error('yaml: invalid map key')
    return scalarOf(key)
  }

  #merge(result: JsonObject, value: unknown): void {
    const maps = isSeq(value) ? [...value.items].reverse() : [value]
    for (const one of maps) this.#mergeMap(result, one)
  }

  #mergeMap(result: JsonObject, node: unknown): void {
    if (--this.#values < 0) throw new Error('yaml: document contains excessive aliasing')
    if (isAlias(node)) this.#inside(node, (target) => this.#mergeMap(result, target))
    else if (isMap(node)) for (const pair of node.items) this.#add(result, pair)
    else throw new Error('yaml: map merge requires map or sequence of maps as the value')
  }
}
