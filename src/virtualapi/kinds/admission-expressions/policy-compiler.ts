// Compiles the expressions of one admission policy in their order, for what is wrong with them.
import type { V1ValidatingAdmissionPolicySpec } from '@kubernetes/client-node'
import { type CelType, dynType, Program } from '../../../apimachinery/cel/index.ts'
import type { StatusCause } from '../../../apimachinery/status/index.ts'
import type { Data } from '../../resources/typed/data.ts'
import {
  annotationTypes,
  anyTypes,
  compileAdmissionExpression,
  expressionCauses,
  messageTypes,
  type Scope,
  typeOfVariable,
} from './compile-admission-expression.ts'

type Spec = Data<V1ValidatingAdmissionPolicySpec>

export class PolicyCompiler {
  /** Expressions that the policy had before. */
  readonly stored: ReadonlySet<string>
  readonly #hasParams: boolean
  readonly #variables: Record<string, CelType> | undefined

  constructor({ paramKind, variables = [] }: Spec, old: Spec | undefined) {
    this.#hasParams = paramKind !== undefined
    this.#variables = variables.length > 0 ? {} : undefined
    this.stored = new Set(old === undefined ? [] : expressionsOf(old))
  }

  /** Also lets the expressions that follow see the variable. */
  variable(path: string, name: string, text: string): StatusCause[] {
    const compiled = compileAdmissionExpression(text, anyTypes, this.#scope(text))
    const type = compiled instanceof Program ? typeOfVariable(compiled.outputType) : dynType
    if (this.#variables !== undefined) this.#variables[name] = type
    return expressionCauses(path, text, compiled)
  }

  causes(path: string, text: string, types: readonly CelType[]): StatusCause[] {
    return expressionCauses(path, text, compileAdmissionExpression(text, types, this.#scope(text)))
  }

  /** Messages do not see the authorizer. */
  message(path: string, text: string): StatusCause[] {
    const scope = { ...this.#scope(text), hasAuthorizer: false }
    return expressionCauses(path, text, compileAdmissionExpression(text, messageTypes, scope))
  }

  annotation(path: string, text: string): StatusCause[] {
    return expressionCauses(path, text, compileAdmissionExpression(text.trim(), annotationTypes, this.#scope(text)))
  }

  #scope(text: string): Scope {
    const variables = this.#variables && { ...this.#variables }
    return { hasParams: this.#hasParams, hasAuthorizer: true, stored: this.stored.has(text), variables }
  }
}

function expressionsOf({
  variables = [],
  validations = [],
  matchConditions = [],
  auditAnnotations = [],
}: Spec): string[] {
  return [
    ...[...variables, ...validations, ...matchConditions].map(({ expression }) => expression),
    ...validations.map(({ messageExpression = '' }) => messageExpression),
    ...auditAnnotations.map(({ valueExpression }) => valueExpression),
  ]
}
