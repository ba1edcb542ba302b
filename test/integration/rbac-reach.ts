// The rights of a ServiceAccount of rendered manifests, and the other accounts that it can become with them: a graph,
// followed to its end.
import type { KubeObject } from '#apimachinery/meta/index.ts'

interface Rule {
  readonly apiGroups?: readonly string[]
  readonly resources?: readonly string[]
  readonly resourceNames?: readonly string[]
  readonly nonResourceURLs?: readonly string[]
  readonly verbs: readonly string[]
}
interface Binding extends KubeObject {
  readonly roleRef: { readonly kind: string; readonly name: string }
  readonly subjects?: readonly { readonly kind: string; readonly name: string; readonly namespace?: string }[]
}

/** One right: a verb on a resource (`GROUP/RESOURCE`), perhaps of one name, in a namespace or everywhere (`*`). */
export interface Right {
  readonly verb: string
  readonly resource: string
  readonly name: string
  readonly namespace: string
}

export interface Reach {
  /** Everything that it may do, as itself or as what it can become: `VERB RESOURCE[/NAME] in NAMESPACE`, sorted. */
  readonly rights: readonly string[]
  /** The other ServiceAccounts that it can become, sorted: `NAMESPACE/NAME`. */
  readonly becomes: readonly string[]
  /** Why it can become an admin of the host, or anybody in it; empty if it cannot. */
  readonly admin: readonly string[]
}

const writes = ['create', 'update', 'patch', '*']
const running = [
  '/pods',
  'apps/deployments',
  'apps/statefulsets',
  'apps/daemonsets',
  'apps/replicasets',
  'batch/jobs',
  'batch/cronjobs',
  '/replicationcontrollers',
  '/podtemplates',
]
const entering = ['/pods/exec', '/pods/attach', '/pods/ephemeralcontainers', '/pods/proxy', '/pods/portforward']

/** The ServiceAccounts that a right makes of its holder: all of a namespace, one, or (`*`) any of the host. */
function becomesBy({ verb, resource, name, namespace }: Right): { namespace: string; name: string } | undefined {
  const makesToken = resource === '/secrets' && ['create', '*'].includes(verb)
  const asksToken = resource === '/serviceaccounts/token' && ['create', '*'].includes(verb)
  const runs = running.includes(resource) && writes.includes(verb)
  const enters = entering.includes(resource) && [...writes, 'get'].includes(verb)
  if (makesToken || runs || enters) return { namespace, name: '*' }
  if (asksToken) return { namespace, name: name === '' ? '*' : name }
  return verb === 'impersonate' && resource === '/serviceaccounts'
    ? { namespace, name: name === '' ? '*' : name }
    : undefined
}

/** Rights that lead to all others, whatever else there is in the host. */
function adminBy({ verb, resource, namespace, name }: Right): boolean {
  const [group = '', kind = ''] = resource.split('/')
  if (verb === '*' && (group === '*' || kind === '*')) return true
  if (['bind', 'escalate'].includes(verb)) return true
  if (verb === 'impersonate' && ['/users', '/groups', '/uids'].includes(resource)) return true
  if (group === 'rbac.authorization.k8s.io' && writes.includes(verb)) return true
  if (group === 'certificates.k8s.io' && ['approve', 'sign', ...writes].includes(verb)) return true
  if (group === 'admissionregistration.k8s.io' && writes.includes(verb)) return true
  if (resource === '/nodes/proxy' || (resource === '/persistentvolumes' && writes.includes(verb))) return true
  if (group === 'apiregistration.k8s.io' && writes.includes(verb) && name === '') return true
  const { namespace: where } = becomesBy({ verb, resource, namespace, name }) ?? {}
  return where === '*' || where === 'kube-system'
}

/**
 * The reach of each ServiceAccount among the objects, by `NAMESPACE/NAME`. Bindings of groups count for all
 * ServiceAccounts.
 */
export function reachOf(objects: readonly KubeObject[]): ReadonlyMap<string, Reach> {
  const accounts = objects
    .filter(({ kind }) => kind === 'ServiceAccount')
    .map(({ metadata }) => `${metadata.namespace ?? ''}/${metadata.name ?? ''}`)
  const direct = new Map(accounts.map((account) => [account, rightsOf(account, objects)]))
  return new Map(accounts.map((account) => [account, follow(account, direct)]))
}

function follow(account: string, direct: ReadonlyMap<string, readonly Right[]>): Reach {
  const seen = new Set([account])
  const waiting = [account]
  const rights = new Set<string>()
  const admin = new Set<string>()
  for (let now = waiting.pop(); now !== undefined; now = waiting.pop())
    for (const right of direct.get(now) ?? []) {
      rights.add(textOf(right))
      if (adminBy(right)) admin.add(textOf(right))
      const next = becomesBy(right)
      for (const other of direct.keys()) {
        const [namespace, name] = other.split('/')
        const isReached =
          next !== undefined &&
          (next.namespace === '*' || next.namespace === namespace) &&
          (next.name === '*' || next.name === name)
        if (!isReached || seen.has(other)) continue
        seen.add(other)
        waiting.push(other)
      }
    }
  seen.delete(account)
  return { rights: [...rights].sort(), becomes: [...seen].sort(), admin: [...admin].sort() }
}

function textOf({ verb, resource, name, namespace }: Right): string {
  return `${verb} ${resource}${name && ` ${name}`} in ${namespace}`
}

function rightsOf(account: string, objects: readonly KubeObject[]): readonly Right[] {
  const [namespace = '', name = ''] = account.split('/')
  const groups = ['system:serviceaccounts', `system:serviceaccounts:${namespace}`, 'system:authenticated']
  const isMeant = (binding: Binding): boolean =>
    (binding.subjects ?? []).some(
      (subject) =>
        (subject.kind === 'ServiceAccount' && subject.name === name && subject.namespace === namespace) ||
        (subject.kind === 'User' && subject.name === `system:serviceaccount:${namespace}:${name}`) ||
        (subject.kind === 'Group' && groups.includes(subject.name)),
    )
  return objects
    .filter(({ kind }) => kind === 'RoleBinding' || kind === 'ClusterRoleBinding')
    .map((object) => object as Binding)
    .filter(isMeant)
    .flatMap((binding) => {
      const where = binding.kind === 'ClusterRoleBinding' ? '*' : (binding.metadata.namespace ?? '')
      return rulesOf(binding, objects).flatMap((rule) => rightsIn(rule, where))
    })
}

function rulesOf({ roleRef, metadata }: Binding, objects: readonly KubeObject[]): readonly Rule[] {
  const role = objects.find(
    (object) =>
      object.kind === roleRef.kind &&
      object.metadata.name === roleRef.name &&
      (roleRef.kind === 'ClusterRole' || object.metadata.namespace === metadata.namespace),
  )
  // A role of the host itself, by its name.
  if (role === undefined) return [{ apiGroups: ['role of the host'], resources: [roleRef.name], verbs: ['use'] }]
  return (role['rules'] ?? []) as unknown as Rule[]
}

function rightsIn({ apiGroups = [], resources = [], resourceNames = [''], verbs }: Rule, namespace: string): Right[] {
  return apiGroups.flatMap((group) =>
    resources.flatMap((resource) =>
      verbs.flatMap((verb) =>
        // A right with names is one for these names; a create is one by server-side apply, which names what it makes.
        resourceNames.map((name) => ({ verb, resource: `${group}/${resource}`, name, namespace })),
      ),
    ),
  )
}
