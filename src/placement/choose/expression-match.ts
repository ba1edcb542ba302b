// CEL expressions about members: `require.cel` of a Placement.
import { LRUCache } from 'lru-cache'
import {
  boolType,
  compileExpression,
  dynamicValue,
  dynType,
  extendEnvironment,
  isSameType,
  kubernetesEnvironment,
  mapOf,
  Program,
  stringType,
  type Environment,
} from '#apimachinery/cel/index.ts'
import type { Candidate } from '#placement/rules/candidate.ts'

/** Expressions that stay compiled; tenants write them, so they are bounded. */
const maxCompiled = 1000
/** Of one evaluation, in cost units. */
const costLimit = 10_000

const compiled = new LRUCache<string, Program | string>({ max: maxCompiled })
let environment: Environment | undefined

/** Why the expression does not hold for the member: it is false, fails or is invalid. Undefined if it holds. */
export function refuseByExpression(
  expression: string,
  { name, labels = {}, taints = [] }: Candidate,
): string | undefined {
  const program = programOf(expression)
  if (typeof program === 'string') return `is invalid: ${program}`
  const cluster = dynamicValue({ name, labels: { ...labels }, taints: taints.map((taint) => ({ ...taint })) })
  const { value, error } = program.run(new Map([['cluster', cluster]]), { costLimit })
  if (error !== undefined) return `fails: ${error}`
  return value === true ? undefined : 'is false'
}

function programOf(expression: string): Program | string {
  let known = compiled.get(expression)
  if (known === undefined) {
    known = compile(expression)
    compiled.set(expression, known)
  }
  return known
}

function compile(expression: string): Program | string {
  environment ??= extendEnvironment(kubernetesEnvironment({ minor: 33 }), {
    variables: { cluster: mapOf(stringType, dynType) },
  })
  const program = compileExpression(expression, environment)
  if (!(program instanceof Program)) return program.message
  const { outputType } = program
  return isSameType(outputType, boolType) || outputType.kind === 'dyn' ? program : 'it must be true or false'
}
