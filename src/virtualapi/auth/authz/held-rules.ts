// The rules that are granted to a user.
import { yieldEvery } from '#async/index.ts'
import type { UserInfo } from '#virtualapi/request/user-info.ts'
import type { CompiledRules } from './compiled-rules.ts'
import { grantedRoles, RoleProblems, type RbacContext } from './granted-roles.ts'
import type { PolicyRule } from './policy-rules.ts'

export interface HeldRules {
  /** The rules, by role. */
  readonly roles: readonly CompiledRules[]
  /** Why rules may be missing: roles that do not exist, or too many roles. */
  readonly problems: readonly string[]
  /** False: the user has more roles than one request may look at. */
  readonly isComplete: boolean
}

/** How long a loop over roles runs before other work gets a turn, in milliseconds. */
const sliceMs = 5

/** The rules of all roles that are granted to the user in `namespace`. */
export async function heldRules(context: RbacContext, user: UserInfo, namespace: string): Promise<HeldRules> {
  const problems = new RoleProblems()
  const granted = [...grantedRoles(context, user, namespace, problems)]
  const pause = yieldEvery(sliceMs, context.signal)
  const roles: CompiledRules[] = []
  for (const { role } of granted) {
    const due = pause()
    if (due !== undefined) await due
    roles.push(context.compiled.rulesOf(role))
  }
  return { roles, problems: problems.texts, isComplete: problems.isComplete }
}

/** Bounds on a list of rules in a response: the number of rules, and the characters of their JSON. */
const maxListedRules = 10_000
const maxListedLength = 1024 * 1024
/** The cost of comparing a rule with the rules listed before, in steps of the work budget. */
const listedSteps = 10

/** The rules of all these roles, each once, within the bounds above and the work budget. `isCut`: there may be more. */
export async function listRules(
  roles: readonly CompiledRules[],
  { work, signal }: Pick<RbacContext, 'work' | 'signal'>,
): Promise<{ readonly rules: readonly PolicyRule[]; readonly isCut: boolean }> {
  const rules = new Map<string, PolicyRule>()
  const pause = yieldEvery(sliceMs, signal)
  let length = 0
  for (const role of roles) {
    const due = pause()
    if (due !== undefined) await due
    for (const [text, rule] of role.entries()) {
      if (!work.trySpend(listedSteps)) return { rules: [...rules.values()], isCut: true }
      if (rules.has(text)) continue
      length += text.length
      if (rules.size === maxListedRules || length > maxListedLength) return { rules: [...rules.values()], isCut: true }
      rules.set(text, rule)
    }
  }
  return { rules: [...rules.values()], isCut: false }
}
