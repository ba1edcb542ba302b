// Parsed expressions. Every node has an id; types, references and places are kept by id, not in the node.
import type { Value } from '#apimachinery/cel/values/value.ts'

export interface MapEntry {
  readonly id: number
  readonly key: Expression
  readonly value: Expression
  readonly optional: boolean
}

export interface FieldEntry {
  readonly id: number
  readonly name: string
  readonly value: Expression
  readonly optional: boolean
}

export interface Literal {
  readonly kind: 'literal'
  readonly id: number
  readonly value: Value
}
export interface Identifier {
  readonly kind: 'identifier'
  readonly id: number
  readonly name: string
}
export interface Select {
  readonly kind: 'select'
  readonly id: number
  readonly operand: Expression
  readonly field: string
  /** Asks whether the field is there: `has(operand.field)`. */
  readonly testOnly: boolean
}
export interface Call {
  readonly kind: 'call'
  readonly id: number
  readonly name: string
  /** What the function is called on, for `target.name(args)`. */
  readonly target?: Expression
  readonly args: readonly Expression[]
}
export interface ListLiteral {
  readonly kind: 'list'
  readonly id: number
  readonly elements: readonly Expression[]
  /** Which elements are written `?element`. */
  readonly optional: ReadonlySet<number>
}
export interface MapLiteral {
  readonly kind: 'map'
  readonly id: number
  readonly entries: readonly MapEntry[]
}
export interface StructLiteral {
  readonly kind: 'struct'
  readonly id: number
  readonly typeName: string
  readonly fields: readonly FieldEntry[]
}
export interface Comprehension {
  readonly kind: 'comprehension'
  readonly id: number
  readonly range: Expression
  readonly iterVar: string
  /** Empty where only one variable is bound. */
  readonly iterVar2: string
  readonly accuVar: string
  readonly accuInit: Expression
  readonly condition: Expression
  readonly step: Expression
  readonly result: Expression
}

export type Expression = Literal | Identifier | Select | Call | ListLiteral | MapLiteral | StructLiteral | Comprehension

export interface ParsedExpression {
  readonly text: string
  readonly root: Expression
  /** Index into the text by node id. */
  readonly places: readonly (number | undefined)[]
}

/** The nodes right below one, in the order in which they are written. */
export function childrenOf(node: Expression): readonly Expression[] {
  switch (node.kind) {
    case 'literal':
    case 'identifier':
      return []
    case 'select':
      return [node.operand]
    case 'call':
      return node.target === undefined ? node.args : [node.target, ...node.args]
    case 'list':
      return node.elements
    case 'map':
      return node.entries.flatMap(({ key, value }) => [key, value])
    case 'struct':
      return node.fields.map(({ value }) => value)
    case 'comprehension':
      return [node.range, node.accuInit, node.condition, node.step, node.result]
  }
}

/** `a.b.c` of identifiers and selections; undefined for anything else. */
export function qualifiedName(node: Expression): string | undefined {
  if (node.kind === 'identifier') return node.name
  if (node.kind !== 'select' || node.testOnly) return undefined
  const prefix = qualifiedName(node.operand)
  return prefix === undefined ? undefined : `${prefix}.${node.field}`
}

/** Visits a node and all below it, parents first. */
export function walk(node: Expression, visit: (node: Expression, parents: readonly Expression[]) => void): void {
  const parents: Expression[] = []
  const descend = (at: Expression): void => {
    visit(at, parents)
    parents.push(at)
    for (const child of childrenOf(at)) descend(child)
    parents.pop()
  }
  descend(node)
}
