// The RBAC objects of one logical cluster: its own, layered over the bootstrap objects, which are compiled once and
// shared by all logical clusters.
import type { ClusterName } from '#apimachinery/meta/index.ts'
import type { UserInfo } from '#virtualapi/request/user-info.ts'
import { RbacIndex, rbacResources, subjectKey, type Binding, type RbacPlace } from './rbac-index.ts'
import type { StoredRole } from './stored-role.ts'

/** A role that is granted to a user, and one of the bindings that grant it. */
export interface Grant {
  readonly binding: Binding
  /** `User/NAME`, `Group/NAME` or `ServiceAccount/NAME/NAMESPACE`. */
  readonly subject: string
  /** The ancestor that has the binding; absent for a binding of the logical cluster itself. */
  readonly from?: ClusterName
}

/** Grants and roles of a logical cluster. It is updated in place: finish reading before the next await. */
export interface Policy {
  /** The roles granted to this user in `namespace` (empty: at the cluster scope only), each once. */
  grantsOf(user: UserInfo, namespace: string): Iterable<Grant>
  /** A role; undefined if it does not exist. */
  roleOf(roleKind: string, roleName: string, namespace: string): StoredRole | undefined
  /** The role of a grant that `grantsOf` returned; undefined if it does not exist. */
  roleOfGrant(grant: Grant): StoredRole | undefined
}

export class LayeredPolicy implements Policy {
  readonly own = new RbacIndex()
  readonly #base: RbacIndex
  /** Bootstrap objects that were changed or deleted in this logical cluster: `resource/namespace/name`. */
  readonly #hidden = new Set<string>()

  constructor(base: RbacIndex) {
    this.#base = base
  }

  /** Sets whether the bootstrap object of this key is unchanged in this logical cluster. */
  showBase(place: RbacPlace, isShown: boolean): void {
    if (isShown || this.#base.revisionOf(place) === undefined) this.#hidden.delete(keyText(place))
    else this.#hidden.add(keyText(place))
  }

  hasBase(place: RbacPlace): boolean {
    return this.#base.revisionOf(place) !== undefined
  }

  /** The keys of all objects of a resource, including bootstrap objects; may contain duplicates. */
  places(resource: string): RbacPlace[] {
    return [...this.own.places(resource), ...this.#base.places(resource)]
  }

  *grantsOf(user: UserInfo, namespace: string): Generator<Grant> {
    const given = new Set<string>()
    // ClusterRoleBindings come first, as in kube-apiserver.
    for (const scope of namespace === '' ? [''] : ['', namespace])
      for (const subject of subjectsOf(user))
        for (const binding of this.#bindingsOf(subject, scope)) {
          const role = roleText(binding)
          if (given.has(role)) continue
          given.add(role)
          yield { binding, subject }
        }
  }

  /** The roles granted to this user here by ClusterRoleBindings that hold in descendants, too. */
  *inheritedGrantsOf(user: UserInfo): Generator<Grant> {
    if (!this.own.hasInheriting) return
    const given = new Set<string>()
    for (const subject of subjectsOf(user))
      for (const bindings of this.own.bindingsOf(subject, ''))
        for (const binding of bindings) {
          if (binding.inherits !== true || given.has(roleText(binding))) continue
          given.add(roleText(binding))
          yield { binding, subject }
          break
        }
  }

  roleOfGrant({ binding: { roleKind, roleName, namespace } }: Grant): StoredRole | undefined {
    return this.roleOf(roleKind, roleName, namespace)
  }

  roleOf(roleKind: string, roleName: string, namespace: string): StoredRole | undefined {
    if (roleKind !== 'Role' && roleKind !== 'ClusterRole') return undefined
    // A ClusterRoleBinding cannot refer to a Role.
    if (roleKind === 'Role' && namespace === '') return undefined
    const place =
      roleKind === 'Role'
        ? { resource: rbacResources.roles, namespace, name: roleName }
        : { resource: rbacResources.clusterRoles, namespace: '', name: roleName }
    const own = this.own.roleAt(place)
    if (own !== undefined || (this.#hidden.size > 0 && this.#hidden.has(keyText(place)))) return own
    return this.#base.roleAt(place)
  }

  /** One binding for each role that is granted to `subject` in `scope`. */
  *#bindingsOf(subject: string, scope: string): Generator<Binding> {
    for (const [binding] of this.own.bindingsOf(subject, scope)) if (binding !== undefined) yield binding
    for (const bindings of this.#base.bindingsOf(subject, scope))
      for (const binding of bindings) {
        if (this.#hidden.size > 0 && this.#hidden.has(keyText(placeOfBinding(binding)))) continue
        yield binding
        break
      }
  }
}

function placeOfBinding({ namespace, name }: Binding): RbacPlace {
  const resource = namespace === '' ? rbacResources.clusterRoleBindings : rbacResources.roleBindings
  return { resource, namespace, name }
}

/** Identifies the role of a binding. A ClusterRole is the same role in bindings of all namespaces. */
function roleText({ namespace, roleKind, roleName }: Binding): string {
  return roleKind === 'ClusterRole' ? roleName : `${namespace}/${roleKind}/${roleName}`
}

const accountPrefix = 'system:serviceaccount:'

function* subjectsOf({ name, groups }: UserInfo): Generator<string> {
  yield `User/${name}`
  if (name.startsWith(accountPrefix)) {
    const colon = name.lastIndexOf(':')
    const key = subjectKey('ServiceAccount', name.slice(colon + 1), name.slice(accountPrefix.length, colon))
    if (key !== undefined) yield key
  }
  for (const group of new Set(groups)) yield `Group/${group}`
}

function keyText({ resource, namespace, name }: RbacPlace): string {
  return `${resource}/${namespace}/${name}`
}
