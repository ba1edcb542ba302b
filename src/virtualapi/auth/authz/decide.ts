// The decision of RBAC about one request.
import { aggregateText } from '#apimachinery/field/index.ts'
import { yieldEvery } from '#async/index.ts'
import type { UserInfo } from '#virtualapi/request/user-info.ts'
import type { Attributes, Decision } from '#virtualapi/request/authorizer.ts'
import type { CompiledRules } from './compiled-rules.ts'
import { grantedRoles, RoleProblems, type GrantedRole, type RbacContext } from './granted-roles.ts'
import type { Grant } from './policy.ts'

/** How many rules are evaluated without a pause; most users have fewer. */
const maxRulesAtOnce = 10_000
/** How long the evaluation of further rules runs before other work has a turn, milliseconds. */
const sliceMs = 5

/** Allows the request if a rule of a role that is granted to the user allows it. Evaluates each role once. */
export async function decide(context: RbacContext, user: UserInfo, attributes: Attributes): Promise<Decision> {
  const problems = new RoleProblems()
  const later: GrantedRole[] = []
  let rules = 0
  for (const granted of grantedRoles(context, user, attributes.resource?.namespace ?? '', problems)) {
    const { compiled } = granted.role
    if (compiled === undefined || rules > maxRulesAtOnce) {
      later.push(granted)
      continue
    }
    rules += compiled.rules.length
    granted.role.wasUsed = true
    if (allows(compiled, attributes, context, problems)) return allowedBy(granted.grant)
  }
  if (later.length > 0) {
    const found = await decideLater(later, attributes, context, problems)
    if (found !== undefined) return allowedBy(found)
  }
  const { texts, inheritedText } = problems
  const reasons = [
    ...(texts.length === 0 ? [] : [aggregateText(texts)]),
    ...(inheritedText === '' ? [] : [inheritedText]),
  ]
  return { allowed: false, reason: reasons.length === 0 ? '' : `RBAC: ${reasons.join('; ')}` }
}

/**
 * The grant that allows the request, among grants whose roles are not compiled yet or are beyond the first 10,000
 * rules; undefined if none does.
 */
async function decideLater(
  later: readonly GrantedRole[],
  attributes: Attributes,
  context: RbacContext,
  problems: RoleProblems,
): Promise<Grant | undefined> {
  const pause = yieldEvery(sliceMs, context.signal)
  for (const { grant, role } of later) {
    const due = pause()
    if (due !== undefined) await due
    if (allows(context.compiled.rulesOf(role), attributes, context, problems)) return grant
  }
  return undefined
}

function allows(rules: CompiledRules, attributes: Attributes, { work }: RbacContext, problems: RoleProblems): boolean {
  const isAllowed = rules.allows(attributes, work)
  if (isAllowed === undefined) problems.isComplete = false
  return isAllowed === true
}

function allowedBy({ binding: { namespace, name, roleKind, roleName }, subject, from }: Grant): Decision {
  const binding = namespace === '' ? `ClusterRoleBinding "${name}"` : `RoleBinding "${name}/${namespace}"`
  const slash = subject.indexOf('/')
  const who = `${subject.slice(0, slash)} "${subject.slice(slash + 1)}"`
  const inherited = from === undefined ? '' : `, inherited from logical cluster "${from}"`
  return { allowed: true, reason: `RBAC: allowed by ${binding} of ${roleKind} "${roleName}" to ${who}${inherited}` }
}
