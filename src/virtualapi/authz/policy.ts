// The RBAC objects of a logical cluster, arranged for the question "what may this user do?". Immutable; the objects of
// the base layer are arranged once and shared by all logical clusters that have not touched them.
import { isJsonObject } from '../../apimachinery/meta/index.ts'
import type { UserInfo } from '../authn/user-info.ts'
import { parseRules, type PolicyRule } from './policy-rules.ts'

export const rbacGroup = 'rbac.authorization.k8s.io'
/** As in keys of objects. */
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

export interface RbacObjects {
  /** Key: `namespace/name`, the namespace empty for ClusterRoles. */
  readonly roles: ReadonlyMap<string, readonly PolicyRule[]>
  /** Key: see subjectKeys. */
  readonly grants: ReadonlyMap<string, readonly Grant[]>
}

/** What can be asked of one or more layers of RBAC objects; of roles with one name the first layer's counts. */
export interface Policy {
  /** Grants of this user in `namespace` (empty: at the cluster scope only). */
  grantsOf(user: UserInfo, namespace: string): Iterable<Grant>
  /** Undefined: there is no such role. */
  rulesOf(roleKind: string, roleName: string, namespace: string): readonly PolicyRule[] | undefined
}

export interface RbacSource {
  readonly resource: string
  readonly namespace: string
  readonly name: string
  readonly object: Readonly<Record<string, unknown>>
}

/** Arranges Roles, ClusterRoles and their bindings. */
export function arrangeRbac(sources: Iterable<RbacSource>): RbacObjects {
  const roles = new Map<string, readonly PolicyRule[]>()
  const grants = new Map<string, Grant[]>()
  for (const { resource, namespace, name, object } of sources) {
    if (resource === rbacResources.roles || resource === rbacResources.clusterRoles) {
      roles.set(`${namespace}/${name}`, parseRules(object['rules']))
    } else {
      for (const [key, grant] of grantsIn(namespace, name, object)) {
        const list = grants.get(key)
        if (list === undefined) grants.set(key, [grant])
        else list.push(grant)
      }
    }
  }
  return { roles, grants }
}

export function policyOf(layers: readonly RbacObjects[]): Policy {
  return {
    *grantsOf(user, namespace) {
      for (const key of subjectKeys(user)) {
        for (const layer of layers) {
          for (const grant of layer.grants.get(key) ?? []) {
            if (grant.namespace === '' || (namespace !== '' && grant.namespace === namespace)) yield grant
          }
        }
      }
    },
    rulesOf: (roleKind, roleName, namespace) => {
      if (roleKind !== 'Role' && roleKind !== 'ClusterRole') return undefined
      // A ClusterRoleBinding has no namespace and can't mean a Role.
      if (roleKind === 'Role' && namespace === '') return undefined
      const key = `${roleKind === 'Role' ? namespace : ''}/${roleName}`
      return layers.find((layer) => layer.roles.has(key))?.roles.get(key)
    },
  }
}

function subjectKeys(user: UserInfo): string[] {
  return [`User/${user.name}`, ...user.groups.map((group) => `Group/${group}`)]
}

function grantsIn(namespace: string, binding: string, object: Readonly<Record<string, unknown>>): [string, Grant][] {
  const { roleRef, subjects } = object
  if (!isJsonObject(roleRef) || !Array.isArray(subjects)) return []
  const [roleKind, roleName] = [textOf(roleRef['kind']), textOf(roleRef['name'])]
  return subjects.filter(isJsonObject).flatMap((subject): [string, Grant][] => {
    const [kind, name] = [textOf(subject['kind']), textOf(subject['name'])]
    // In a RoleBinding a ServiceAccount without namespace is of the binding's own.
    const home = textOf(subject['namespace']) || namespace
    const key = subjectKey(kind, name, home)
    if (key === undefined || name === '') return []
    const subjectText = kind === 'ServiceAccount' ? `ServiceAccount "${name}/${home}"` : `${kind} "${name}"`
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
