// The compiled RBAC objects of one logical cluster: its own, layered over the bootstrap objects, which are compiled once and
// shared by all logical clusters.
import type { UserInfo } from '../authn/user-info.ts'
import type { PolicyRule } from './policy-rules.ts'
import { RbacIndex, rbacResources, type Grant, type RbacPlace } from './rbac-index.ts'

/** Grants and roles of a logical cluster. It is updated in place: finish reading before the next await. */
export interface Policy {
  /** The grants of this user in `namespace` (empty: at the cluster scope only). */
  grantsOf(user: UserInfo, namespace: string): Iterable<Grant>
  /** The rules of a role; undefined if it does not exist. */
  rulesOf(roleKind: string, roleName: string, namespace: string): readonly PolicyRule[] | undefined
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

  /** The keys of all objects of a resource, with those of bootstrap objects; may contain duplicates. */
  places(resource: string): RbacPlace[] {
    return [...this.own.places(resource), ...this.#base.places(resource)]
  }

  *grantsOf(user: UserInfo, namespace: string): Generator<Grant> {
    for (const subject of subjectsOf(user)) {
      for (const grant of this.own.grantsOf(subject)) if (appliesIn(grant, namespace)) yield grant
      for (const grant of this.#base.grantsOf(subject)) {
        if (!appliesIn(grant, namespace)) continue
        if (this.#hidden.size === 0 || !this.#hidden.has(keyText(placeOfBinding(grant)))) yield grant
      }
    }
  }

  rulesOf(roleKind: string, roleName: string, namespace: string): readonly PolicyRule[] | undefined {
    if (roleKind !== 'Role' && roleKind !== 'ClusterRole') return undefined
    // A ClusterRoleBinding cannot refer to a Role.
    if (roleKind === 'Role' && namespace === '') return undefined
    const place =
      roleKind === 'Role'
        ? { resource: rbacResources.roles, namespace, name: roleName }
        : { resource: rbacResources.clusterRoles, namespace: '', name: roleName }
    const own = this.own.rulesOf(place)
    if (own !== undefined || (this.#hidden.size > 0 && this.#hidden.has(keyText(place)))) return own
    return this.#base.rulesOf(place)
  }
}

function appliesIn(grant: Grant, namespace: string): boolean {
  return grant.namespace === '' || (namespace !== '' && grant.namespace === namespace)
}

function placeOfBinding({ namespace, binding }: Grant): RbacPlace {
  const resource = namespace === '' ? rbacResources.clusterRoleBindings : rbacResources.roleBindings
  return { resource, namespace, name: binding }
}

function subjectsOf(user: UserInfo): string[] {
  return [`User/${user.name}`, ...user.groups.map((group) => `Group/${group}`)]
}

function keyText({ resource, namespace, name }: RbacPlace): string {
  return `${resource}/${namespace}/${name}`
}
