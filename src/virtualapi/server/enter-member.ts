// Requests to the API of a member: `/services/members/NAME/...`. Only tokens for this use count there, and each
// request asks again whether the user who got the token may use the member.
import { pathNotFound, unauthorized } from '#apimachinery/status/index.ts'
import type { AcceptedAccess } from '#virtualapi/auth/access/index.ts'
import { attributesOf } from '#virtualapi/auth/access/index.ts'
import { forbiddenError } from '#virtualapi/auth/authz/index.ts'
import type { Exchange } from '#virtualapi/request/exchange.ts'
import type { ServerDependencies } from './dependencies.ts'

const accepted = new WeakMap<Exchange, AcceptedAccess>()

/** Sets the user of the exchange. Rejects with 401 unless the request has a token for this member. */
export async function authenticateForMember(
  exchange: Exchange,
  member: string,
  { access }: Pick<ServerDependencies, 'access'>,
): Promise<void> {
  const token = /^bearer +(\S+)$/i.exec(exchange.header('authorization') ?? '')?.[1]
  const found = token && (await access.accept(token, { kind: 'MemberCluster', name: member }, exchange.signal))
  if (found === undefined || found === '') throw unauthorized()
  accepted.set(exchange, found)
  exchange.user = found.user
  exchange.request.known?.()
  exchange.audit?.authenticated(found.user)
}

/** Lets the request in. Rejects with 403 if the user may not use the member any more, or nobody may. */
export async function enterMember(
  exchange: Exchange,
  member: string,
  { memberAccess }: Pick<ServerDependencies, 'memberAccess'>,
): Promise<void> {
  const use = accepted.get(exchange)
  // From within the process, nobody uses a member this way.
  if (use === undefined) throw pathNotFound()
  const accountOf = async (signal: AbortSignal) => {
    const found = await memberAccess?.find(member, signal)
    return found?.uid === use.target.uid ? found.account : undefined
  }
  const account = await accountOf(exchange.signal)
  const allowed = account !== undefined && (await use.mayUse(exchange.signal))
  exchange.audit?.decided({ allowed, reason: '' })
  if (!allowed) throw forbiddenError(exchange.user, attributesOf({ kind: 'MemberCluster', name: member }))
  exchange.member = {
    name: member,
    account,
    mayGoOn: async (signal) => {
      const now = await accountOf(signal)
      const isSame = now?.namespace === account.namespace && now.name === account.name
      return isSame && (await use.mayUse(signal))
    },
  }
}
