// The roles that are granted to a user, found without a pause, and the problems with them.
import type { WorkBudget } from '#apimachinery/work-budget/index.ts'
import type { UserInfo } from '#virtualapi/request/user-info.ts'
import type { Grant, Policy } from './policy.ts'
import { rbacGroup } from './rbac-index.ts'
import type { CompiledRoles, StoredRole } from './stored-role.ts'

/** The context of a question about rights. */
export interface RbacContext {
  readonly policy: Policy
  readonly compiled: CompiledRoles
  readonly work: WorkBudget
  readonly signal: AbortSignal
}

export interface GrantedRole {
  readonly grant: Grant
  readonly role: StoredRole
}

/** How many missing roles are named. */
const maxMissing = 20
/** How many inherited bindings a refusal names. */
const maxInherited = 5
/**
 * The cost of one granted role, and of one group of the user, in steps of the work budget: some 200,000 of them may be
 * looked at.
 */
const grantSteps = 50

/** Why a question about rights has no complete answer: the user has more roles than one request may look at. */
export const tooManyRoles = 'the roles that are granted to the user are too many or too large to be evaluated'

/**
 * Collects the reasons why an answer may be incomplete: roles that bindings name and that do not exist, and a `work`
 * budget that is too small for all roles.
 */
export class RoleProblems {
  readonly #missing = new Set<string>()
  #more = 0
  isComplete = true
  /** The bindings of ancestors that were looked at. */
  readonly #inherited: string[] = []

  inherited({ binding, from }: Grant): void {
    if (this.#inherited.length < maxInherited)
      this.#inherited.push(`ClusterRoleBinding "${binding.name}" inherited from logical cluster "${from ?? ''}"`)
  }
  /** The inherited bindings of the user, none of which allows the request; empty if there are none. */
  get inheritedText(): string {
    return this.#inherited.length === 0 ? '' : `not allowed by ${this.#inherited.join(', ')}`
  }
  missing({ binding: { roleKind, roleName } }: Grant): void {
    if (this.#missing.size >= maxMissing) this.#more++
    else this.#missing.add(`${roleKind.toLowerCase()}.${rbacGroup} "${roleName}" not found`)
  }
  /** The problems, in the words of kube-apiserver if it has a message for them. */
  get texts(): string[] {
    return [
      ...this.#missing,
      ...(this.#more === 0 ? [] : [`${String(this.#more)} more roles not found`]),
      ...(this.isComplete ? [] : [tooManyRoles]),
    ]
  }
}

/** The existing roles granted to the user. Reads the policy without a pause, because it changes in place. */
export function* grantedRoles(
  { policy, work }: RbacContext,
  user: UserInfo,
  namespace: string,
  problems: RoleProblems,
): Generator<GrantedRole> {
  if (!work.trySpend(grantSteps * user.groups.length)) problems.isComplete = false
  else
    for (const grant of policy.grantsOf(user, namespace)) {
      const role = policy.roleOfGrant(grant)
      if (grant.from !== undefined) problems.inherited(grant)
      if (!work.trySpend(grantSteps) || !work.trySpendBytes(role?.bytes ?? 0)) {
        problems.isComplete = false
        return
      }
      if (role === undefined) problems.missing(grant)
      else yield { grant, role }
    }
}
