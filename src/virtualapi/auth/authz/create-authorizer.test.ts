import { expect } from 'chai'
import { randomUUID } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { clusterIdOf, type ClusterId, type ClusterName, type KubeObject } from '#apimachinery/meta/index.ts'
import { isStatusError } from '#apimachinery/status/index.ts'
import { WorkBudget } from '#apimachinery/work-budget/index.ts'
import { createWatchCache, type ClusterObjects, type Entry, type WatchCache } from '#store/watch-cache/index.ts'
import type { Store } from '#store/index.ts'
import { openSqliteStore } from '#store/sqlite/index.ts'
import { anonymous, type UserInfo } from '#virtualapi/request/user-info.ts'
import { createBaseLayer } from '#virtualapi/catalog/bootstrap/index.ts'
import type { LogicalCluster, OwnerSubject } from '#virtualapi/request/logical-cluster.ts'
import type { ClusterScope, RequestInfo } from '#virtualapi/request/request-info.ts'
import { forbiddenMessage } from './forbidden-message.ts'
import type { Attributes } from '#virtualapi/request/authorizer.ts'
import { readFacts, stampRevision } from '#virtualapi/kinds/resources/object-bytes.ts'
import { createAuthorizer, type RbacAuthorizer } from './create-authorizer.ts'
import { createRbacWriteCheck } from './escalation-check.ts'

const signal = new AbortController().signal
const rbac = 'rbac.authorization.k8s.io'
const acme = logicalCluster('acme')
const bobs = logicalCluster('bobs')

