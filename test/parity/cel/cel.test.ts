import { expect } from 'chai'
import { ensurePrograms } from '#test/support/programs.ts'
import {
  brokenExpressions,
  mutated,
  mutationExpressions,
  plainExpressions,
  resource,
  resourceExpressions,
  resourceSchema,
} from './expressions.ts'
import { randomBelow, randomExpression } from './generate.ts'
import { knownDifferences } from './known-differences.ts'
import { type ApiResponse, answer, askKubernetes, type Question } from './questions.ts'

const generated = Number(process.env.KCP_CEL_EXPRESSIONS ?? 1500)
const seed = Number(process.env.KCP_SEED ?? 20251)

const aboutResource = (expression: string): Question => ({
  expression,
  schema: resourceSchema,
  self: resource,
  root: true,
})

function generatedQuestions(): Question[] {
  const below = randomBelow(seed)
  return Array.from({ length: generated }, () => aboutResource(randomExpression(below)))
}

// A program that cannot be made has no estimate here, but upstream estimates before it makes the program.
function comparable({
  compileError,
  programError,
  error,
  result,
  cost,
  estimateMin,
  estimateMax,
  failure,
}: ApiResponse): ApiResponse {
  if (programError !== undefined) return { programError }
  const all = { compileError, error, result, cost, estimateMin, estimateMax, failure }
  return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined))
}

describe('CEL, compared to the libraries of kube-apiserver', function () {
  this.timeout(600_000)
  let program: string

  before(async () => {
    program = (await ensurePrograms(['cel'])).cel
  })

  const suites: readonly (readonly [string, readonly Question[]])[] = [
    ['expressions without a schema', plainExpressions.map((expression) => ({ expression }))],
    [
      'expressions of mutations',
      mutationExpressions.map((expression) => ({ expression, mutation: true, variables: { object: mutated } })),
    ],
    ['expressions that do not parse', brokenExpressions.map((expression) => ({ expression }))],
    ['expressions about a resource', resourceExpressions.map(aboutResource)],
    ['expressions for an older server', plainExpressions.map((expression) => ({ expression, minor: 29 }))],
    ['generated expressions', generatedQuestions()],
    ['expressions with a small budget', resourceExpressions.map((text) => ({ ...aboutResource(text), limit: 8 }))],
  ]
  for (const [name, questions] of suites)
    it(`gives the same results, errors, costs and estimates for ${name}`, async () => {
      const theirs = await askKubernetes(program, questions)
      const differences = questions.flatMap((question, i) => {
        const [mine, upstream] = [comparable(answer(question)), comparable(theirs[i] ?? {})]
        if (knownDifferences.some(({ applies }) => applies(upstream, mine))) return []
        return JSON.stringify(mine) === JSON.stringify(upstream)
          ? []
          : [{ expression: question.expression, mine, upstream }]
      })
      expect(differences).to.deep.equal([])
    })
})
