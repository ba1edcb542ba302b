// Compiles the expressions of one admission policy in their order, to find their validation errors.
import type { V1ParamKind, V1Variable } from '@kubernetes/client-node'
import { type CelType, dynType, Program } from '#apimachinery/cel/index.ts'
import type { StatusCause } from '#apimachinery/status/index.ts'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'
import {
  annotationTypes,
  anyTypes,
  compileAdmissionExpression,
  expressionCauses,
  messageTypes,
  type Scope,
  typeOfVariable,
} from './compile-admission-expression.ts'

interface Spec {
  readonly paramKind?: Data<V1ParamKind>
  /** The variables of the policy. Absent: expressions cannot use variables. */
  readonly variables?: readonly Data<V1Variable>[]
}

export class PolicyCompiler {
  /** Expressions that the policy had before. */
  readonly stored: ReadonlySet<string>
  readonly #hasParams: boolean
  readonly #variables: Map<string, CelType> | undefined

  constructor({ paramKind, variables }: Spec, stored: readonly string[]) {
    this.#hasParams = paramKind !== undefined
    this.#variables = variables === undefined ? undefined : new Map()
    this.stored = new Set(stored)
  }

  /** The errors of a variable. Later expressions can use the variable. */
  variable(path: string, name: string, text: string): StatusCause[] {
    const compiled = compileAdmissionExpression(text, anyTypes, this.#scope(text))
    const type = compiled instanceof Program ? typeOfVariable(compiled.outputType) : dynType
    this.#variables?.set(name, type)
    return expressionCauses(path, text, compiled)
  }

  causes(path: string, text: string, types: readonly CelType[]): StatusCause[] {
    return expressionCauses(path, text, compileAdmissionExpression(text, types, this.#scope(text)))
  }

  /** The errors of a messageExpression, which cannot use the authorizer. */
  message(path: string, text: string): StatusCause[] {
    const scope = { ...this.#scope(text), hasAuthorizer: false }
    return expressionCauses(path, text, compileAdmissionExpression(text, messageTypes, scope))
  }

  annotation(path: string, text: string): StatusCause[] {
    return expressionCauses(path, text, compileAdmissionExpression(text.trim(), annotationTypes, this.#scope(text)))
  }

  mutation(path: string, text: string, types: readonly CelType[]): StatusCause[] {
    const trimmed = text.trim()
    const scope = { ...this.#scope(text), hasPatchTypes: true }
    return expressionCauses(path, trimmed, compileAdmissionExpression(trimmed, types, scope))
  }

  #scope(text: string): Scope {
    const stored = this.stored.has(text)
    return { hasParams: this.#hasParams, hasAuthorizer: true, stored, variables: this.#variables }
  }
}
