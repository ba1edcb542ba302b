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

/** How many expressions stay compiled. Their number is bounded, because tenants write them. */
const maxCompiled = 1000
/** The limit of one evaluation, in cost units of CEL. */
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
