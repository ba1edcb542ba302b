// Which requests are a sign that somebody uses a logical cluster. Those of the installation are none, nor those of
// controllers, nodes and pods: they come also where nobody is.
import type { RequestInfo } from '#virtualapi/request/request-info.ts'
import type { SleepRules } from '#virtualapi/request/logical-cluster.ts'
import { anonymous, type UserInfo } from '#virtualapi/request/user-info.ts'

/** What a request is for the sleep of its logical cluster; undefined: it does not count. */
export function isCounted(
  { entryPoint, verb, target, query }: Pick<RequestInfo, 'entryPoint' | 'verb' | 'target' | 'query'>,
  user: UserInfo,
  rules: SleepRules,
): 'read' | 'write' | undefined {
  if (entryPoint === 'loopback' || target.kind !== 'resource' || !isPerson(user, rules)) return undefined
  if (!writeVerbs.has(verb) || query.getAll('dryRun').length > 0) return 'read'
  // Questions by POST, and what a client writes about itself.
  if (questionGroups.has(target.group) || bookkeeping.has(target.resource)) return 'read'
  // Into pods: while it sleeps there are none.
  return streams.has(target.subresource) ? 'read' : 'write'
}

function isPerson(user: UserInfo, { countsAccounts, ignoreUsers = [], ignoreGroups = [] }: SleepRules): boolean {
  const { realm, name, groups } = user
  if (realm.kind === 'installation' || user === anonymous) return false
  // Users of the host and of ancestors have the system's names behind a prefix.
  const own = name.replace(/^(host|cluster:[^:]*):/, '')
  if (own.startsWith('system:') && !(countsAccounts === true && own.startsWith('system:serviceaccount:'))) return false
  return !ignoreUsers.includes(name) && !groups.some((group) => ignoreGroups.includes(group))
}

const writeVerbs: ReadonlySet<string> = new Set(['create', 'update', 'patch', 'delete', 'deletecollection'])
const questionGroups: ReadonlySet<string> = new Set(['authorization.k8s.io', 'authentication.k8s.io'])
const bookkeeping: ReadonlySet<string> = new Set(['events', 'leases'])
const streams: ReadonlySet<string> = new Set(['exec', 'attach', 'portforward', 'proxy'])
