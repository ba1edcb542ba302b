// Impersonation (`kubectl --as`). Each impersonated user, group, uid and extra value needs a permission of its own.
import type { WorkBudget } from '#apimachinery/work-budget/index.ts'
import { dns1123LabelErrors, dns1123SubdomainErrors } from '#apimachinery/field/index.ts'
import { badRequest, type StatusError } from '#apimachinery/status/index.ts'
import { headerText } from '#virtualapi/auth/authn/header-text.ts'
import type { UserInfo } from '#virtualapi/request/user-info.ts'
import { forbiddenError, type Attributes, type RbacAuthorizer } from '#virtualapi/auth/authz/index.ts'
import type { LogicalCluster } from '#virtualapi/request/logical-cluster.ts'

interface Wanted {
  readonly user: string
  readonly uid: string | undefined
  readonly groups: readonly string[]
  readonly extra: Readonly<Record<string, readonly string[]>>
}

const prefix = 'impersonate-'
const serviceAccountPrefix = 'system:serviceaccount:'

/** The identity in the headers; undefined if there is none. Throws 400 for groups, uid or extra without a user. */
export function wantedIdentity(rawHeaders: readonly string[]): Wanted | undefined {
  let user: string | undefined
  let uid: string | undefined
  const groups: string[] = []
  // Clients choose the keys, so the object must not have a prototype.
  const extra = Object.create(null) as Record<string, string[]>
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const raw = rawHeaders[i] ?? ''
    if (raw.length <= prefix.length || raw.charAt(prefix.length - 1) !== '-') continue
    const name = raw.toLowerCase()
    if (!name.startsWith(prefix)) continue
    const value = headerText(rawHeaders[i + 1] ?? '')
    // The first value of a repeated header counts.
    if (name === 'impersonate-user') user ??= value
    else if (name === 'impersonate-uid') uid ??= value
    else if (name === 'impersonate-group') groups.push(value)
    else if (name.startsWith('impersonate-extra-'))
      (extra[decodeKey(name.slice('impersonate-extra-'.length))] ??= []).push(value)
  }
  const hasUid = uid !== undefined && uid !== ''
  if (user === undefined || user === '') {
    if (!hasUid && groups.length === 0 && Object.keys(extra).length === 0) return undefined
    throw badRequest('requested impersonation without impersonating a user')
  }
  return { user, uid: hasUid ? uid : undefined, groups, extra }
}

/** Decodes a percent-encoded key. An invalid encoding is kept as it is. */
function decodeKey(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/** The impersonated user, valid only in `cluster`. Rejects with a 403 that names the missing permission. */
export async function impersonated(
  user: UserInfo,
  wanted: Wanted,
  cluster: LogicalCluster,
  {
    authorizer,
    work,
    signal,
  }: { authorizer: Pick<RbacAuthorizer, 'authorize'>; work: WorkBudget; signal: AbortSignal },
): Promise<UserInfo> {
  for (const attributes of permissions(wanted)) {
    const { allowed } = await authorizer.authorize(user, attributes, { cluster, work, signal })
    if (!allowed) throw forbiddenError(user, attributes)
  }
  const { user: name, uid, extra } = wanted
  return {
    name,
    ...(uid === undefined ? {} : { uid }),
    groups: groupsOf(wanted),
    extra,
    realm: { kind: 'cluster', id: cluster.id },
  }
}

/** The refusal of a user without any permission to impersonate. */
export function impersonationForbidden(user: UserInfo, wanted: Wanted): StatusError {
  const [attributes] = permissions(wanted)
  return forbiddenError(user, attributes)
}

function permissions({ user, uid, groups, extra }: Wanted): [Attributes, ...Attributes[]] {
  const ask = (
    group: string,
    resource: string,
    name: string,
    { subresource = '', namespace = '' } = {},
  ): Attributes => ({
    verb: 'impersonate',
    resource: { group, version: 'v1', resource, subresource, namespace, name },
  })
  const account = serviceAccountOf(user)
  const list: [Attributes, ...Attributes[]] =
    account === undefined
      ? [ask('', 'users', user)]
      : [ask('', 'serviceaccounts', account.name, { namespace: account.namespace })]
  for (const group of groups) list.push(ask('', 'groups', group))
  if (uid !== undefined) list.push(ask('authentication.k8s.io', 'uids', uid))
  for (const [key, values] of Object.entries(extra))
    for (const value of values) list.push(ask('authentication.k8s.io', 'userextras', value, { subresource: key }))
  return list
}

/**
 * The requested groups, with system:authenticated or system:unauthenticated. If no group is requested, a ServiceAccount
 * gets the groups of ServiceAccounts.
 */
function groupsOf({ user, groups }: Wanted): readonly string[] {
  if (user === 'system:anonymous') return [...new Set([...groups, 'system:unauthenticated'])]
  const account = serviceAccountOf(user)
  const all =
    groups.length === 0 && account !== undefined
      ? ['system:serviceaccounts', `system:serviceaccounts:${account.namespace}`]
      : [...groups]
  const hasAuthenticationGroup = all.includes('system:authenticated') || all.includes('system:unauthenticated')
  return hasAuthenticationGroup ? all : [...all, 'system:authenticated']
}

/** The ServiceAccount of `system:serviceaccount:NAMESPACE:NAME`; undefined for every other user. */
function serviceAccountOf(user: string): { namespace: string; name: string } | undefined {
  if (!user.startsWith(serviceAccountPrefix)) return undefined
  const [namespace = '', name = '', ...rest] = user.slice(serviceAccountPrefix.length).split(':')
  const isValid =
    rest.length === 0 && dns1123LabelErrors(namespace).length === 0 && dns1123SubdomainErrors(name).length === 0
  return isValid ? { namespace, name } : undefined
}
