// The escalation check on writes of RBAC objects: a user may not grant rights that the user does not hold.
import { canonicalJson } from '#apimachinery/json/index.ts'
import { goQuote } from '#apimachinery/text/index.ts'
import { isJsonObject, type KubeObject } from '#apimachinery/meta/index.ts'
import { forbidden, notFound } from '#apimachinery/status/index.ts'
import type { WorkBudget } from '#apimachinery/work-budget/index.ts'
import type { UserInfo } from '#virtualapi/request/user-info.ts'
import type { LogicalCluster } from '#virtualapi/request/logical-cluster.ts'
import { CompiledRules } from './compiled-rules.ts'
import { allRules, type RbacAuthorizer } from './create-authorizer.ts'
import { rbacGroup } from './rbac-index.ts'
import { compactRules, parseRules, quotedList, ruleText, type PolicyRule, atomsOf } from './policy-rules.ts'

export interface RbacWrite {
  readonly verb: 'create' | 'update' | 'patch'
  readonly object: KubeObject
  /** The current object; absent for a create. */
  readonly old?: KubeObject
  readonly user: UserInfo
  readonly cluster: LogicalCluster
  /** The remaining cost of the request. */
  readonly work: WorkBudget
  readonly signal: AbortSignal
}

/** Rejects with 403 if `user` would grant more than they hold. Does not change the object. */
export type RbacWriteCheck = (write: RbacWrite) => Promise<void>

const resourceOfKind: Readonly<Record<string, string>> = {
  Role: 'roles',
  ClusterRole: 'clusterroles',
  RoleBinding: 'rolebindings',
  ClusterRoleBinding: 'clusterrolebindings',
}

/** Creates the check. Call it for creates and updates in group rbac.authorization.k8s.io, once the object is valid. */
export function createRbacWriteCheck(authorizer: RbacAuthorizer): RbacWriteCheck {
  return async (write) => {
    const resource = resourceOfKind[write.object.kind]
    if (resource === undefined || authorizer.isSuperuser(write.user, write.cluster)) return
    if (write.old !== undefined && isUnchanged(write.object, write.old)) return
    if (resource === 'roles' || resource === 'clusterroles') await checkRole(authorizer, resource, write)
    else await checkBinding(authorizer, resource, write)
  }
}

async function checkRole(authorizer: RbacAuthorizer, resource: string, write: RbacWrite): Promise<void> {
  const { object, old, user, work } = write
  const { name = '', namespace = '' } = object.metadata
  if (await may(authorizer, write, 'escalate', { resource, namespace, name })) return
  const refuse = (message: string): never => {
    throw forbidden({ group: rbacGroup, resource }, name, message)
  }
  const { rules } = new CompiledRules(parseRules(object['rules']))
  const missing = await escalationCheck(authorizer, rules, namespace, write)
  if (missing !== undefined) refuse(missing)
  // An aggregation rule also includes future roles, so only cluster-admins may set one or write a role that has one.
  if (resource === 'clusterroles' && (hasAggregation(object) || (old !== undefined && hasAggregation(old)))) {
    const held = await authorizer.rulesFor(user, '', write)
    if (uncoveredRules(held.roles, allRules, work).length > 0)
      refuse('must have cluster-admin privileges to use the aggregationRule')
  }
}

async function checkBinding(authorizer: RbacAuthorizer, resource: string, write: RbacWrite): Promise<void> {
  const { object, cluster, signal } = write
  const { name = '', namespace = '' } = object.metadata
  const { roleRef } = object
  if (!isJsonObject(roleRef)) return
  const { kind, name: roleName } = roleRef
  if (typeof kind !== 'string' || typeof roleName !== 'string') return
  const roleResource = resourceOfKind[kind] ?? ''
  if (await may(authorizer, write, 'bind', { resource: roleResource, namespace, name: roleName })) return
  const rules = await authorizer.roleRules({ kind, name: roleName, namespace }, cluster, signal)
  if (rules === undefined) throw notFound({ group: rbacGroup, resource }, roleName)
  const missing = await escalationCheck(authorizer, rules, namespace, write)
  if (missing !== undefined) throw forbidden({ group: rbacGroup, resource }, name, missing)
}

/** The message about the `rules` that `user` lacks in `namespace`; undefined if they hold all. */
export async function escalationCheck(
  authorizer: RbacAuthorizer,
  rules: readonly PolicyRule[],
  namespace: string,
  write: Pick<RbacWrite, 'user' | 'cluster' | 'work' | 'signal'>,
): Promise<string | undefined> {
  const { user, work } = write
  const held = await authorizer.rulesFor(user, namespace, write)
  const missing = uncoveredRules(held.roles, rules, work)
  if (missing.length === 0) return undefined
  const texts = [...new Set(compactRules(missing).map(ruleText))].sort()
  const who = `user ${goQuote(user.name)} (groups=${quotedList(user.groups)})`
  return `${who} is attempting to grant RBAC permissions not currently held:\n${texts.join('\n')}`
}

async function may(
  authorizer: RbacAuthorizer,
  write: RbacWrite,
  verb: 'bind' | 'escalate',
  role: { readonly resource: string; readonly namespace: string; readonly name: string },
): Promise<boolean> {
  const resource = { group: rbacGroup, version: '*', subresource: '', ...role }
  return (await authorizer.authorize(write.user, { verb, resource }, write)).allowed
}

function hasAggregation(object: KubeObject): boolean {
  const rule = object['aggregationRule']
  if (!isJsonObject(rule)) return false
  const selectors = rule['clusterRoleSelectors']
  return Array.isArray(selectors) && selectors.length > 0
}

/**
 * True if the objects differ only in fields that the garbage collector writes: it must be able to delete objects with
 * rights that it may not grant.
 */
function isUnchanged(object: KubeObject, old: KubeObject): boolean {
  const relevant = ({ metadata, ...rest }: KubeObject): string => {
    const {
      resourceVersion: _1,
      generation: _2,
      managedFields: _3,
      finalizers: _4,
      ownerReferences: _5,
      ...others
    } = metadata
    return canonicalJson({ ...rest, metadata: others })
  }
  return relevant(object) === relevant(old)
}

/**
 * How many uncovered atomic rules are reported: a rule with four long lists has more atomic rules than memory can hold.
 */
const maxUncovered = 1000
/** The cost of making an atomic rule, in steps of the work budget. */
const atomSteps = 5

/**
 * The atomic rules of `wanted` that no rule of `held` allows, at most 1000; empty if all are covered. A rule counts
 * as uncovered if `work` runs out before it is decided.
 */
export function uncoveredRules(
  held: readonly CompiledRules[],
  wanted: readonly PolicyRule[],
  work: WorkBudget,
): PolicyRule[] {
  const uncovered: PolicyRule[] = []
  for (const rule of wanted) {
    // A rule is not split if one held rule covers all of it.
    if (held.some((role) => role.coversWhole(rule, work) === true)) continue
    for (const atom of atomsOf(rule)) {
      if (!work.trySpend(atomSteps)) return [...uncovered, rule]
      if (held.some((role) => role.covers(atom, work) === true)) continue
      if (!work.trySpend(0)) return [...uncovered, rule]
      uncovered.push(atom)
      if (uncovered.length >= maxUncovered) return uncovered
    }
  }
  return uncovered
}
