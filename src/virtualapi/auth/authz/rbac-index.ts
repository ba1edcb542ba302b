// An index of RBAC objects by subject. Objects are added, replaced and removed one by one, so that a change of one
// object does not require recompiling all. All bindings that grant one role to one subject are one grant.
import { isJsonObject } from '#apimachinery/meta/index.ts'
import { StoredRole, type RbacSource } from './stored-role.ts'

export const rbacGroup = 'rbac.authorization.k8s.io'
/** The resources as in store keys. */
export const rbacResources = {
  clusterRoles: `clusterroles.${rbacGroup}`,
  roles: `roles.${rbacGroup}`,
  clusterRoleBindings: `clusterrolebindings.${rbacGroup}`,
  roleBindings: `rolebindings.${rbacGroup}`,
} as const

/** The grant of one binding to each of its subjects. */
export interface Binding {
  /** The namespace of a RoleBinding; empty for a ClusterRoleBinding. */
  readonly namespace: string
  readonly name: string
  readonly roleKind: string
  readonly roleName: string
  /** True for a ClusterRoleBinding that holds in descendants, too. */
  readonly inherits?: true
}

/** Key of an RBAC object within its logical cluster. */
export interface RbacPlace {
  /** A member of `rbacResources`. */
  readonly resource: string
  readonly namespace: string
  readonly name: string
}

interface Indexed {
  readonly place: RbacPlace
  /** Revision of the object. */
  readonly revision: number
  /** The role; absent for a binding. */
  readonly role?: StoredRole
  /** The binding; absent for a role. */
  readonly binding?: Binding
  /** Subjects of a binding; see `subjectKey`. */
  readonly subjects: readonly string[]
}

/** The bindings of one role to one subject: one, or several. */
type Bindings = Binding | Set<Binding>

export class RbacIndex {
  /** How many ClusterRoleBindings hold in descendants. */
  #inheriting = 0
  readonly #objects = new Map<string, Map<string, Indexed>>()
  /** The bindings by namespace and subject, then by role. */
  readonly #grants = new Map<string, Map<string, Bindings>>()

  /** Adds the object, or replaces its former version. */
  set(place: RbacPlace, revision: number, source: RbacSource): void {
    const { resource, namespace, name } = place
    let known = this.#objects.get(resource)
    if (known === undefined) this.#objects.set(resource, (known = new Map<string, Indexed>()))
    const former = known.get(`${namespace}/${name}`)
    known.set(`${namespace}/${name}`, { place, revision, ...this.#indexed(place, source) })
    this.#revokeAll(former)
  }

  /** True if a ClusterRoleBinding holds in descendants. */
  get hasInheriting(): boolean {
    return this.#inheriting > 0
  }

  /** Removes an object if it is in the index. */
  remove({ resource, namespace, name }: RbacPlace): void {
    const known = this.#objects.get(resource)
    this.#revokeAll(known?.get(`${namespace}/${name}`))
    known?.delete(`${namespace}/${name}`)
  }

  /** The revision of the object in the index; undefined if it is not there. */
  revisionOf({ resource, namespace, name }: RbacPlace): number | undefined {
    return this.#objects.get(resource)?.get(`${namespace}/${name}`)?.revision
  }

  /** The keys of all objects of a resource. */
  places(resource: string): RbacPlace[] {
    return [...(this.#objects.get(resource)?.values() ?? [])].map(({ place }) => place)
  }

  /** A role; undefined if it does not exist. */
  roleAt({ resource, namespace, name }: RbacPlace): StoredRole | undefined {
    return this.#objects.get(resource)?.get(`${namespace}/${name}`)?.role
  }

  /** The bindings in `namespace` (empty: the ClusterRoleBindings) that grant a role to `subject`, role by role. */
  *bindingsOf(subject: string, namespace: string): Generator<Iterable<Binding>> {
    for (const bindings of this.#grants.get(grantKey(namespace, subject))?.values() ?? [])
      yield bindings instanceof Set ? bindings : [bindings]
  }

  #indexed(place: RbacPlace, source: RbacSource): Pick<Indexed, 'role' | 'binding' | 'subjects'> {
    const { resource, namespace, name } = place
    if (resource === rbacResources.roles || resource === rbacResources.clusterRoles)
      return { role: new StoredRole(source), subjects: [] }
    const object = source.read()
    const { roleRef } = object
    if (!isJsonObject(roleRef)) return { subjects: [] }
    const binding: Binding = {
      namespace,
      name,
      roleKind: textOf(roleRef['kind']),
      roleName: textOf(roleRef['name']),
      ...(namespace === '' && source.inherits ? { inherits: true } : {}),
    }
    if (binding.inherits) this.#inheriting++
    const subjects = subjectsIn(namespace, object['subjects'])
    for (const subject of subjects) this.#grant(subject, binding)
    return { binding, subjects }
  }

  #grant(subject: string, binding: Binding): void {
    const key = grantKey(binding.namespace, subject)
    let roles = this.#grants.get(key)
    if (roles === undefined) this.#grants.set(key, (roles = new Map<string, Bindings>()))
    const role = roleKey(binding)
    const there = roles.get(role)
    if (there === undefined) roles.set(role, binding)
    else if (there instanceof Set) there.add(binding)
    else roles.set(role, new Set([there, binding]))
  }

  #revokeAll({ binding, subjects = [] }: Partial<Indexed> = {}): void {
    if (binding?.inherits) this.#inheriting--
    if (binding !== undefined) for (const subject of subjects) this.#revoke(subject, binding)
  }

  #revoke(subject: string, binding: Binding): void {
    const key = grantKey(binding.namespace, subject)
    const roles = this.#grants.get(key)
    const bindings = roles?.get(roleKey(binding))
    if (bindings instanceof Set && bindings.size > 1) bindings.delete(binding)
    else roles?.delete(roleKey(binding))
    if (roles?.size === 0) this.#grants.delete(key)
  }
}

/**
 * The key of a subject: `User/NAME`, `Group/NAME` or `ServiceAccount/NAME/NAMESPACE`; undefined for other kinds, which
 * are granted nothing.
 */
export function subjectKey(kind: string, name: string, namespace = ''): string | undefined {
  if (kind === 'User' || kind === 'Group') return `${kind}/${name}`
  return kind === 'ServiceAccount' && namespace !== '' ? `ServiceAccount/${name}/${namespace}` : undefined
}

function grantKey(namespace: string, subject: string): string {
  return `${namespace}/${subject}`
}

function roleKey({ roleKind, roleName }: Binding): string {
  return `${roleKind}/${roleName}`
}

function subjectsIn(namespace: string, subjects: unknown): string[] {
  if (!Array.isArray(subjects)) return []
  const keys = subjects.filter(isJsonObject).flatMap((subject) => {
    const name = textOf(subject['name'])
    // In a RoleBinding, a ServiceAccount without a namespace is in the namespace of the binding.
    const key = subjectKey(textOf(subject['kind']), name, textOf(subject['namespace']) || namespace)
    return key === undefined || name === '' ? [] : [key]
  })
  return [...new Set(keys)]
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : ''
}
