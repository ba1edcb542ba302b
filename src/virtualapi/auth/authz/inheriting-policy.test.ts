import { expect } from 'chai'
import { randomUUID } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { clusterIdOf, type ClusterName, type KubeObject } from '#apimachinery/meta/index.ts'
import { WorkBudget } from '#apimachinery/work-budget/index.ts'
import { createWatchCache, type WatchCache } from '#store/watch-cache/index.ts'
import { openSqliteStore } from '#store/sqlite/index.ts'
import { belowOf } from '#virtualapi/auth/authn/ancestor-names.ts'
import { createBaseLayer } from '#virtualapi/catalog/bootstrap/index.ts'
import { readFacts, stampRevision } from '#virtualapi/kinds/resources/object-bytes.ts'
import type { Attributes } from '#virtualapi/request/authorizer.ts'
import type { LogicalCluster } from '#virtualapi/request/logical-cluster.ts'
import type { UserInfo } from '#virtualapi/request/user-info.ts'
import { createAuthorizer, type RbacAuthorizer } from './create-authorizer.ts'
import { createRbacWriteCheck } from './escalation-check.ts'

const signal = new AbortController().signal
const rbac = 'rbac.authorization.k8s.io'
const top = logicalCluster('top')
const acme = logicalCluster('acme', 'top')
const dev = logicalCluster('dev', 'acme')
const test = logicalCluster('test', 'acme')

