// Condition AuthenticationValid of a LogicalCluster with spec.authentication: whether its issuers count, and whether their
// keys can be read. The operator removes the condition of a LogicalCluster without issuers.
import { causeText } from '#apimachinery/field/index.ts'
import { timestamp } from '#async/index.ts'
import type { ConditionUpdate } from '#crds/index.ts'
import type { IssuersState } from '#virtualapi/auth/sign-in/index.ts'
import { maxMessage } from './condition-reports.ts'

export const authenticationValid = 'AuthenticationValid'

export function authenticationCondition({ causes, unreadable }: IssuersState): ConditionUpdate {
  const type = authenticationValid
  if (causes.length > 0) {
    const message = `no issuer of spec.authentication counts: ${causes.map(causeText).join('; ')}`
    return { type, status: 'False', reason: 'IssuersInvalid', message: message.slice(0, maxMessage) }
  }
  if (unreadable.length > 0) {
    const message = unreadable.map(unreadableText).join('; ')
    return { type, status: 'False', reason: 'KeysUnreadable', message: message.slice(0, maxMessage) }
  }
  return { type, status: 'True', reason: 'Valid', message: 'tokens of the issuers count' }
}

function unreadableText({ url, problem, countUntil }: IssuersState['unreadable'][number]): string {
  const known =
    countUntil === undefined
      ? 'no key is known, so its tokens are refused'
      : `the keys that are known count until ${timestamp(countUntil)}`
  return `the keys of "${url}" cannot be read: ${problem}; ${known}`
}