describe('authorization', () => {
  let objects: Objects
  let authorizer: RbacAuthorizer
  before(async () => {
    objects = await Objects.open()
  })
  beforeEach(() => {
    authorizer = createAuthorizer({ watchCache: objects })
  })
  afterEach(() => objects.clear())
  after(() => objects[Symbol.asyncDispose]())
  const may = async (who: UserInfo, attributes: Attributes, cluster = acme) =>
    (await authorizer.authorize(who, attributes, { cluster, work: new WorkBudget(), signal })).allowed

  describe('by RBAC', () => {
    const rules: { title: string; rule: object; yes: Attributes[]; no: Attributes[] }[] = [
      {
        title: 'a verb on a resource of a group',
        rule: { apiGroups: ['apps'], resources: ['deployments'], verbs: ['get', 'list'] },
        yes: [on('get', 'apps/deployments', 'web'), on('list', 'apps/deployments')],
        no: [
          on('delete', 'apps/deployments', 'web'),
          on('get', '/deployments', 'web'),
          on('get', 'apps/deployments/scale', 'web'),
          on('get', 'apps/statefulsets', 'web'),
        ],
      },
      {
        title: 'names',
        rule: { apiGroups: [''], resources: ['configmaps'], resourceNames: ['a', 'b'], verbs: ['get'] },
        yes: [on('get', '/configmaps', 'a')],
        no: [on('get', '/configmaps', 'c'), on('get', '/configmaps')],
      },
      {
        title: 'one subresource of every resource',
        rule: { apiGroups: ['*'], resources: ['*/scale'], verbs: ['*'] },
        yes: [on('update', 'apps/deployments/scale', 'web')],
        no: [on('update', 'apps/deployments', 'web'), on('update', 'apps/deployments/status', 'web')],
      },
      {
        title: 'no wildcard after the slash',
        rule: { apiGroups: [''], resources: ['pods/*'], verbs: ['get'] },
        yes: [],
        no: [on('get', '/pods/log', 'web'), on('get', '/pods', 'web')],
      },
      {
        title: 'everything',
        rule: { apiGroups: ['*'], resources: ['*'], verbs: ['*'] },
        yes: [on('deletecollection', '/pods'), on('create', 'a.b/things/status', 'x')],
        no: [{ verb: 'get', path: '/metrics' }],
      },
      {
        title: 'paths with a trailing star',
        rule: { nonResourceURLs: ['/metrics', '/debug/*'], verbs: ['get'] },
        yes: [
          { verb: 'get', path: '/metrics' },
          { verb: 'get', path: '/debug/pprof/heap' },
        ],
        no: [
          { verb: 'get', path: '/metrics/x' },
          { verb: 'post', path: '/metrics' },
          { verb: 'get', path: '/debug' },
          on('get', '/pods'),
        ],
      },
    ]
    for (const { title, rule, yes, no } of rules) {
      it(`supports ${title}`, async () => {
        objects.put(clusterRole('r', [rule]), clusterRoleBinding('b', 'r', user('bob')))
        for (const attributes of yes)
          expect(await may(tenant('bob'), attributes), JSON.stringify(attributes)).to.equal(true)
        for (const attributes of no)
          expect(await may(tenant('bob'), attributes), JSON.stringify(attributes)).to.equal(false)
        for (const attributes of yes)
          expect(await may(tenant('eve'), attributes), JSON.stringify(attributes)).to.equal(false)
      })
    }

    it('evaluates a role once, however many bindings refer to it', async () => {
      const rules = Array.from({ length: 30_000 }, (_, i) => ({
        apiGroups: ['a.b'],
        resources: [`r${i}`],
        verbs: ['get'],
      }))
      const bindings = Array.from({ length: 2_000 }, (_, i) => clusterRoleBinding(`b${i}`, 'r', user('bob')))
      objects.put(clusterRole('r', rules), ...bindings)
      expect(await may(tenant('bob'), on('get', 'a.b/r29999', 'x'))).to.equal(true)
      const started = performance.now()
      for (let i = 0; i < 20; i++) expect(await may(tenant('bob'), on('get', 'a.b/none', 'x'))).to.equal(false)
      expect(performance.now() - started).to.be.lessThan(3000)
    })

    it('matches a path with many stars in linear time', async () => {
      const nonResourceURLs = [`${'*'.repeat(100_000)}/*`, '/debug/***']
      objects.put(clusterRole('r', [{ nonResourceURLs, verbs: ['get'] }]), clusterRoleBinding('b', 'r', user('bob')))
      const started = performance.now()
      expect(await may(tenant('bob'), { verb: 'get', path: '/debug/x' })).to.equal(true)
      expect(await may(tenant('bob'), { verb: 'get', path: '/metrics' })).to.equal(false)
      expect(performance.now() - started).to.be.lessThan(3000)
    })

    it('knows users, groups and ServiceAccounts, and keeps RoleBindings to their namespace', async () => {
      objects.put(
        clusterRole('reader', [{ apiGroups: [''], resources: ['pods'], verbs: ['list'] }]),
        roleBinding(
          'shop',
          'b',
          { kind: 'ClusterRole', name: 'reader' },
          user('bob'),
          { kind: 'Group', name: 'dev' },
          { kind: 'ServiceAccount', name: 'ci' },
          { kind: 'ServiceAccount', name: 'ci', namespace: 'tools' },
        ),
      )
      const inShop = on('list', '/pods', '', 'shop')
      for (const who of [
        tenant('bob'),
        tenant('x', 'dev'),
        tenant('system:serviceaccount:shop:ci'),
        tenant('system:serviceaccount:tools:ci'),
      ]) {
        expect(await may(who, inShop), who.name).to.equal(true)
        expect(await may(who, on('list', '/pods', '', 'other')), who.name).to.equal(false)
        expect(await may(who, on('list', '/pods')), who.name).to.equal(false)
      }
      expect(await may(tenant('ci'), inShop)).to.equal(false)
      expect(await may(tenant('system:serviceaccount:other:ci'), inShop)).to.equal(false)
    })

    it('takes a Role from the namespace of the binding, and none for a ClusterRoleBinding', async () => {
      const pods = [{ apiGroups: [''], resources: ['pods'], verbs: ['list'] }]
      objects.put(
        role('shop', 'reader', pods),
        roleBinding('shop', 'b', { kind: 'Role', name: 'reader' }, user('bob')),
        roleBinding('other', 'b', { kind: 'Role', name: 'reader' }, user('bob')),
        {
          ...clusterRoleBinding('c', 'reader', user('eve')),
          roleRef: { apiGroup: rbac, kind: 'Role', name: 'reader' },
        },
      )
      expect(await may(tenant('bob'), on('list', '/pods', '', 'shop'))).to.equal(true)
      const decision = await authorizer.authorize(tenant('bob'), on('list', '/pods', '', 'other'), {
        cluster: acme,
        work: new WorkBudget(),
        signal,
      })
      expect(decision).to.deep.equal({ allowed: false, reason: `RBAC: role.${rbac} "reader" not found` })
      expect(await may(tenant('eve'), on('list', '/pods', '', 'shop'))).to.equal(false)
    })

    it('says which binding allowed it', async () => {
      objects.put(clusterRoleBinding('b', 'view', user('bob')))
      const { reason } = await authorizer.authorize(tenant('bob'), on('list', '/pods'), {
        cluster: acme,
        work: new WorkBudget(),
        signal,
      })
      expect(reason).to.equal('RBAC: allowed by ClusterRoleBinding "b" of ClusterRole "view" to User "bob"')
    })

    it('has the default roles and bindings in every logical cluster', async () => {
      objects.put(clusterRoleBinding('b', 'edit', user('bob')))
      expect(await may(tenant('bob'), on('create', 'apps/deployments', '', 'shop'))).to.equal(true)
      expect(await may(tenant('bob'), on('create', `${rbac}/roles`, '', 'shop'))).to.equal(false)
      expect(await may(tenant('anybody'), on('create', 'authorization.k8s.io/selfsubjectaccessreviews'))).to.equal(true)
      expect(await may(tenant('anybody'), { verb: 'get', path: '/apis/apps/v1' })).to.equal(true)
    })

    it('applies every change at once: grant, change of role, revocation, deletion of a default', async () => {
      const list = on('list', '/secrets', '', 'shop')
      expect(await may(tenant('bob'), list)).to.equal(false)
      objects.put(clusterRole('r', []), clusterRoleBinding('b', 'r', user('bob')))
      expect(await may(tenant('bob'), list)).to.equal(false)
      objects.put(clusterRole('r', [{ apiGroups: [''], resources: ['secrets'], verbs: ['list'] }]))
      expect(await may(tenant('bob'), list)).to.equal(true)
      objects.remove(`clusterrolebindings.${rbac}`, '', 'b')
      expect(await may(tenant('bob'), list)).to.equal(false)
      expect(await may(tenant('bob'), { verb: 'get', path: '/api' })).to.equal(true)
      objects.remove(`clusterrolebindings.${rbac}`, '', 'system:discovery')
      expect(await may(tenant('bob'), { verb: 'get', path: '/api' })).to.equal(false)
      expect(await may(tenant('bob'), on('create', 'authorization.k8s.io/selfsubjectaccessreviews'))).to.equal(true)
    })

    it('applies a changed default role', async () => {
      objects.put(clusterRoleBinding('b', 'view', user('bob')))
      expect(await may(tenant('bob'), on('list', '/pods'))).to.equal(true)
      objects.put(clusterRole('view', []))
      expect(await may(tenant('bob'), on('list', '/pods'))).to.equal(false)
    })

    it('compiles only what changed', async () => {
      const counting = new CountingWatchCache(objects)
      authorizer = createAuthorizer({ watchCache: counting })
      const get = on('get', '/configmaps', 'x', 'shop')
      const rules = [{ apiGroups: [''], resources: ['configmaps'], verbs: ['get'] }]
      const names = Array.from({ length: 100 }, (_, i) => `r${i}`)
      objects.put(...names.flatMap((name) => [clusterRole(name, []), clusterRoleBinding(name, name, user(name))]))
      expect(await may(tenant('r7'), get)).to.equal(false)
      expect(await may(tenant('r8'), get)).to.equal(false)
      counting.forget()
      expect(await may(tenant('r8'), get)).to.equal(false)
      expect(counting.seen()).to.deep.equal({ looked: 0, read: 0 })

      objects.put(clusterRole('r7', rules))
      expect(await may(tenant('r7'), get)).to.equal(true)
      expect(await may(tenant('r8'), get)).to.equal(false)
      expect(counting.seen(), 'a role').to.deep.equal({ looked: 1, read: 1 })

      objects.put(clusterRoleBinding('r9', 'r7', user('r8')))
      expect(await may(tenant('r8'), get)).to.equal(true)
      expect(counting.seen(), 'a binding').to.deep.equal({ looked: 1, read: 1 })

      objects.remove(`clusterrolebindings.${rbac}`, '', 'r9')
      expect(await may(tenant('r8'), get)).to.equal(false)
      expect(counting.seen(), 'a grant taken away').to.deep.equal({ looked: 1, read: 0 })

      objects.put(clusterRole('view', []))
      expect(await may(tenant('r7'), get)).to.equal(true)
      expect(counting.seen(), 'a default role edited, which nobody here has').to.deep.equal({ looked: 1, read: 0 })
    })

    it('compiles only what changed, if the changed names are no longer known', async () => {
      await using few = await Objects.open({ windowEvents: 4 })
      const counting = new CountingWatchCache(few)
      authorizer = createAuthorizer({ watchCache: counting })
      const get = on('get', '/configmaps', 'x', 'shop')
      const rules = [{ apiGroups: [''], resources: ['configmaps'], verbs: ['get'] }]
      const names = Array.from({ length: 50 }, (_, i) => `r${i}`)
      few.put(...names.flatMap((name) => [clusterRole(name, rules), clusterRoleBinding(name, name, user(name))]))
      for (const name of names) expect(await may(tenant(name), get), name).to.equal(true)
      counting.forget()
      const taken = names.slice(0, 10)
      few.put(...taken.map((name) => clusterRole(name, [])))
      for (const name of names) expect(await may(tenant(name), get), name).to.equal(!taken.includes(name))
      expect(counting.seen().read).to.equal(10)
      for (const name of taken) few.remove(`clusterroles.${rbac}`, '', name)
      const { reason } = await authorizer.authorize(tenant('r3'), get, {
        cluster: acme,
        work: new WorkBudget(),
        signal,
      })
      expect(reason).to.equal(`RBAC: clusterrole.${rbac} "r3" not found`)
      expect(counting.seen().read).to.equal(0)
    })

    it('gives the same answers after incremental changes as a new authorizer', async () => {
      const random = randomOf(7)
      const pick = <T>(of: readonly T[]): T => of[Math.floor(random() * of.length)] as T
      const rules = (): object[] =>
        Array.from({ length: Math.floor(random() * 3) }, () => ({
          ...{ apiGroups: [''], resources: [pick(['pods', 'secrets'])], verbs: [pick(['get', 'list'])] },
        }))
      const subject = (): object =>
        pick([
          user('bob'),
          { kind: 'Group', name: 'dev' },
          { kind: 'Group', name: 'system:authenticated' },
          { kind: 'ServiceAccount', name: 'ci', namespace: 'shop' },
        ])
      const there = new Set<string>()
      const change = (): void => {
        const namespace = pick(['shop', 'other'])
        const object = pick([
          () => clusterRole(pick(['r', 's', 'view', 'system:discovery']), rules()),
          () => role(namespace, pick(['r', 's']), rules()),
          () => clusterRoleBinding(pick(['b', 'c', 'system:discovery']), pick(['r', 'view', 'none']), subject()),
          () =>
            roleBinding(
              ...([
                namespace,
                pick(['b', 'c']),
                { kind: pick(['Role', 'ClusterRole']), name: pick(['r', 's']) },
              ] as const),
              ...[subject(), subject()],
            ),
        ])()
        const place = [
          `${object.kind.toLowerCase()}s.${rbac}`,
          object.metadata.namespace ?? '',
          object.metadata.name ?? '',
        ] as const
        const isThere =
          there.has(place.join('|')) || (place[2].startsWith('system:') && !there.has(`${place.join('|')}|gone`))
        if (isThere && random() < 0.4) {
          objects.remove(...place)
          there.delete(place.join('|'))
          there.add(`${place.join('|')}|gone`)
          return
        }
        objects.put(object)
        there.add(place.join('|'))
      }
      const people = [tenant('bob'), tenant('eve', 'dev'), tenant('system:serviceaccount:shop:ci')]
      const all = async (of: RbacAuthorizer): Promise<unknown[]> => {
        const responses: unknown[] = []
        for (const who of people)
          for (const namespace of ['', 'shop', 'other']) {
            responses.push(await rulesHeld(of, who, namespace))
            for (const resource of ['/pods', '/secrets'])
              responses.push(await decisionOf(of, who, on('get', resource, 'x', namespace)))
            for (const kind of ['Role', 'ClusterRole'])
              for (const name of ['r', 's', 'view', 'system:discovery'])
                responses.push(await of.roleRules({ kind, name, namespace }, acme, signal))
          }
        return responses
      }
      for (let round = 0; round < 150; round++) {
        for (let changes = Math.floor(random() * 3); changes >= 0; changes--) change()
        expect(await all(authorizer), `round ${round}`).to.deep.equal(
          await all(createAuthorizer({ watchCache: objects })),
        )
        // Evicted and loaded again: its change counters start again.
        if (round % 40 === 39) objects.unload()
      }
    })

    it('ignores invalid RBAC objects', async () => {
      objects.put(
        { ...clusterRole('r', []), rules: [null, 7, { verbs: 'get', resources: ['pods'] }] as unknown },
        { ...clusterRoleBinding('b', 'r'), subjects: [null, { kind: 'User' }, { kind: 'Robot', name: 'bob' }] },
        { ...clusterRoleBinding('c', 'r'), roleRef: 'r' },
      )
      expect(await may(tenant('bob'), on('get', '/pods'))).to.equal(false)
      expect(await may(tenant(''), on('get', '/pods'))).to.equal(false)
    })
  })

  describe('without RBAC', () => {
    const write = on('delete', '/secrets', 'x', 'shop')
    it('system:masters of the logical cluster may do everything there and nothing elsewhere', async () => {
      expect(await may(tenant('bob', 'system:masters'), write)).to.equal(true)
      expect(await may(tenant('bob', 'system:masters'), write, bobs)).to.equal(false)
    })
    it('an identity of another logical cluster may do nothing, whatever is bound to its name', async () => {
      objects.put(
        clusterRoleBinding('b', 'cluster-admin', user('bob'), { kind: 'Group', name: 'system:authenticated' }),
      )
      expect(await may(tenant('bob'), write)).to.equal(true)
      expect(await may({ ...tenant('bob'), realm: { kind: 'cluster', id: bobs.id } }, write)).to.equal(false)
    })
    it('administrators and processes of the installation may do everything', async () => {
      expect(await may({ ...tenant('admin', 'system:masters'), realm: { kind: 'installation' } }, write)).to.equal(true)
      expect(await may({ ...tenant('operator', 'kcp:system'), realm: { kind: 'installation' } }, write)).to.equal(true)
      expect(await may({ ...tenant('somebody', 'dev'), realm: { kind: 'installation' } }, write)).to.equal(false)
    })
    it('the same groups mean nothing on users of the host or of a tenant', async () => {
      expect(await may(hostUser('x', 'host:system:masters', 'kcp:system'), write)).to.equal(false)
      expect(await may(hostUser('x', 'system:masters'), write)).to.equal(false)
      expect(await may(tenant('x', 'kcp:system'), write)).to.equal(false)
    })

    const cases: { owner: OwnerSubject; is: UserInfo[]; isNot: UserInfo[] }[] = [
      {
        owner: { kind: 'User', name: 'alice' },
        is: [hostUser('alice')],
        isNot: [hostUser('bob'), tenant('alice'), hostUser('x', 'alice')],
      },
      {
        owner: { kind: 'Group', name: 'dev' },
        is: [hostUser('x', 'dev')],
        isNot: [hostUser('dev'), tenant('x', 'dev')],
      },
      {
        owner: { kind: 'Group', name: 'system:masters' },
        is: [hostUser('x', 'host:system:masters')],
        isNot: [hostUser('x', 'system:masters')],
      },
      {
        owner: { kind: 'ServiceAccount', name: 'deployer', namespace: 'gitops' },
        is: [hostUser('host:system:serviceaccount:gitops:deployer')],
        isNot: [
          hostUser('system:serviceaccount:gitops:deployer'),
          tenant('system:serviceaccount:gitops:deployer'),
          hostUser('host:system:serviceaccount:other:deployer'),
        ],
      },
      {
        owner: { kind: 'ServiceAccount', name: 'deployer' },
        is: [],
        isNot: [
          hostUser('host:system:serviceaccount::deployer'),
          hostUser('host:system:serviceaccount:undefined:deployer'),
        ],
      },
    ]
    for (const { owner, is, isNot } of cases) {
      it(`owner ${owner.kind} ${owner.name} is cluster-admin inside`, async () => {
        const owned = { ...acme, owners: [owner] }
        for (const who of is) expect(await may(who, write, owned), who.name).to.equal(true)
        for (const who of is) expect(await may(who, write), who.name).to.equal(false)
        for (const who of isNot) expect(await may(who, write, owned), who.name).to.equal(false)
      })
    }

    it('anonymous may read health and version only, whatever a tenant binds', async () => {
      objects.put(
        clusterRoleBinding('b', 'cluster-admin', user('system:anonymous'), {
          kind: 'Group',
          name: 'system:unauthenticated',
        }),
      )
      for (const path of ['/healthz', '/livez', '/readyz', '/version'])
        expect(await may(anonymous, { verb: 'get', path }), path).to.equal(true)
      for (const attributes of [
        write,
        { verb: 'get', path: '/api' },
        { verb: 'post', path: '/version' },
        { verb: 'get', path: '/versions' },
        { verb: 'get', path: '/metrics' },
      ]) {
        expect(await may(anonymous, attributes), JSON.stringify(attributes)).to.equal(false)
      }
    })
  })

  describe('above all logical clusters', () => {
    const installation = (...groups: string[]): UserInfo => ({
      ...tenant('x', ...groups),
      realm: { kind: 'installation' },
    })
    const ask = (who: UserInfo, info: Partial<RequestInfo>) =>
      authorizer.authorizeAll(who, { ...wildcard('list'), ...info }).allowed

    it('reading takes a group of its own, and nobody may write', () => {
      for (const verb of ['get', 'list', 'watch']) {
        expect(ask(installation('kcp:system'), { verb }), verb).to.equal(true)
        expect(ask(installation('kcp:wildcard-readers'), { verb }), verb).to.equal(true)
        for (const who of [
          installation('dev'),
          tenant('x', 'system:masters', 'kcp:system', 'kcp:wildcard-readers'),
          hostUser('x', 'kcp:wildcard-readers', 'host:system:masters'),
          anonymous,
        ]) {
          expect(ask(who, { verb }), `${who.realm.kind} ${verb}`).to.equal(false)
        }
      }
      for (const verb of ['create', 'update', 'patch', 'delete', 'deletecollection', 'connect']) {
        expect(ask(installation('kcp:system', 'system:masters'), { verb }), verb).to.equal(false)
      }
    })
    it('the aggregator may read health and discovery, and others no more than that', () => {
      const at = (path: string, verb = 'get'): Partial<RequestInfo> => ({
        cluster: { kind: 'none' },
        verb,
        target: { kind: 'path', path },
      })
      const aggregator = hostUser('host:system:kube-aggregator', 'host:system:masters')
      for (const path of [
        '/apis/virtual.kcp.dev/v1alpha1',
        '/apis',
        '/openapi/v2',
        '/openapi/v3/apis/virtual.kcp.dev/v1alpha1',
      ]) {
        expect(ask(aggregator, at(path)), path).to.equal(true)
        expect(ask(anonymous, at(path)), path).to.equal(false)
        expect(ask(aggregator, at(path, 'post')), path).to.equal(false)
      }
      expect(ask(anonymous, at('/livez'))).to.equal(true)
      expect(ask(aggregator, at('/metrics'))).to.equal(false)
      expect(ask(installation('kcp:system'), at('/metrics'))).to.equal(true)
    })
    it('the metrics may be read by a group of the installation that may read nothing else', () => {
      const at = (path: string, verb = 'get'): Partial<RequestInfo> => ({
        cluster: { kind: 'none' },
        verb,
        target: { kind: 'path', path },
      })
      const scraper = installation('kcp:metrics-readers')
      expect(ask(scraper, at('/metrics'))).to.equal(true)
      expect(ask(scraper, at('/metrics', 'post'))).to.equal(false)
      expect(ask(scraper, at('/debug'))).to.equal(false)
      expect(ask(scraper, { verb: 'list' })).to.equal(false)
      for (const other of [tenant('x', 'kcp:metrics-readers'), hostUser('x', 'kcp:metrics-readers')])
        expect(ask(other, at('/metrics')), other.realm.kind).to.equal(false)
    })
    it('a missing logical cluster looks like a forbidden one', () => {
      const missing: ClusterScope = { kind: 'one', name: 'missing' as ClusterName }
      for (const target of [
        { kind: 'path', path: '/apis' },
        { kind: 'path', path: '/version' },
        wildcard('list').target,
      ] as const) {
        const info = { cluster: missing, verb: 'get', target }
        for (const who of [hostUser('alice'), tenant('x', 'system:masters'), anonymous])
          expect(ask(who, info)).to.equal(false)
        expect(ask(installation('system:masters'), info)).to.equal(true)
      }
    })
    it('only administrators of the installation may learn that a logical cluster does not exist', () => {
      expect(authorizer.mayKnowAll(installation('system:masters'))).to.equal(true)
      for (const who of [
        tenant('x', 'system:masters'),
        hostUser('x', 'host:system:masters'),
        installation('kcp:wildcard-readers'),
        anonymous,
      ]) {
        expect(authorizer.mayKnowAll(who)).to.equal(false)
      }
    })
  })

  describe('has the messages of kube-apiserver', () => {
    for (const [attributes, text] of [
      [on('list', '/pods', '', 'x'), 'User "bob" cannot list resource "pods" in API group "" in the namespace "x"'],
      [
        on('get', '/pods/log', 'web', 'x'),
        'User "bob" cannot get resource "pods/log" in API group "" in the namespace "x"',
      ],
      [
        on('list', 'apps/deployments'),
        'User "bob" cannot list resource "deployments" in API group "apps" at the cluster scope',
      ],
      [{ verb: 'get', path: '/metrics' }, 'User "bob" cannot get path "/metrics"'],
    ] as const) {
      it(text, () => expect(forbiddenMessage(tenant('bob'), attributes)).to.equal(text))
    }
  })

  describe('against escalation', () => {
    const pods = { apiGroups: [''], resources: ['pods'], verbs: ['get', 'list'] }
    const write = async (
      object: KubeObject,
      { old, who = tenant('bob', 'dev') }: { old?: KubeObject; who?: UserInfo } = {},
    ) => {
      const check = createRbacWriteCheck(authorizer)
      try {
        await check({
          verb: old === undefined ? 'create' : 'update',
          object,
          ...(old === undefined ? {} : { old }),
          user: who,
          cluster: acme,
          work: new WorkBudget(),
          signal,
        })
        return 'allowed'
      } catch (error) {
        if (!isStatusError(error)) throw error
        return `${error.code} ${error.message}`
      }
    }
    beforeEach(() => objects.put(clusterRole('pods', [pods]), clusterRoleBinding('b', 'pods', user('bob'))))

    it('allows to grant rights that the user holds', async () => {
      expect(await write(clusterRole('x', [pods]))).to.equal('allowed')
      expect(await write(role('shop', 'x', [{ ...pods, verbs: ['get'], resourceNames: ['web'] }]))).to.equal('allowed')
      expect(await write(roleBinding('shop', 'x', { kind: 'ClusterRole', name: 'pods' }, user('eve')))).to.equal(
        'allowed',
      )
    })
    it('refuses rights that the user does not hold, and names them', async () => {
      expect(await write(clusterRole('x', [{ ...pods, verbs: ['get', 'delete', 'create'] }]))).to.equal(
        '403 clusterroles.rbac.authorization.k8s.io "x" is forbidden: user "bob" (groups=["dev" "system:authenticated"]) is attempting to grant RBAC permissions not currently held:\n{APIGroups:[""], Resources:["pods"], Verbs:["delete" "create"]}',
      )
      for (const rule of [
        { ...pods, resources: ['*'] },
        { ...pods, apiGroups: ['*'] },
        { ...pods, verbs: ['*'] },
        { nonResourceURLs: ['/metrics'], verbs: ['get'] },
      ]) {
        expect(await write(clusterRole('x', [rule])), JSON.stringify(rule)).to.match(/^403 .*not currently held/)
      }
    })
    it('does not split a rule with four long lists', async () => {
      const words = (letter: string, count: number): string[] =>
        Array.from({ length: count }, (_, i) => `${letter}${i}`)
      const product = (count: number): object => ({
        ...{ apiGroups: words('g', count), resources: words('r', count) },
        ...{ verbs: words('v', count), resourceNames: words('n', count) },
      })
      const refused = await write(clusterRole('x', [product(300)]))
      expect(refused).to.match(/^403 .*not currently held/)
      expect(refused.length).to.be.below(100_000)
      const hold = (...rules: object[]): void =>
        objects.put(clusterRole('wide', rules), clusterRoleBinding('w', 'wide', user('bob')))
      // `*` is an ordinary name in resourceNames.
      hold({ ...product(300), resourceNames: ['*'] })
      expect(await write(clusterRole('x', [product(300)]))).to.match(/^403/)
      hold(product(300))
      expect(await write(clusterRole('x', [product(300)]))).to.equal('allowed')
      hold({ apiGroups: ['*'], resources: ['*'], verbs: words('v', 300) })
      expect(await write(clusterRole('x', [product(300)]))).to.equal('allowed')
      // A rule that no single held rule covers is split into atomic rules, within the bound.
      const halves = [words('v', 5), words('v', 10).slice(5)].map((verbs) => ({ ...product(10), verbs }))
      hold(...halves)
      expect(await write(clusterRole('x', [product(10)]))).to.equal('allowed')
      expect(await write(clusterRole('x', [product(10), product(11)]))).to.match(/^403/)
    })
    it('refuses to bind a role with more rights, unless the user may bind it', async () => {
      const binding = clusterRoleBinding('x', 'cluster-admin', user('bob'))
      expect(await write(binding)).to.match(
        /^403 clusterrolebindings.rbac.authorization.k8s.io "x" is forbidden: user "bob"/,
      )
      objects.put(
        clusterRole('binder', [
          { apiGroups: [rbac], resources: ['clusterroles'], resourceNames: ['cluster-admin'], verbs: ['bind'] },
        ]),
        clusterRoleBinding('c', 'binder', user('bob')),
      )
      expect(await write(binding)).to.equal('allowed')
      expect(await write(clusterRoleBinding('x', 'admin', user('bob')))).to.match(/^403/)
    })
    it('refuses a wider role, unless the user may escalate', async () => {
      objects.put(
        clusterRole('esc', [{ apiGroups: [rbac], resources: ['clusterroles'], verbs: ['escalate'] }]),
        clusterRoleBinding('c', 'esc', user('bob')),
      )
      expect(await write(clusterRole('x', [{ ...pods, verbs: ['*'] }]))).to.equal('allowed')
      expect(await write(role('shop', 'x', [{ ...pods, verbs: ['*'] }]))).to.match(/^403/)
    })
    it('refuses to grant rights held in one namespace in another', async () => {
      objects.put(roleBinding('shop', 'adm', { kind: 'ClusterRole', name: 'admin' }, user('eve')))
      const who = tenant('eve')
      expect(
        await write(roleBinding('shop', 'x', { kind: 'ClusterRole', name: 'edit' }, user('mallory')), { who }),
      ).to.equal('allowed')
      expect(
        await write(roleBinding('other', 'x', { kind: 'ClusterRole', name: 'edit' }, user('mallory')), { who }),
      ).to.match(/^403/)
      expect(await write(clusterRoleBinding('x', 'edit', user('mallory')), { who })).to.match(/^403/)
    })
    it('requires cluster-admin for an aggregation rule', async () => {
      const gathering = {
        ...clusterRole('x', []),
        aggregationRule: { clusterRoleSelectors: [{ matchLabels: { a: 'b' } }] },
      }
      expect(await write(gathering)).to.contain('must have cluster-admin privileges to use the aggregationRule')
      expect(await write(clusterRole('x', []), { old: gathering })).to.contain('must have cluster-admin privileges')
      objects.put(clusterRoleBinding('c', 'cluster-admin', user('bob')))
      expect(await write(gathering)).to.equal('allowed')
    })
    it('allows an update of irrelevant fields', async () => {
      const old = clusterRole('x', [{ ...pods, verbs: ['*'] }])
      expect(
        await write({ ...old, metadata: { ...old.metadata, resourceVersion: '9', finalizers: [] } }, { old }),
      ).to.equal('allowed')
      expect(await write({ ...old, metadata: { ...old.metadata, labels: { a: 'b' } } }, { old })).to.match(/^403/)
    })
    it('refuses to bind a missing role', async () => {
      expect(await write(clusterRoleBinding('x', 'missing', user('bob')))).to.equal(
        '404 clusterrolebindings.rbac.authorization.k8s.io "missing" not found',
      )
    })
    it('allows everything to owners and system:masters', async () => {
      const binding = clusterRoleBinding('x', 'cluster-admin', user('bob'))
      expect(await write(binding, { who: tenant('x', 'system:masters') })).to.equal('allowed')
      expect(
        await write(binding, { who: { ...tenant('x', 'system:masters'), realm: { kind: 'cluster', id: bobs.id } } }),
      ).to.match(/^403/)
    })
  })
})