describe('inherited roles', () => {
  let stack: AsyncDisposableStack
  let watchCache: WatchCache
  let authorizer: RbacAuthorizer
  const known = new Map<string, LogicalCluster>()
  before(async () => {
    stack = new AsyncDisposableStack()
    const dir = await mkdtemp(join(tmpdir(), 'kcp-authz-'))
    stack.defer(() => rm(dir, { recursive: true, force: true }))
    const store = stack.use(await openSqliteStore({ file: join(dir, 'store.db') }))
    const baseLayer = createBaseLayer({ directory: { byId: () => acme }, rootCa: '', frontProxyCa: () => '' })
    watchCache = stack.use(await createWatchCache(store, { stamp: stampRevision, readFacts, baseLayer, signal }))
    authorizer = createAuthorizer({ watchCache, directory: { byName: (name) => known.get(name) } })
    await put(top, binding('platform', 'view', [user('root-auditor')], true))
    await put(acme, binding('leads', 'edit', [user('alice'), account('default', 'ci')], true))
    await put(acme, binding('not-below', 'edit', [user('bob')]))
    await put(acme, role('configs', ['configmaps'], true), role('hidden', ['configmaps']))
    await put(acme, binding('masters', 'cluster-admin', [{ kind: 'Group', name: 'system:masters' }]))
    await put(dev, binding('of-alice', 'view', [user('cluster:acme:alice')]))
    await put(test, binding('up', 'cluster-admin', [user('alice')], true))
  })
  beforeEach(() => {
    known.clear()
    for (const cluster of [top, acme, dev, test]) known.set(cluster.name, cluster)
  })
  after(() => stack.disposeAsync())

  async function put(cluster: LogicalCluster, ...objects: KubeObject[]): Promise<void> {
    const there = await watchCache.cluster(cluster.id, { signal })
    for (const { metadata, ...rest } of objects) {
      const key = { resource: `${rest.kind.toLowerCase()}s.${rbac}`, namespace: '', name: metadata.name ?? '' }
      const identity = { ...metadata, uid: randomUUID(), creationTimestamp: '2026-01-01T00:00:00Z' }
      const { kind, apiVersion, ...fields } = rest
      const bytes = Buffer.from(JSON.stringify({ kind, apiVersion, metadata: identity, ...fields }))
      const old = there.get(key.resource, '', key.name)
      await (old === undefined
        ? there.create(key, bytes, { signal })
        : there.update(key, bytes, { ifRevision: old.revision, signal }))
    }
  }
  const decide = async (who: UserInfo, attributes: Attributes, cluster: LogicalCluster) =>
    authorizer.authorize(who, attributes, { cluster, work: new WorkBudget(), signal })
  const may = async (...asked: Parameters<typeof decide>) => (await decide(...asked)).allowed

  it('hold below for the users of the ancestor, and the reason names binding and ancestor', async () => {
    const alice = belowOf(userOf(acme, 'alice'), acme)
    expect(alice).to.include({ name: 'cluster:acme:alice' })
    for (const cluster of [dev, test])
      expect(await decide(alice, on('create', '/configmaps', 'shop'), cluster)).to.deep.equal({
        allowed: true,
        reason:
          'RBAC: allowed by ClusterRoleBinding "leads" of ClusterRole "edit" to User "alice", inherited from logical cluster "acme"',
      })
    expect(await decide(alice, on('create', '/nodes'), dev)).to.deep.equal({
      allowed: false,
      reason: 'RBAC: not allowed by ClusterRoleBinding "leads" inherited from logical cluster "acme"',
    })
    const auditor = belowOf(userOf(top, 'root-auditor'), top)
    for (const cluster of [acme, dev]) expect(await may(auditor, on('list', '/configmaps'), cluster)).to.equal(true)
    expect(await may(belowOf(userOf(acme, 'bob'), acme), on('list', '/configmaps'), dev), 'without the label').to.equal(
      false,
    )
  })

  it('hold for no namesake: users, ServiceAccounts and groups of the child, of a sibling or of a grandparent', async () => {
    const asked = on('list', '/configmaps', 'shop')
    const ci = 'system:serviceaccount:default:ci'
    for (const who of [
      userOf(dev, 'alice'),
      userOf(dev, ci),
      userOf(dev, 'root-auditor'),
      userOf(dev, 'cluster:top:root-auditor'),
      userOf(acme, 'alice'),
      { ...userOf(dev, 'cluster:acme:alice'), realm: { kind: 'cluster', id: acme.id } },
      belowOf(userOf(top, 'alice'), top),
      belowOf(userOf(test, 'alice'), test),
    ] as const)
      expect(await may(who, asked, dev), `${who.name} of ${JSON.stringify(who.realm)}`).to.equal(false)
    expect(await may(belowOf(userOf(acme, ci), acme), asked, dev)).to.equal(true)
  })

  it('mean by system:authenticated the users of the ancestor, not those of the child', async () => {
    const everybody = { kind: 'Group', name: 'system:authenticated' }
    await put(top, binding('everybody', 'view', [everybody], true))
    const asked = on('list', '/configmaps', 'shop')
    expect(await may(belowOf(userOf(top, 'anybody'), top), asked, dev)).to.equal(true)
    expect(await may(userOf(dev, 'anybody'), asked, dev)).to.equal(false)
    await put(top, binding('everybody', 'view', [], true))
  })

  it('never hold above or beside: a child gives no rights in its parent or its sibling', async () => {
    for (const cluster of [top, acme, dev])
      for (const who of [userOf(test, 'alice'), belowOf(userOf(test, 'alice'), test)])
        expect(await may(who, on('list', '/configmaps'), cluster), cluster.name).to.equal(false)
    const alice = userOf(acme, 'alice')
    expect(await may(belowOf(alice, acme), on('list', '/secrets'), top)).to.equal(false)
  })

  it('make no masters below: system:masters of the parent has the rights of inherited bindings only', async () => {
    const master = belowOf(userOf(acme, 'boss', 'system:masters'), acme)
    expect(authorizer.isSuperuser(master, dev)).to.equal(false)
    expect(await may(master, on('list', '/secrets'), dev)).to.equal(false)
    expect(await may(userOf(acme, 'boss', 'system:masters'), on('list', '/secrets'), dev)).to.equal(false)
    expect(authorizer.isSuperuser(userOf(acme, 'boss', 'system:masters'), acme)).to.equal(true)
  })

  it('let nobody escalate: bind, escalate and impersonate are for rights that are held in the child', async () => {
    const check = createRbacWriteCheck(authorizer)
    const alice = belowOf(userOf(acme, 'alice'), acme)
    const write = (object: KubeObject) =>
      check({ verb: 'create', object, user: alice, cluster: dev, work: new WorkBudget(), signal }).then(
        () => 'allowed',
        (error: unknown) => (error as { code: number }).code,
      )
    expect(await write(binding('x', 'cluster-admin', [user('cluster:acme:alice')]))).to.equal(403)
    expect(await write(binding('x', 'view', [user('somebody')]))).to.equal('allowed')
    expect(await write(role('x', ['nodes'], true))).to.equal(403)
    for (const resource of ['/users', '/groups'])
      expect(await may(alice, on('impersonate', resource, '', 'system:masters'), dev)).to.equal(false)
  })

  it('are bound below if the role has the label, and a role of the child comes first', async () => {
    await put(dev, binding('own', 'configs', [user('carol')]), binding('own2', 'hidden', [user('dave')]))
    expect(await may(userOf(dev, 'carol'), on('get', '/configmaps'), dev)).to.equal(true)
    expect(await decide(userOf(dev, 'dave'), on('get', '/configmaps'), dev)).to.deep.equal({
      allowed: false,
      reason: `RBAC: clusterrole.${rbac} "hidden" not found`,
    })
    await put(dev, role('configs', ['nodes']))
    expect(await may(userOf(dev, 'carol'), on('get', '/configmaps'), dev)).to.equal(false)
  })

  it('change at once with the ancestor, and end at once with a move', async () => {
    const alice = belowOf(userOf(acme, 'alice'), acme)
    const asked = on('create', '/configmaps', 'shop')
    await put(acme, binding('leads', 'edit', [account('default', 'ci')], true))
    expect(await may(alice, asked, test)).to.equal(false)
    await put(acme, binding('leads', 'edit', [user('alice'), account('default', 'ci')], true))
    expect(await may(alice, asked, test)).to.equal(true)
    known.set('test', { ...test, parent: top.name })
    expect(await may(alice, asked, known.get('test')!)).to.equal(false)
    known.set('top', { ...top, parent: test.name })
    expect(await may(alice, asked, dev), 'in a cycle').to.equal(false)
  })

  it('follow owners of the form cluster:NAME:USER, for users of ancestors only', async () => {
    const owned = { ...dev, owners: [{ kind: 'User', name: 'cluster:acme:bob' } as const] }
    known.set('dev', owned)
    expect(authorizer.isSuperuser(belowOf(userOf(acme, 'bob'), acme), owned)).to.equal(true)
    expect(authorizer.isSuperuser(userOf(dev, 'cluster:acme:bob'), owned)).to.equal(false)
    const ofHost = { ...userOf(dev, 'cluster:acme:bob'), realm: { kind: 'host' } as const }
    expect(authorizer.isSuperuser({ ...ofHost, name: 'host:cluster:acme:bob' }, owned)).to.equal(false)
  })
})

