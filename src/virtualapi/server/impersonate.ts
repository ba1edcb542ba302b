// Impersonation (`kubectl --as`): who asks becomes another, if RBAC lets them. Each name taken on is a permission of its own.
import { badRequest, forbidden } from '../../apimachinery/status/index.ts'
import type { UserInfo } from '../authn/user-info.ts'
import { forbiddenMessage, type Attributes, type RbacAuthorizer } from '../authz/index.ts'
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
  let any = false
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i]?.toLowerCase() ?? ''
    const value = rawHeaders[i + 1] ?? ''
    if (!name.startsWith('impersonate-')) continue
    any = true
    if (name === 'impersonate-user') user = value
    else if (name === 'impersonate-uid') uid = value
    else if (name === 'impersonate-group') groups.push(value)
    else if (name.startsWith('impersonate-extra-'))
      (extra[decodeKey(name.slice('impersonate-extra-'.length))] ??= []).push(value)
    else throw badRequest(`unknown impersonation header "${name}"`)
  }
  if (!any) return undefined
  if (user === undefined || user === '') throw badRequest('requested impersonation without impersonating a user')
  return { user, uid, groups, extra }
}

function decodeKey(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch (cause) {
    throw badRequest(`the impersonation header for "${text}" is not valid percent-encoding`, cause)
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
    const { resource } = attributes
    if (!allowed && resource !== undefined) throw forbidden(resource, resource.name, forbiddenMessage(user, attributes))
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
  const list = user.startsWith(serviceAccountPrefix)
    ? [ask('', 'serviceaccounts', user.split(':')[3] ?? '', '', user.split(':')[2] ?? '')]
    : [ask('', 'users', user)]
  for (const group of groups) list.push(ask('', 'groups', group))
  if (uid !== undefined) list.push(ask('authentication.k8s.io', 'uids', uid))
  for (const [key, values] of Object.entries(extra))
    for (const value of values) list.push(ask('authentication.k8s.io', 'userextras', value, key))
  return list
}

function groupsOf({ user, groups }: Wanted): readonly string[] {
  if (user === 'system:anonymous') return groups.length > 0 ? groups : ['system:unauthenticated']
  const all = [...groups]
  if (all.length === 0 && user.startsWith(serviceAccountPrefix))
    all.push('system:serviceaccounts', `system:serviceaccounts:${user.split(':')[2] ?? ''}`)
  if (!all.includes('system:authenticated')) all.push('system:authenticated')
  return all
}