/**
 * The objects of one logical cluster in a real watch cache on a real store. Writes run in order; reads wait for them.
 */
class Objects implements Pick<WatchCache, 'cluster'>, AsyncDisposable {
  readonly #watchCache: WatchCache
  readonly #store: Store
  readonly #stack: AsyncDisposableStack
  #writes: Promise<unknown> = Promise.resolve()

  private constructor(watchCache: WatchCache, store: Store, stack: AsyncDisposableStack) {
    this.#watchCache = watchCache
    this.#store = store
    this.#stack = stack
  }
  static async open({ windowEvents = 1024 } = {}): Promise<Objects> {
    const stack = new AsyncDisposableStack()
    const dir = await mkdtemp(join(tmpdir(), 'kcp-authz-'))
    stack.defer(() => rm(dir, { recursive: true, force: true }))
    const store = stack.use(await openSqliteStore({ file: join(dir, 'store.db') }))
    const baseLayer = createBaseLayer({ directory: { byId: () => acme }, rootCa: '', frontProxyCa: () => '' })
    const watchCache = stack.use(
      await createWatchCache(store, { stamp: stampRevision, readFacts, baseLayer, windowEvents, signal }),
    )
    return new Objects(watchCache, store, stack)
  }
  put(...objects: KubeObject[]): void {
    for (const object of objects) this.#write((cluster) => this.#put(cluster, object))
  }
  remove(resource: string, namespace: string, name: string): void {
    this.#write((cluster) => {
      const ifRevision = cluster.get(resource, namespace, name)!.revision
      return cluster.delete({ resource, namespace, name }, { ifRevision, signal })
    })
  }
  async cluster(id: ClusterId): Promise<ClusterObjects> {
    await this.#writes
    return this.#watchCache.cluster(id, { signal })
  }
  unload(): void {
    this.#writes = this.#writes.then(() => this.#watchCache.unload(acme.id))
  }
  async clear(): Promise<void> {
    await this.#writes
    // Deleted in the store directly: a logical cluster that was deleted through the watch cache can never be used
    // again.
    await this.#store.deleteCluster(acme.id, { signal })
    await this.#watchCache.reached(await this.#store.revision({ signal }), { signal })
    this.#watchCache.unload(acme.id)
  }
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#writes
    await this.#stack.disposeAsync()
  }
  #put(cluster: ClusterObjects, { kind, apiVersion, metadata, ...rest }: KubeObject): Promise<unknown> {
    const key = {
      resource: `${kind.toLowerCase()}s.${rbac}`,
      namespace: metadata.namespace ?? '',
      name: metadata.name ?? '',
    }
    const identity = { ...metadata, uid: randomUUID(), creationTimestamp: '2026-01-01T00:00:00Z' }
    const bytes = Buffer.from(JSON.stringify({ kind, apiVersion, metadata: identity, ...rest }))
    const there = cluster.get(key.resource, key.namespace, key.name)
    return there === undefined
      ? cluster.create(key, bytes, { signal })
      : cluster.update(key, bytes, { ifRevision: there.revision, signal })
  }
  #write(write: (cluster: ClusterObjects) => Promise<unknown>): void {
    this.#writes = this.#writes.then(async () => write(await this.#watchCache.cluster(acme.id, { signal })))
  }
}

