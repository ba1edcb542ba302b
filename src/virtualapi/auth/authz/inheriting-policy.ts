// The policy of a logical cluster with ancestors: its own grants first, then the inherited ones of each ancestor, the
// parent first. Nothing is copied: the policies of ancestors are those with which they decide themselves.
import { userIn } from '#virtualapi/auth/authn/ancestor-names.ts'
import type { LogicalCluster } from '#virtualapi/request/logical-cluster.ts'
import type { UserInfo } from '#virtualapi/request/user-info.ts'
import type { Grant, LayeredPolicy, Policy } from './policy.ts'
import type { StoredRole } from './stored-role.ts'

export class InheritingPolicy implements Policy {
  readonly #own: LayeredPolicy
  readonly #ancestors: readonly LogicalCluster[]
  readonly #policies: readonly LayeredPolicy[]

  /** `policies`: the policy of the logical cluster itself, then those of its ancestors, the parent first. */
  constructor(ancestors: readonly LogicalCluster[], [own, ...policies]: readonly [LayeredPolicy, ...LayeredPolicy[]]) {
    this.#own = own
    this.#ancestors = ancestors
    this.#policies = policies
  }

  *grantsOf(user: UserInfo, namespace: string): Generator<Grant> {
    yield* this.#own.grantsOf(user, namespace)
    for (const [i, policy] of this.#policies.entries()) {
      const ancestor = this.#ancestors[i]
      const there = ancestor && userIn(user, this.#ancestors, i)
      if (ancestor === undefined || there === undefined) continue
      for (const grant of policy.inheritedGrantsOf(there)) yield { ...grant, from: ancestor.name }
    }
  }

  /** A role of its own, or else the nearest ancestor's ClusterRole of that name that can be bound in descendants. */
  roleOf(roleKind: string, roleName: string, namespace: string): StoredRole | undefined {
    const own = this.#own.roleOf(roleKind, roleName, namespace)
    if (own !== undefined || roleKind !== 'ClusterRole') return own
    for (const policy of this.#policies) {
      const role = policy.roleOf(roleKind, roleName, '')
      if (role?.inherits === true) return role
    }
    return undefined
  }

  /** An inherited binding names a role of the ancestor that has the binding, whether descendants can bind it or not. */
  roleOfGrant(grant: Grant): StoredRole | undefined {
    const { roleKind, roleName, namespace } = grant.binding
    if (grant.from === undefined) return this.roleOf(roleKind, roleName, namespace)
    const at = this.#ancestors.findIndex(({ name }) => name === grant.from)
    return this.#policies[at]?.roleOf(roleKind, roleName, '')
  }
}
