// Asks the libraries of kube-apiserver, and us, the same about the same expressions.
import { spawn } from 'node:child_process'
import {
  compileExpression,
  declaredType,
  dynamicValue,
  dynType,
  extendEnvironment,
  kubernetesEnvironment,
  mutationFunctions,
  mutationStructs,
  perCallLimit,
  Program,
  typedValue,
  type Value,
  withTypeAndMeta,
} from '#apimachinery/cel/index.ts'
import type { JsonObject, JsonValue } from '#apimachinery/meta/index.ts'
import { parseStructuralSchema } from '#apimachinery/schema/index.ts'
import { showValue } from './show-value.ts'

export interface Question {
  readonly expression: string
  readonly schema?: JsonObject
  readonly self?: JsonValue
  readonly root?: boolean
  readonly variables?: Readonly<Record<string, JsonValue>>
  readonly minor?: number
  readonly limit?: number
  readonly mutation?: boolean
}

export interface ApiResponse {
  readonly compileError?: string
  readonly programError?: string
  readonly error?: string
  readonly result?: string
  readonly cost?: string
  readonly estimateMin?: string
  readonly estimateMax?: string
  readonly failure?: string
  readonly type?: string
}

/** The answers of the program of test/programs/cel, one per question. */
export async function askKubernetes(program: string, questions: readonly Question[]): Promise<ApiResponse[]> {
  const child = spawn(program, { stdio: ['pipe', 'pipe', 'inherit'] })
  let text = ''
  child.stdout.setEncoding('utf8').on('data', (part: string) => (text += part))
  child.stdin.end(questions.map((question) => JSON.stringify(question)).join('\n') + '\n')
  const code = await new Promise<number | null>((resolve, reject) => {
    child.on('error', reject)
    child.on('close', resolve)
  })
  const lines = text.split('\n').filter((line) => line !== '')
  if (code !== 0 || lines.length !== questions.length)
    throw new Error(`the CEL program ended with ${String(code)} after ${String(lines.length)} answers`)
  return lines.map((line) => JSON.parse(line) as ApiResponse)
}

/** Our answer to the same question. */
export function answer(question: Question): ApiResponse {
  const { schema, self, root = false, variables = {}, minor = 34, limit = perCallLimit, mutation = false } = question
  const node = schema === undefined ? undefined : parseStructuralSchema(schema)
  const declared = node === undefined ? undefined : declaredType(node, 'selfType', { isResource: root })
  const names = Object.fromEntries(Object.keys(variables).map((name) => [name, dynType]))
  const environment = extendEnvironment(kubernetesEnvironment({ minor }), {
    variables: declared === undefined ? names : { self: declared.type, ...names },
    declaredTypes: declared === undefined ? [] : [declared],
    ...(mutation ? { structs: mutationStructs, functions: mutationFunctions } : {}),
  })
  const program = compileExpression(question.expression, environment)
  if (!(program instanceof Program))
    return program.stage === 'compile' ? { compileError: program.message } : { programError: program.message }
  const values = new Map<string, Value>(Object.entries(variables).map(([name, json]) => [name, dynamicValue(json)]))
  if (node !== undefined && self !== undefined) values.set('self', typedValue(self, withTypeAndMeta(node)))
  const { value, error, cost } = program.run(values, { costLimit: limit })
  const { min, max } = program.estimate(declared)
  return {
    ...(error === undefined ? { result: showValue(value ?? null) } : { error }),
    cost: String(cost),
    estimateMin: String(min),
    estimateMax: String(max),
  }
}
