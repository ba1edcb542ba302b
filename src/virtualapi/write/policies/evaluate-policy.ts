// Evaluates a ValidatingAdmissionPolicy for one object and one set of parameters, with kube-apiserver's messages.
import type { CompiledPolicy } from './compile-policy.ts'
import { EvaluationFailure, PolicyRun, type PolicyValues, type Result, type Results } from './policy-run.ts'

/** The budget of the validations of one object, in cost units. */
const validationBudget = 10_000_000
const maxMessageBytes = 5 * 1024

export interface Denial {
  readonly message: string
  readonly reason: string
  /** The index of the validation in spec.validations. */
  readonly index: number
}

export interface AuditAnnotation {
  readonly key: string
  readonly value: string
}

/** The verdict of a policy about one object. */
export interface Verdict {
  /** The failed validations, for which the object is refused. */
  readonly denials: readonly Denial[]
  readonly annotations: readonly AuditAnnotation[]
  /** The errors of audit annotations. They refuse the object whatever the binding's actions are. */
  readonly annotationErrors: readonly Denial[]
}

const nothing: Verdict = { denials: [], annotations: [], annotationErrors: [] }

export async function evaluatePolicy(policy: CompiledPolicy, values: PolicyValues): Promise<Verdict> {
  const run = new PolicyRun(policy, values)
  try {
    return (await run.conditionsHold()) ? await verdict(policy, run) : nothing
  } catch (error) {
    if (!(error instanceof EvaluationFailure)) throw error
    return policy.failsOpen ? nothing : { ...nothing, denials: [invalid(error.message, 0)] }
  }
}

const invalid = (message: string, index: number): Denial => ({ message, reason: 'Invalid', index })

async function verdict(policy: CompiledPolicy, run: PolicyRun): Promise<Verdict> {
  const { validations, messages, annotations, failsOpen } = policy
  const { results, left } = await run.run(validations, validationBudget)
  const texts = await computedMessages(run, messages, left)
  const denials: Denial[] = []
  for (const [index, result] of results.entries()) {
    if (result?.error !== undefined || texts.failure !== undefined) {
      const message = result?.error ?? `failed messageExpression: ${texts.failure ?? ''}`
      if (!failsOpen) denials.push(invalid(message, index))
    } else if (result?.value !== true) denials.push(denial(policy, index, texts.results[index]))
  }
  const { results: written } = await run.run(annotations, validationBudget)
  const errors = written.flatMap((result) => result?.error ?? [])
  return {
    denials,
    annotations: written.flatMap((result, index) => annotation(policy, index, result)),
    annotationErrors: failsOpen ? [] : errors.map((message) => invalid(message, 0)),
  }
}

/** The annotation as a list of one; empty if the value is null or blank. */
function annotation({ spec }: CompiledPolicy, index: number, result: Result | undefined): AuditAnnotation[] {
  const value = typeof result?.value === 'string' ? result.value.trim() : ''
  return value === '' ? [] : [{ key: spec.auditAnnotations?.[index]?.key ?? '', value }]
}

function denial({ spec }: CompiledPolicy, index: number, computed: Result | undefined): Denial {
  const { message = '', expression = '', reason = 'Invalid' } = spec.validations?.[index] ?? {}
  const text = typeof computed?.value === 'string' ? computed.value.trim() : ''
  const isUsable = text !== '' && !text.includes('\n') && Buffer.byteLength(text) <= maxMessageBytes
  const standard = message === '' ? `failed expression: ${expression.trim()}` : message.trim()
  return { message: isUsable ? text : standard, reason, index }
}

async function computedMessages(
  run: PolicyRun,
  messages: CompiledPolicy['messages'],
  budget: number,
): Promise<{ results: Results['results']; failure?: string }> {
  try {
    return await run.run(messages, budget)
  } catch (error) {
    if (error instanceof EvaluationFailure) return { results: [], failure: error.message }
    throw error
  }
}
