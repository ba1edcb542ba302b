// The use of members and logical clusters by others, such as controllers that read ClusterProfiles.
import type { FindBoundObject } from '#virtualapi/auth/authn/service-account-tokens.ts'
import type { LogicalCluster } from '#virtualapi/request/logical-cluster.ts'
import type { UserInfo } from '#virtualapi/request/user-info.ts'
import type { AccessGate } from './access-gate.ts'
import type { AccessGrant, AccessTarget, AccessTokens } from './access-tokens.ts'

/** The key in a user's extra of who asked for the token. */
export const accessHolderKey = 'kcp.dev/access-holder'

export interface AccessParts {
  readonly tokens: AccessTokens
  readonly gate: AccessGate
  readonly find: FindBoundObject
}

/** A token that was accepted. */
export interface AcceptedAccess {
  /** The user who asked for the token. */
  readonly user: UserInfo
  readonly target: AccessTarget
  /** Whether that user may use the target now. */
  readonly mayUse: (signal: AbortSignal) => Promise<boolean>
}

export class Access {
  readonly #parts: AccessParts

  constructor(parts: AccessParts) {
    this.#parts = parts
  }

  /** Whether a token can name this user. */
  canHold(user: UserInfo): boolean {
    return this.#parts.gate.holderOf(user) !== undefined
  }

  /** A token for the target. Undefined: no token can name this user and their groups. */
  async issue(user: UserInfo, target: AccessTarget): ReturnType<AccessTokens['issue']> {
    const holder = this.#parts.gate.holderOf(user)
    return holder && (await this.#parts.tokens.issue({ target, holder }))
  }

  /** True if the text looks like a token that `issue` has made. */
  isOurs(token: string): boolean {
    return this.#parts.tokens.isOurs(token)
  }

  /** A valid token for this target; undefined for a token for anything else. */
  async accept(
    token: string,
    wanted: Pick<AccessTarget, 'kind' | 'name'>,
    signal: AbortSignal,
  ): Promise<AcceptedAccess | undefined> {
    const { tokens, gate } = this.#parts
    const grant = await tokens.verify(token, signal)
    if (grant === undefined || !isFor(grant, wanted)) return undefined
    const { holder, target } = grant
    const user = gate.userOf(holder)
    return user && { user, target, mayUse: (until) => gate.mayUse(holder, target, until) }
  }

  /**
   * The user of a token in this logical cluster: the ServiceAccount that spec.access names. Undefined if the token is
   * not valid there, if its holder may not use the logical cluster any more, or if there is no such ServiceAccount.
   */
  async userIn(token: string, cluster: LogicalCluster, signal: AbortSignal): Promise<UserInfo | undefined> {
    const { access, name, uid, id } = cluster
    if (access === undefined) return undefined
    const accepted = await this.accept(token, { kind: 'LogicalCluster', name }, signal)
    if (accepted?.target.uid !== uid || !(await accepted.mayUse(signal))) return undefined
    const account = await this.#parts.find(id, { resource: 'serviceaccounts', ...access }, signal)
    if (account === undefined || account.deletedMs !== undefined) return undefined
    return {
      name: accountName(access),
      uid: account.uid,
      groups: ['system:serviceaccounts', `system:serviceaccounts:${access.namespace}`, 'system:authenticated'],
      extra: { [accessHolderKey]: [accepted.user.name] },
      realm: { kind: 'cluster', id },
    }
  }
}

/** The name of a ServiceAccount as a user. */
function accountName({ namespace, name }: { readonly namespace: string; readonly name: string }): string {
  return `system:serviceaccount:${namespace}:${name}`
}

function isFor({ target }: AccessGrant, { kind, name }: Pick<AccessTarget, 'kind' | 'name'>): boolean {
  return target.kind === kind && target.name === name
}
