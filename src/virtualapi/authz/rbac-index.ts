// An index of compiled RBAC objects by subject. Objects are added, replaced and removed one by one, so that a change does not
// cost a recompilation of all.
import { isJsonObject } from '../../apimachinery/meta/index.ts'
import { parseRules, type PolicyRule } from './policy-rules.ts'

export const rbacGroup = 'rbac.authorization.k8s.io'
/** The resources as in store keys. */
export const rbacResources = {
  clusterRoles: `clusterroles.${rbacGroup}`,
  roles: `roles.${rbacGroup}`,
  clusterRoleBindings: `clusterrolebindings.${rbacGroup}`,
  roleBindings: `rolebindings.${rbacGroup}`,
} as const

/** One subject of one binding. */
export interface Grant {
  /** Empty: a ClusterRoleBinding. */
  readonly namespace: string
  readonly binding: string
  readonly roleKind: string
  readonly roleName: string
  readonly subjectText: string
}

/** Key of an RBAC object within its logical cluster. */
export interface RbacPlace {
  /** One of `rbacResources`. */
  readonly resource: string
  readonly namespace: string
  readonly name: string
}

interface Compiled {
  readonly place: RbacPlace
  /** Revision of the object it was compiled from. */
  readonly revision: number
  /** Rules of a role; empty for a binding. */
  readonly rules: readonly PolicyRule[]
  /** Subjects of a binding: keys of `#grants`. */
  readonly subjects: readonly string[]
}

export class RbacIndex {
  readonly #objects = new Map<string, Map<string, Compiled>>()
  /** By subject; each list is sorted by namespace and binding, so ClusterRoleBindings come first. */
  readonly #grants = new Map<string, Grant[]>()

  /** Compiles the object and adds it, or replaces the former one. */
  set(place: RbacPlace, revision: number, object: Readonly<Record<string, unknown>>): void {
    this.remove(place)
    const { resource, namespace, name } = place
    const isRole = resource === rbacResources.roles || resource === rbacResources.clusterRoles
    const grants = isRole ? [] : grantsIn(namespace, name, object)
    for (const [subject, grant] of grants) this.#grant(subject, grant)
    const rules = isRole ? parseRules(object['rules']) : []
    const subjects = [...new Set(grants.map(([subject]) => subject))]
    let known = this.#objects.get(resource)
    if (known === undefined) this.#objects.set(resource, (known = new Map<string, Compiled>()))
    known.set(`${namespace}/${name}`, { place, revision, rules, subjects })
  }

  /** Removes an object if it is in the index. */
  remove({ resource, namespace, name }: RbacPlace): void {
    const known = this.#objects.get(resource)
    for (const subject of known?.get(`${namespace}/${name}`)?.subjects ?? []) this.#revoke(subject, namespace, name)
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

  /** The rules of a role; undefined if it does not exist. */
  rulesOf({ resource, namespace, name }: RbacPlace): readonly PolicyRule[] | undefined {
    return this.#objects.get(resource)?.get(`${namespace}/${name}`)?.rules
  }

  /** The grants of a subject: `User/NAME` or `Group/NAME`. */
  grantsOf(subject: string): readonly Grant[] {
    return this.#grants.get(subject) ?? []
  }

  #grant(subject: string, grant: Grant): void {
    const list = this.#grants.get(subject)
    if (list === undefined) this.#grants.set(subject, [grant])
    else list.splice(firstAfter(list, grant.namespace, grant.binding), 0, grant)
  }

  #revoke(subject: string, namespace: string, binding: string): void {
    const list = this.#grants.get(subject)
    if (list === undefined) return
    const end = firstAfter(list, namespace, binding)
    let from = end
    while (list[from - 1]?.binding === binding && list[from - 1]?.namespace === namespace) from--
    list.splice(from, end - from)
    if (list.length === 0) this.#grants.delete(subject)
  }
}

/** Index of the first grant after those of the binding. */
function firstAfter(list: readonly Grant[], namespace: string, binding: string): number {
  let low = 0
  let high = list.length
  while (low < high) {
    const middle = (low + high) >>> 1
    const grant = list[middle] as Grant
    const isAfter = grant.namespace === namespace ? grant.binding > binding : grant.namespace > namespace
    if (isAfter) high = middle
    else low = middle + 1
  }
  return low
}

function grantsIn(namespace: string, binding: string, object: Readonly<Record<string, unknown>>): [string, Grant][] {
  const { roleRef, subjects } = object
  if (!isJsonObject(roleRef) || !Array.isArray(subjects)) return []
  const [roleKind, roleName] = [textOf(roleRef['kind']), textOf(roleRef['name'])]
  return subjects.filter(isJsonObject).flatMap((subject): [string, Grant][] => {
    const [kind, name] = [textOf(subject['kind']), textOf(subject['name'])]
    // In a RoleBinding, a ServiceAccount without a namespace is in that of the binding.
    const accountNamespace = textOf(subject['namespace']) || namespace
    const key = subjectKey(kind, name, accountNamespace)
    if (key === undefined || name === '') return []
    const subjectText = kind === 'ServiceAccount' ? `ServiceAccount "${name}/${accountNamespace}"` : `${kind} "${name}"`
    return [[key, { namespace, binding, roleKind, roleName, subjectText }]]
  })
}

function subjectKey(kind: string, name: string, namespace: string): string | undefined {
  if (kind === 'User' || kind === 'Group') return `${kind}/${name}`
  return kind === 'ServiceAccount' && namespace !== '' ? `User/system:serviceaccount:${namespace}:${name}` : undefined
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : ''
}