/** Counts the entries that are read, and those whose content is decoded. */
class CountingWatchCache implements Pick<WatchCache, 'cluster'> {
  readonly #objects: Objects
  readonly #counted = new WeakMap<ClusterObjects, ClusterObjects>()
  /** Entries that were read since the last call of `forget`; their size and their content count as one. */
  readonly #readEntries = new Set<Entry>()
  #looked = 0

  constructor(objects: Objects) {
    this.#objects = objects
  }
  forget(): void {
    this.#looked = 0
    this.#readEntries.clear()
  }
  /** The counts since the last call. */
  seen(): { looked: number; read: number } {
    const seen = { looked: this.#looked, read: this.#readEntries.size }
    this.forget()
    return seen
  }
  async cluster(id: ClusterId): Promise<ClusterObjects> {
    const objects = await this.#objects.cluster(id)
    const counted = this.#counted.get(objects) ?? this.#count(objects)
    this.#counted.set(objects, counted)
    return counted
  }
  #count(objects: ClusterObjects): ClusterObjects {
    const changed: Partial<ClusterObjects> = {
      changes: (resource) => objects.changes(resource),
      changedNames: (resource, since) => objects.changedNames(resource, since),
      get: (...place) => {
        const entry = objects.get(...place)
        this.#looked++
        return entry && this.#entry(entry)
      },
      list: (scope) => {
        const entries = objects.list(scope)
        this.#looked += entries.length
        return entries.map((entry) => this.#entry(entry))
      },
    }
    return changed as ClusterObjects
  }
  #entry(entry: Entry): Entry {
    const { key, revision, createRevision, facts, base } = entry
    const read = (): Uint8Array => {
      this.#readEntries.add(entry)
      return entry.bytes
    }
    return {
      ...{ key, revision, createRevision, facts, base },
      get bytes() {
        return read()
      },
      get size() {
        return read().length
      },
      get beginning() {
        return read()
      },
    }
  }
}

