// Macros rewrite calls while an expression is parsed.
import type { Expression } from './expression.ts'
import type { NodeFactory } from './node-factory.ts'

/** What is wrong with the arguments of a macro, and at which node. */
export class MacroError extends Error {
  readonly node: Expression

  constructor(node: Expression, message: string) {
    super(message)
    this.node = node
  }
}

export interface MacroCall {
  readonly make: NodeFactory
  /** Where the call stands in the text. */
  readonly at: number | undefined
  readonly target: Expression | undefined
  readonly args: readonly Expression[]
}

export interface Macro {
  readonly name: string
  /** True for `target.name(args)`, false for `name(args)`. */
  readonly receiver: boolean
  readonly argCount: number
  /** The expression that stands for the call; undefined leaves the call as it is. Throws MacroError. */
  readonly expand: (call: MacroCall) => Expression | undefined
}

/** The key under which a parser finds a macro. */
export const macroKey = (name: string, receiver: boolean, argCount: number): string =>
  `${name}:${String(receiver)}:${String(argCount)}`

/** An argument or target that is known to be there by the number of arguments. */
export function argument({ args }: MacroCall, index: number): Expression {
  const found = args[index]
  if (found === undefined) throw new Error(`a macro was expanded without its argument ${String(index)}`)
  return found
}

/** What a receiver macro was called on. */
export function targetOf({ target }: MacroCall): Expression {
  if (target === undefined) throw new Error('a receiver macro was expanded without its target')
  return target
}
