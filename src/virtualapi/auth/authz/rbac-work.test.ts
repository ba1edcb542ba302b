// The cost of decisions with the largest RBAC objects that tenants can store, counted in steps of a work budget.
import { expect } from 'chai'
import { clusterIdOf } from '#apimachinery/meta/index.ts'
import { WorkBudget } from '#apimachinery/work-budget/index.ts'
import type { UserInfo } from '#virtualapi/request/user-info.ts'
import type { Attributes } from '#virtualapi/request/authorizer.ts'
import { decide } from './decide.ts'
import type { RbacContext } from './granted-roles.ts'
import { heldRules, listRules } from './held-rules.ts'
import { LayeredPolicy } from './policy.ts'
import { RbacIndex, rbacResources } from './rbac-index.ts'
import { CompiledRoles } from './stored-role.ts'
import { uncoveredRules } from './escalation-check.ts'

const { signal } = new AbortController()

describe('the cost of RBAC', () => {
  it('is that of one grant for a binding that names a user 9,000 times, and of one rule for 9,000 like ones', async () => {
    const { context, role, bind } = tenantRoles({ steps: 1000 })
    role(
      'r',
      repeat(9000, () => rule('secrets')),
    )
    bind(
      'b',
      'r',
      repeat(9000, () => user('bob')),
    )
    const { roles, isComplete } = await heldRules(context, person('bob'), 'shop')
    expect(isComplete).to.equal(true)
    expect(roles.flatMap(({ rules }) => rules)).to.have.length(1)
    expect(await listRules(roles, context)).to.deep.include({ isCut: false })
  })

  it('is that of one grant for 9,000 bindings of one role, and for 3,000 like groups of a user', async () => {
    const { context, role, bind } = tenantRoles({ steps: 200_000 })
    role(
      'r',
      repeat(1000, (i) => rule(`r${i}`)),
    )
    for (let i = 0; i < 9000; i++) bind(`b${i}`, 'r', [user('bob')])
    const groups = repeat(3000, () => 'dev')
    expect(await decide(context, person('bob', ...groups), get('none'))).to.deep.equal({ allowed: false, reason: '' })
    expect((await decide(context, person('bob'), get('r999'))).reason).to.match(/^RBAC: allowed by ClusterRoleBinding/)
  })

  it('is linear in the groups of a user whose bindings name a missing role', async () => {
    const { context, bind } = tenantRoles({ steps: 200_000 })
    bind(
      'b',
      'none',
      repeat(3000, (i) => group(`g${i % 1000}`)),
    )
    const { reason } = await decide(context, person('eve', ...repeat(1000, (i) => `g${i}`)), get('pods'))
    expect(reason).to.equal('RBAC: clusterrole.rbac.authorization.k8s.io "none" not found')
  })

  it('names few of many missing roles', async () => {
    const { context, bind } = tenantRoles()
    for (let i = 0; i < 5000; i++) bind(`b${i}`, `none${i}`, [user('bob')])
    const { reason } = await decide(context, person('bob'), get('pods'))
    expect(reason.length).to.be.below(2000)
    expect(reason).to.contain('"none19" not found, 4980 more roles not found]')
  })

  it('is bounded for 1,000 roles of 1,000 rules each, different or not', async () => {
    for (const different of [true, false]) {
      const { context, role, bind } = tenantRoles()
      for (let i = 0; i < 1000; i++) {
        role(
          `r${i}`,
          repeat(1000, (k) => rule(`x${different ? i : ''}.${k}`)),
        )
        bind(`b${i}`, `r${i}`, [user('bob')])
      }
      const fresh = (): RbacContext => ({ ...context, work: new WorkBudget() })
      // More JSON than one request may have parsed is refused, and not half evaluated in silence.
      const { reason } = await decide(fresh(), person('bob'), get('none'))
      expect(reason).to.contain('too many or too large')
      const { roles, isComplete } = await heldRules(fresh(), person('bob'), '')
      expect(isComplete).to.equal(false)
      const { rules, isCut } = await listRules(roles, fresh())
      expect(rules).to.have.length(different ? 10_000 : 1000)
      expect(isCut).to.equal(different)
      expect(uncoveredRules(roles, [rule('other')], new WorkBudget())).to.have.length(1)
      // Enough is left to allow what the first roles allow.
      expect((await decide(fresh(), person('bob'), get(different ? 'x3.7' : 'x.7'))).allowed).to.equal(true)
    }
  })

  it('looks only at rules about the resource, and at those about many', async () => {
    const { context, role, bind } = tenantRoles({ steps: 300 })
    role('r', [...repeat(30_000, (i) => rule(`r${i}`)), rule(...repeat(50, (i) => `wide${i}`)), rule('*/scale')])
    bind('b', 'r', [user('bob')])
    for (const resource of ['r29999', 'wide49'])
      expect((await decide(context, person('bob'), get(resource))).allowed, resource).to.equal(true)
    const scale = get('deployments')
    if (scale.resource === undefined) throw new Error('no resource')
    const attributes = { ...scale, resource: { ...scale.resource, subresource: 'scale' } }
    expect((await decide(context, person('bob'), attributes)).allowed).to.equal(true)
    expect((await decide(context, person('bob'), get('none'))).allowed).to.equal(false)
  })

  it('compares 9,000 rules to be granted with 9,000 that are held in linear time', async () => {
    const { context, role, bind } = tenantRoles({ steps: 500_000 })
    const rules = repeat(9000, (i) => rule(`r${i}`))
    role('r', rules)
    bind('b', 'r', [user('bob')])
    const { roles } = await heldRules(context, person('bob'), '')
    expect(uncoveredRules(roles, rules, context.work)).to.deep.equal([])
    const [uncovered] = uncoveredRules(roles, [rule('other')], context.work)
    expect(uncovered).to.deep.equal(rule('other'))
  })

  it('counts a rule as not held if the work does not last to find it', async () => {
    const { context, role, bind } = tenantRoles({ steps: 2000 })
    role(
      'r',
      repeat(5000, (i) => ({ ...rule('pods'), resourceNames: [`n${i}`] })),
    )
    bind('b', 'r', [user('bob')])
    const { roles } = await heldRules(context, person('bob'), '')
    expect(uncoveredRules(roles, [{ ...rule('pods'), resourceNames: ['n4999'] }], context.work)).to.have.length(1)
  })

  it('keeps the compiled rules of few roles', () => {
    const compiled = new CompiledRoles()
    const { policy, role } = tenantRoles()
    const rules = repeat(1000, (i) => rule(`r${i}`))
    for (let i = 0; i < 1000; i++) {
      role(`r${i}`, rules)
      const stored = policy.roleOf('ClusterRole', `r${i}`, '')
      if (stored !== undefined) compiled.rulesOf(stored)
    }
    const kept = repeat(1000, (i) => policy.roleOf('ClusterRole', `r${i}`, '')?.compiled).filter(Boolean)
    expect(kept.length).to.be.within(100, 800)
  })
})

