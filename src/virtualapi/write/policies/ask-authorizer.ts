// Lets CEL expressions call the authorizer. Expressions are synchronous, while the authorizer may have to load objects.
// So an expression that makes a new authorization check is stopped, and runs again when the decision is there.
import type { AuthorizationAnswer, AuthorizationQuestion, CelAuthorizer } from '#apimachinery/cel/index.ts'
import { KeyedMutex } from '#async/index.ts'
import type { AdmissionRequest } from '#virtualapi/write/admission/admission.ts'
import type { Attributes, Authorizer } from '#virtualapi/auth/authz/index.ts'

type UserInfo = AdmissionRequest['context']['user']
type Decides = Pick<Authorizer, 'authorize'>

/** Stops an evaluation that needs a decision of the authorizer. */
class Unanswered extends Error {
  readonly user: UserInfo
  readonly question: AuthorizationQuestion

  constructor(user: UserInfo, question: AuthorizationQuestion) {
    super('the authorizer was not asked yet')
    this.user = user
    this.question = question
  }
}

/** The most authorization checks of one evaluation. Its cost budget is exhausted earlier. */
const maxQuestions = 100

/**
 * Allows one evaluation at a time in each logical cluster, because an evaluation keeps its values in memory while it
 * gives other requests a turn.
 */
const evaluating = new KeyedMutex()

/** Runs `evaluate`, again after each new authorization check, until it has all decisions. Rejects with its error. */
export async function withAuthorizer<T>(
  decides: Decides,
  { context, signal }: AdmissionRequest,
  evaluate: (authorizer: CelAuthorizer) => T | Promise<T>,
): Promise<T> {
  const responses = new Map<string, AuthorizationAnswer>()
  const release = await evaluating.take(context.cluster.id, signal)
  try {
    while (responses.size <= maxQuestions) {
      try {
        return await evaluate(celAuthorizer(context.user, responses))
      } catch (error) {
        if (!(error instanceof Unanswered)) throw error
        const { user, question } = error
        const { cluster, work } = context
        const decision = await decides.authorize(user, attributesOf(question), { cluster, work, signal })
        responses.set(keyOf(user, question), decision)
        await context.turn?.()
      }
    }
  } finally {
    release()
  }
  throw new Error('an admission policy asked the authorizer too often')
}

const keyOf = ({ name }: UserInfo, question: AuthorizationQuestion): string => JSON.stringify([name, question])

function celAuthorizer(user: UserInfo, responses: ReadonlyMap<string, AuthorizationAnswer>): CelAuthorizer {
  return {
    authorize(question) {
      const response = responses.get(keyOf(user, question))
      if (response === undefined) throw new Unanswered(user, question)
      return response
    },
    asServiceAccount(namespace, name) {
      const groups = ['system:serviceaccounts', `system:serviceaccounts:${namespace}`, 'system:authenticated']
      const account = { ...user, name: `system:serviceaccount:${namespace}:${name}`, groups, extra: {} }
      return celAuthorizer(account, responses)
    },
  }
}

function attributesOf(question: AuthorizationQuestion): Attributes {
  if (question.kind === 'path') return { verb: question.verb, path: question.path }
  const { verb, group, resource, subresource, namespace, name } = question
  return { verb, resource: { group, version: '*', resource, subresource, namespace, name } }
}
