// The findings of the type checker about an expression, by node id.
import type { Expression } from '#apimachinery/cel/syntax/expression.ts'
import { type CelType, dynType } from '#apimachinery/cel/types/cel-type.ts'
import type { FunctionDeclaration } from './declarations.ts'

export interface FunctionReference {
  readonly declaration: FunctionDeclaration
  /** The overloads that fit the types of the arguments; more than one where a type is dyn. */
  readonly overloadIds: readonly string[]
}

export class CheckedExpression {
  readonly text: string
  readonly root: Expression
  readonly types: CelType[] = []
  readonly functions: (FunctionReference | undefined)[] = []
  /** Nodes that name a type. */
  readonly typeNames: (CelType | undefined)[] = []
  // Nodes that turned out to be something else: `a.b` a variable of that name, `a.b(c)` a function of that name.
  readonly #rewritten = new Map<number, Expression>()

  constructor(text: string, root: Expression) {
    this.text = text
    this.root = root
  }

  typeOf({ id }: Pick<Expression, 'id'>): CelType {
    return this.types[id] ?? dynType
  }

  overloadsOf({ id }: Pick<Expression, 'id'>): readonly string[] {
    return this.functions[id]?.overloadIds ?? []
  }

  /** The node as it is meant. */
  meant(node: Expression): Expression {
    return this.#rewritten.get(node.id) ?? node
  }

  rewrite(node: Expression): void {
    this.#rewritten.set(node.id, node)
  }

  /** All variables that the expression names, loop variables included. */
  readonly variables = new Set<string>()

  get outputType(): CelType {
    return this.typeOf(this.root)
  }
}