/** A policy with the roles and bindings that are added, and a context with a work budget of so many steps. */
function tenantRoles({ steps }: { steps?: number } = {}) {
  const policy = new LayeredPolicy(new RbacIndex())
  const work = new WorkBudget(steps === undefined ? {} : { steps })
  const context: RbacContext = { policy, compiled: new CompiledRoles(), work, signal }
  let revision = 0
  const put = (resource: string, name: string, object: Record<string, unknown>): void => {
    const json = JSON.stringify(object)
    const read = (): Record<string, unknown> => JSON.parse(json) as Record<string, unknown>
    policy.own.set({ resource, namespace: '', name }, ++revision, { bytes: json.length, inherits: false, read })
  }
  return {
    context,
    policy,
    role: (name: string, rules: readonly object[]) => put(rbacResources.clusterRoles, name, { rules }),
    bind: (name: string, roleName: string, subjects: readonly object[]) =>
      put(rbacResources.clusterRoleBindings, name, { roleRef: { kind: 'ClusterRole', name: roleName }, subjects }),
  }
}
function repeat<T>(length: number, item: (index: number) => T): T[] {
  return Array.from({ length }, (_, i) => item(i))
}
function rule(...resources: string[]) {
  return { verbs: ['get'], apiGroups: [''], resources }
}
function user(name: string): object {
  return { kind: 'User', name }
}
function group(name: string): object {
  return { kind: 'Group', name }
}
function person(name: string, ...groups: string[]): UserInfo {
  return { name, groups, extra: {}, realm: { kind: 'cluster', id: clusterIdOf('acme') } }
}
function get(resource: string): Attributes {
  return { verb: 'get', resource: { group: '', version: 'v1', resource, subresource: '', namespace: '', name: 'x' } }
}
