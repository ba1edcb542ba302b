// Impersonation (`kubectl --as`): who asks becomes another, if RBAC lets them. Each name taken on is a permission of its own.
import { dns1123LabelErrors, dns1123SubdomainErrors } from '../../apimachinery/field/index.ts'
import { badRequest } from '../../apimachinery/status/index.ts'
import { headerText } from '../authn/header-text.ts'
import type { UserInfo } from '../authn/user-info.ts'
import { forbiddenError, type Attributes, type RbacAuthorizer } from '../authz/index.ts'
import type { LogicalCluster } from '../clusters/directory.ts'

interface Wanted {
  readonly user: string
  readonly uid: string | undefined
  readonly groups: readonly string[]
  readonly extra: Readonly<Record<string, readonly string[]>>
}

const serviceAccountPrefix = 'system:serviceaccount:'

/** What the headers ask for; undefined where they ask for nothing. Throws 400 for anything without a user. */
export function wantedIdentity(rawHeaders: readonly string[]): Wanted | undefined {
  let user: string | undefined
  let uid: string | undefined
  const groups: string[] = []
  // A client chooses the keys: none of them may meet a property that every object has.
  const extra = Object.create(null) as Record<string, string[]>
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i]?.toLowerCase() ?? ''
    if (!name.startsWith('impersonate-')) continue
    const value = headerText(rawHeaders[i + 1] ?? '')
    // Of a header that is there twice the first counts.
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

/** One that is not encoded is taken as it is. */
function decodeKey(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/** The identity asked for, valid in `cluster` alone. Rejects 403 naming the permission that is missing. */
export async function impersonated(
  user: UserInfo,
  wanted: Wanted,
  cluster: LogicalCluster,
  { authorizer, signal }: { authorizer: Pick<RbacAuthorizer, 'authorize'>; signal: AbortSignal },
): Promise<UserInfo> {
  for (const attributes of permissions(wanted)) {
    const { allowed } = await authorizer.authorize(user, attributes, cluster, signal)
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

function permissions({ user, uid, groups, extra }: Wanted): Attributes[] {
  const ask = (group: string, resource: string, name: string, subresource = '', namespace = ''): Attributes => ({
    verb: 'impersonate',
    resource: { group, version: 'v1', resource, subresource, namespace, name },
  })
  const account = serviceAccountOf(user)
  const list =
    account === undefined ? [ask('', 'users', user)] : [ask('', 'serviceaccounts', account.name, '', account.namespace)]
  for (const group of groups) list.push(ask('', 'groups', group))
  if (uid !== undefined) list.push(ask('authentication.k8s.io', 'uids', uid))
  for (const [key, values] of Object.entries(extra))
    for (const value of values) list.push(ask('authentication.k8s.io', 'userextras', value, key))
  return list
}

/** Who asks for groups has these, and by default those that everybody of this sort is in. */
function groupsOf({ user, groups }: Wanted): readonly string[] {
  if (user === 'system:anonymous') return [...new Set([...groups, 'system:unauthenticated'])]
  const account = serviceAccountOf(user)
  const all =
    groups.length === 0 && account !== undefined
      ? ['system:serviceaccounts', `system:serviceaccounts:${account.namespace}`]
      : [...groups]
  const isSaid = all.includes('system:authenticated') || all.includes('system:unauthenticated')
  return isSaid ? all : [...all, 'system:authenticated']
}

/** What `system:serviceaccount:NAMESPACE:NAME` names; undefined for every other user. */
function serviceAccountOf(user: string): { namespace: string; name: string } | undefined {
  if (!user.startsWith(serviceAccountPrefix)) return undefined
  const [namespace = '', name = '', ...rest] = user.slice(serviceAccountPrefix.length).split(':')
  const isOne =
    rest.length === 0 && dns1123LabelErrors(namespace).length === 0 && dns1123SubdomainErrors(name).length === 0
  return isOne ? { namespace, name } : undefined
}