/** A seeded random number generator from 0 up to 1. */
function randomOf(seed: number): () => number {
  let state = seed
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return state / 2 ** 32
  }
}

function logicalCluster(name: string): LogicalCluster {
  return {
    name: name as ClusterName,
    id: clusterIdOf(name),
    uid: name,
    creationTimestamp: '2026-01-01T00:00:00Z',
    owners: [],
    deleting: false,
  }
}
function tenant(name: string, ...groups: string[]): UserInfo {
  return { name, groups: [...groups, 'system:authenticated'], extra: {}, realm: { kind: 'cluster', id: acme.id } }
}
function hostUser(name: string, ...groups: string[]): UserInfo {
  return { ...tenant(name, ...groups), realm: { kind: 'host' } }
}
/** A decision without which of several bindings allowed it, and without the order of missing roles. */
async function decisionOf(of: RbacAuthorizer, who: UserInfo, attributes: Attributes): Promise<unknown> {
  const { allowed, reason } = await of.authorize(who, attributes, { cluster: acme, work: new WorkBudget(), signal })
  return allowed ? 'allowed' : reason.replaceAll(/[[\]]/g, '').split(/: |, /).sort()
}
async function rulesHeld(of: RbacAuthorizer, who: UserInfo, namespace: string): Promise<unknown> {
  const { roles, problems } = await of.rulesFor(who, namespace, { cluster: acme, work: new WorkBudget(), signal })
  return [roles.flatMap(({ rules }) => rules.map((rule) => JSON.stringify(rule))).sort(), [...problems].sort()]
}
function user(name: string): object {
  return { apiGroup: rbac, kind: 'User', name }
}
/** `on('get', 'apps/deployments/scale', 'web', 'shop')` */
function on(verb: string, path: string, name = '', namespace = ''): Attributes {
  const [group = '', resource = '', subresource = ''] = path.split('/')
  return { verb, resource: { group, version: 'v1', resource, subresource, namespace, name } }
}
function clusterRole(name: string, rules: object[]): KubeObject & { rules: object[] } {
  return { apiVersion: `${rbac}/v1`, kind: 'ClusterRole', metadata: { name }, rules }
}
function role(namespace: string, name: string, rules: object[]): KubeObject {
  return { apiVersion: `${rbac}/v1`, kind: 'Role', metadata: { name, namespace }, rules }
}
function clusterRoleBinding(name: string, roleName: string, ...subjects: object[]): KubeObject {
  return {
    apiVersion: `${rbac}/v1`,
    kind: 'ClusterRoleBinding',
    metadata: { name },
    roleRef: { apiGroup: rbac, kind: 'ClusterRole', name: roleName },
    subjects,
  }
}
function roleBinding(namespace: string, name: string, roleRef: object, ...subjects: object[]): KubeObject {
  return {
    apiVersion: `${rbac}/v1`,
    kind: 'RoleBinding',
    metadata: { name, namespace },
    roleRef: { apiGroup: rbac, ...roleRef },
    subjects,
  }
}
function wildcard(verb: string): RequestInfo {
  const cluster: ClusterScope = { kind: 'all' }
  const target = {
    kind: 'resource',
    group: '',
    version: 'v1',
    resource: 'pods',
    namespace: '',
    name: '',
    subresource: '',
    rest: '',
  } as const
  return {
    entryPoint: 'direct',
    cluster,
    verb,
    method: 'GET',
    target,
    query: new URLSearchParams(),
    basePath: '/clusters/*',
  }
}