function logicalCluster(name: string, parent?: string): LogicalCluster {
  return {
    name: name as ClusterName,
    id: clusterIdOf(name),
    uid: name,
    creationTimestamp: '2026-01-01T00:00:00Z',
    owners: [],
    deleting: false,
    ...(parent === undefined ? {} : { parent: parent as ClusterName }),
  }
}
function userOf({ id }: LogicalCluster, name: string, ...groups: string[]): UserInfo {
  return { name, groups: [...groups, 'system:authenticated'], extra: {}, realm: { kind: 'cluster', id } }
}
function user(name: string): object {
  return { apiGroup: rbac, kind: 'User', name }
}
function account(namespace: string, name: string): object {
  return { kind: 'ServiceAccount', namespace, name }
}
function on(verb: string, path: string, namespace = '', name = ''): Attributes {
  const [group = '', resource = ''] = path.split('/')
  return { verb, resource: { group, version: 'v1', resource, subresource: '', namespace, name } }
}
function labelled(name: string, inherits: boolean): KubeObject['metadata'] {
  return { name, ...(inherits ? { labels: { 'kcp.dev/inherit': 'true' } } : {}) }
}
function role(name: string, resources: string[], inherits = false): KubeObject {
  const rules = [{ apiGroups: [''], resources, verbs: ['get'] }]
  return { apiVersion: `${rbac}/v1`, kind: 'ClusterRole', metadata: labelled(name, inherits), rules }
}
function binding(name: string, roleName: string, subjects: object[], inherits = false): KubeObject {
  return {
    apiVersion: `${rbac}/v1`,
    kind: 'ClusterRoleBinding',
    metadata: labelled(name, inherits),
    roleRef: { apiGroup: rbac, kind: 'ClusterRole', name: roleName },
    subjects,
  }
}
