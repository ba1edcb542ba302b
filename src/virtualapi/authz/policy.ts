// What the RBAC objects of one logical cluster come to: its own ones, over those of the base layer, which are compiled once
// and shared by all.
import type { UserInfo } from '../authn/user-info.ts'
import type { PolicyRule } from './policy-rules.ts'
import { RbacIndex, rbacResources, type Grant, type RbacPlace } from './rbac-index.ts'

/** What RBAC says of users. Follows the logical cluster: whatever is asked of one answer, ask before you wait for anything. */
export interface Policy {
  /** Grants of this user in `namespace` (empty: at the cluster scope only). */
  grantsOf(user: UserInfo, namespace: string): Iterable<Grant>
  /** Undefined: there is no such role. */
  rulesOf(roleKind: string, roleName: string, namespace: string): readonly PolicyRule[] | undefined
}

export class LayeredPolicy implements Policy {
  readonly own = new RbacIndex()
  readonly #base: RbacIndex
  /** Of the base layer, what was changed or deleted here: `resource/namespace/name`. */
  readonly #hidden = new Set<string>()

  constructor(base: RbacIndex) {
    this.#base = base
  }

  /** Says whether what the base layer has at this place is what is there. */
  showBase(place: RbacPlace, isShown: boolean): void {
    if (isShown || this.#base.revisionOf(place) === undefined) this.#hidden.delete(keyText(place))
    else this.#hidden.add(keyText(place))
  }

  hasBase(place: RbacPlace): boolean {
    return this.#base.revisionOf(place) !== undefined
  }

  /** Of all objects of one resource, the base layer's among them; some twice. */
  places(resource: string): RbacPlace[] {
    return [...this.own.places(resource), ...this.#base.places(resource)]
  }

  *grantsOf(user: UserInfo, namespace: string): Generator<Grant> {
    for (const subject of subjectsOf(user)) {
      for (const grant of this.own.grantsOf(subject)) if (holdsIn(grant, namespace)) yield grant
      for (const grant of this.#base.grantsOf(subject)) {
        if (!holdsIn(grant, namespace)) continue
        if (this.#hidden.size === 0 || !this.#hidden.has(keyText(placeOfBinding(grant)))) yield grant
      }
    }
  }

  rulesOf(roleKind: string, roleName: string, namespace: string): readonly PolicyRule[] | undefined {
    if (roleKind !== 'Role' && roleKind !== 'ClusterRole') return undefined
    // A ClusterRoleBinding has no namespace and can't mean a Role.
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

function holdsIn(grant: Grant, namespace: string): boolean {
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
