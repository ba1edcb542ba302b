import { expect } from 'chai'
import { startServedApi, untilTrue, type Reply, type ServedApi, type ServedTenant } from './served-api.ts'

const logicalClusters = { group: 'kcp.dev', version: 'v1alpha1', resource: 'logicalclusters' }
const rbac = '/apis/rbac.authorization.k8s.io/v1'
const admission = '/apis/admissionregistration.k8s.io/v1'
const crds = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'
const inherit = { 'kcp.dev/inherit': 'true' }

describe('a tree of logical clusters', () => {
  let served: ServedApi
  let acme: ServedTenant
  let dev: ServedTenant
  let test: ServedTenant
  let other: ServedTenant
  let alice: ServedTenant

  before(async () => {
    served = await startServedApi()
    acme = await served.tenant('acme')
    ;[dev, test, other] = [await served.tenant('dev'), await served.tenant('test'), await served.tenant('other')]
    await setParent(dev, 'acme')
    await setParent(test, 'acme')
    alice = await served.user(acme, 'alice')
  })
  after(() => served[Symbol.asyncDispose]())

  async function setParent({ name, id }: ServedTenant, parent: string | null, more: object = {}): Promise<void> {
    const spec = { parentRef: parent === null ? null : { name: parent }, ...more }
    await served.root.patch(logicalClusters, { name }, 'merge', { spec }, { signal: served.signal })
    await untilTrue(() => served.api.directory.byId(id)?.parent === (parent ?? undefined), `${name} is below ${parent}`)
  }
  const as = (who: ServedTenant, place: ServedTenant, path: string, body?: object, method?: string): Promise<Reply> =>
    who.request(method ?? (body === undefined ? 'GET' : 'POST'), `${place.base}${path}`, {
      ...(body === undefined ? {} : { body }),
      ...(method === 'PATCH' ? { headers: { 'content-type': 'application/merge-patch+json' } } : {}),
    })
  const must = async (reply: Promise<Reply>): Promise<Reply> => {
    const found = await reply
    expect(found.status, found.text).to.be.lessThan(300)
    return found
  }
  const bind = (name: string, role: string, subject: object, labels: object = inherit) => ({
    metadata: { name, labels },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: role },
    subjects: [subject],
  })
  const configMaps = '/api/v1/namespaces/default/configmaps'
  const secrets = '/api/v1/namespaces/default/secrets'

  describe('identities and roles', () => {
    it('let a user of the parent in below, under a name of its own, with inherited rights only', async () => {
      expect((await as(alice, dev, configMaps)).status).to.equal(403)
      await must(as(acme, acme, `${rbac}/clusterrolebindings`, bind('leads', 'edit', { kind: 'User', name: 'alice' })))
      await must(as(alice, dev, configMaps, { metadata: { name: 'by-alice' } }))
      const refused = await as(alice, dev, '/api/v1/nodes')
      expect(refused.status).to.equal(403)
      expect(refused.text).to.contain('User \\"cluster:acme:alice\\" cannot list resource')
      expect(refused.text).to.contain('ClusterRoleBinding \\"leads\\" inherited from logical cluster \\"acme\\"')
    })

    it('explain themselves in access reviews', async () => {
      const review = { spec: { resourceAttributes: { verb: 'list', resource: 'configmaps', namespace: 'default' } } }
      const self = await must(as(alice, dev, '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews', review))
      expect(self.text).to.contain('inherited from logical cluster \\"acme\\"')
      const of = (user: string, groups: string[] = []) =>
        as(dev, dev, '/apis/authorization.k8s.io/v1/subjectaccessreviews', { spec: { ...review.spec, user, groups } })
      expect((await must(of('cluster:acme:alice'))).text).to.contain('"allowed":true')
      expect((await must(of('alice'))).text).to.contain('"allowed":false')
      expect((await must(of('cluster:other:alice'))).text).to.contain('"allowed":false')
    })

    it('never confuse namesakes, whoever asks in whichever direction', async () => {
      const namesake = await served.user(dev, 'alice')
      for (const [who, place, status] of [
        [namesake, dev, 403],
        [namesake, acme, 401],
        [namesake, test, 401],
        [alice, other, 401],
        [dev, acme, 401],
        [dev, test, 401],
        [acme, dev, 403],
        [await served.user(dev, 'cluster:acme:alice'), dev, 401],
        [await served.user(dev, 'x', ['cluster:acme:system:masters']), dev, 401],
      ] as const)
        for (const path of [configMaps, secrets])
          expect((await as(who, place, path)).status, `${who.name} in ${place.name}`).to.equal(status)
    })

    it('take tokens of ServiceAccounts of the parent, and not for those of the same name below', async () => {
      const subject = { kind: 'ServiceAccount', namespace: 'default', name: 'default' }
      await must(as(acme, acme, `${rbac}/clusterrolebindings`, bind('robots', 'view', subject)))
      const tokenOf = async (place: ServedTenant): Promise<string> => {
        const path = '/api/v1/namespaces/default/serviceaccounts'
        await as(place, place, path, { metadata: { name: 'default' } })
        const { text } = await must(as(place, place, `${path}/default/token`, { spec: {} }))
        return (JSON.parse(text) as { status: { token: string } }).status.token
      }
      const stranger = await served.tenant('stranger')
      const ask = async (token: string, place: ServedTenant): Promise<number> => {
        const { status } = await fetchWithToken(stranger, `${place.base}${configMaps}`, token)
        return status
      }
      const [parents, childs] = [await tokenOf(acme), await tokenOf(dev)]
      expect([await ask(parents, dev), await ask(parents, test)]).to.deep.equal([200, 200])
      expect([await ask(parents, other), await ask(childs, acme), await ask(childs, test)]).to.deep.equal([
        401, 401, 401,
      ])
      expect(await ask(childs, dev)).to.equal(403)
    })

    it('let no admin below take rights above: no impersonation, no masters, no label without verb inherit', async () => {
      const { status, text } = await dev.request('GET', `${dev.base}${secrets}`, {
        headers: { 'impersonate-user': 'cluster:acme:alice' },
      })
      expect(status, 'an impersonated name inherits nothing').to.equal(403)
      expect(text).to.contain('cluster:acme:alice')
      const up = await dev.request('GET', `${acme.base}${secrets}`, { headers: { 'impersonate-user': 'alice' } })
      expect(up.status).to.equal(401)
      await must(
        as(acme, acme, `${rbac}/clusterrolebindings`, bind('makers', 'makers', { kind: 'User', name: 'alice' }, {})),
      )
      const rules = [
        { apiGroups: ['rbac.authorization.k8s.io'], resources: ['*'], verbs: ['create', 'update', 'bind'] },
      ]
      await must(as(acme, acme, `${rbac}/clusterroles`, { metadata: { name: 'makers' }, rules }))
      const mine = { kind: 'User', name: 'alice' }
      const marked = await as(alice, acme, `${rbac}/clusterrolebindings`, bind('grab', 'cluster-admin', mine))
      expect(marked.status).to.equal(403)
      expect(marked.text).to.contain('cannot inherit resource')
      await must(as(alice, acme, `${rbac}/clusterrolebindings`, bind('grab', 'view', mine, {})))
      const relabelled = await as(
        alice,
        acme,
        `${rbac}/clusterrolebindings/grab`,
        { metadata: { labels: inherit } },
        'PATCH',
      )
      expect(relabelled.status).to.equal(403)
    })

    it('are in force at once after an edit above, and end at once after a move', async () => {
      const lead = await served.user(acme, 'lead')
      await must(as(acme, acme, `${rbac}/clusterrolebindings`, bind('late', 'view', { kind: 'User', name: 'lead' })))
      await must(as(lead, dev, configMaps))
      await must(as(acme, acme, `${rbac}/clusterrolebindings/late`, undefined, 'DELETE'))
      expect((await as(lead, dev, configMaps)).status).to.equal(403)
      await must(as(acme, acme, `${rbac}/clusterrolebindings`, bind('late', 'view', { kind: 'User', name: 'lead' })))
      await setParent(dev, 'other')
      expect((await as(lead, dev, configMaps)).status).to.equal(401)
      await setParent(dev, 'acme')
      await must(as(lead, dev, configMaps))
    })
  })

  describe('CustomResourceDefinitions', () => {
    const widgets = (labels: object, field = 'size') => ({
      metadata: { name: 'widgets.example.com', labels },
      spec: {
        group: 'example.com',
        scope: 'Namespaced',
        names: { plural: 'widgets', kind: 'Widget' },
        versions: [
          {
            name: 'v1',
            served: true,
            storage: true,
            schema: {
              openAPIV3Schema: {
                type: 'object',
                properties: { spec: { type: 'object', properties: { [field]: { type: 'integer' } } } },
              },
            },
          },
        ],
      },
    })
    const path = '/apis/example.com/v1/namespaces/default/widgets'

    it('of the parent are served below, and the objects are stored below', async () => {
      expect((await as(dev, dev, path)).status).to.equal(404)
      await must(as(acme, acme, crds, widgets(inherit)))
      await must(
        as(dev, dev, path, {
          apiVersion: 'example.com/v1',
          kind: 'Widget',
          metadata: { name: 'a' },
          spec: { size: 1, shape: 'x' },
        }),
      )
      expect((await as(dev, dev, `${path}/a`)).text)
        .to.contain('"size":1')
        .and.not.to.contain('shape')
      expect((await as(dev, dev, '/apis')).text).to.contain('example.com')
      for (const place of [acme, test]) expect((await as(place, place, `${path}/a`)).status).to.equal(404)
      expect((await as(other, other, path)).status).to.equal(404)
      expect((await as(dev, dev, `${crds}/widgets.example.com`)).status, 'not copied').to.equal(404)
    })

    it('take large objects below, which another thread handles', async () => {
      const annotations = Object.fromEntries(Array.from({ length: 8000 }, (_, i) => [`example.com/key-${i}`, 'v']))
      const metadata = { name: 'large', annotations }
      await must(
        as(dev, dev, path, { apiVersion: 'example.com/v1', kind: 'Widget', metadata, spec: { size: 1, x: 2 } }),
      )
      expect((await as(dev, dev, `${path}/large`)).text)
        .to.contain('"size":1')
        .and.not.to.contain('"x":2')
      await must(as(dev, dev, `${path}/large`, undefined, 'DELETE'))
    })

    it('change below with the parent, at once', async () => {
      await must(as(acme, acme, `${crds}/widgets.example.com`, { spec: widgets({}, 'shape').spec }, 'PATCH'))
      const bad = { apiVersion: 'example.com/v1', kind: 'Widget', metadata: { name: 'b' }, spec: { shape: 'x' } }
      expect((await as(dev, dev, path, bad)).status).to.equal(422)
      await must(as(acme, acme, `${crds}/widgets.example.com`, { spec: widgets({}, 'size').spec }, 'PATCH'))
    })

    it('of the logical cluster itself come first', async () => {
      const own = await must(as(test, test, crds, widgets({}, 'own')))
      expect(own.headers['warning']).to.contain('hides CustomResourceDefinition')
      const body = { apiVersion: 'example.com/v1', kind: 'Widget', metadata: { name: 'a' }, spec: { own: 1, size: 2 } }
      await must(as(test, test, path, body))
      expect((await as(test, test, `${path}/a`)).text)
        .to.contain('"own":1')
        .and.not.to.contain('size')
    })

    it('end below when the label goes, without a loss of objects', async () => {
      const label = (value: string | null) =>
        must(
          as(
            acme,
            acme,
            `${crds}/widgets.example.com`,
            { metadata: { labels: { 'kcp.dev/inherit': value } } },
            'PATCH',
          ),
        )
      await label(null)
      expect((await as(dev, dev, path)).status).to.equal(404)
      await label('true')
      expect((await as(dev, dev, `${path}/a`)).status).to.equal(200)
    })
  })

  describe('admission policies', () => {
    const policy = (expression: string) => ({
      metadata: { name: 'small' },
      spec: {
        failurePolicy: 'Fail',
        matchConstraints: {
          resourceRules: [{ apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE'], resources: ['configmaps'] }],
        },
        validations: [{ expression, message: 'too large' }],
      },
    })
    const binding = (labels: object) => ({
      metadata: { name: 'small', labels },
      spec: { policyName: 'small', validationActions: ['Deny'] },
    })
    const make = (place: ServedTenant, data: object) =>
      as(place, place, configMaps, { metadata: { generateName: 'c-' }, data })

    it('of ancestors act below, and cannot be switched off there', async () => {
      await must(as(acme, acme, `${admission}/validatingadmissionpolicies`, policy('object.data.size() < 2')))
      await must(as(acme, acme, `${admission}/validatingadmissionpolicybindings`, binding(inherit)))
      const refused = await make(dev, { a: '1', b: '2' })
      expect(refused.status).to.equal(422)
      expect(refused.text).to.contain("ValidatingAdmissionPolicy 'small' inherited from logical cluster 'acme'")
      await must(make(dev, { a: '1' }))
      await must(make(other, { a: '1', b: '2' }))
      expect(
        (await as(dev, dev, `${admission}/validatingadmissionpolicies/small`, undefined, 'DELETE')).status,
      ).to.equal(404)
      await must(as(dev, dev, `${admission}/validatingadmissionpolicies`, policy('true')))
      await must(as(dev, dev, `${admission}/validatingadmissionpolicybindings`, binding({})))
      expect((await make(dev, { a: '1', b: '2' })).status, 'a namesake below changes nothing').to.equal(422)
    })

    it('of ancestors act on large objects, too, which another thread handles', async () => {
      const many = Object.fromEntries(Array.from({ length: 30_000 }, (_, i) => [`key-${i}`, 'value']))
      const refused = await make(dev, many)
      expect(refused.status).to.equal(422)
      expect(refused.text).to.contain("inherited from logical cluster 'acme'")
      await must(make(other, many))
    })

    it('are excluded below only if the ancestor allows it', async () => {
      await setParent(test, 'acme', { inherit: { exclude: ['small'] } })
      await untilTrue(() => served.api.directory.byId(test.id)?.inherit !== undefined, 'the exclusion is known')
      expect((await make(test, { a: '1', b: '2' })).status).to.equal(422)
      await setParent(acme, null, { inherit: { allowExclusions: ['small'] } })
      await untilTrue(() => served.api.directory.byId(acme.id)?.inherit !== undefined, 'the permission is known')
      await must(make(test, { a: '1', b: '2' }))
      expect((await make(dev, { a: '1', b: '2' })).status).to.equal(422)
    })

    it('change objects below, if they mutate', async () => {
      const mutating = {
        metadata: { name: 'stamp' },
        spec: {
          failurePolicy: 'Fail',
          reinvocationPolicy: 'Never',
          matchConstraints: policy('').spec.matchConstraints,
          mutations: [
            {
              patchType: 'ApplyConfiguration',
              applyConfiguration: { expression: 'Object{metadata: Object.metadata{labels: {"by": "acme"}}}' },
            },
          ],
        },
      }
      await must(as(acme, acme, `${admission.replace('/v1', '/v1beta1')}/mutatingadmissionpolicies`, mutating))
      const bound = { metadata: { name: 'stamp', labels: inherit }, spec: { policyName: 'stamp' } }
      await must(as(acme, acme, `${admission.replace('/v1', '/v1beta1')}/mutatingadmissionpolicybindings`, bound))
      expect((await must(make(dev, { a: '1' }))).text).to.contain('"by":"acme"')
      expect((await must(make(other, { a: '1' }))).text).not.to.contain('"by":"acme"')
    })
  })
})

async function fetchWithToken(client: ServedTenant, path: string, token: string): Promise<Reply> {
  // The certificate of another logical cluster is not valid there, so the token decides.
  return client.request('GET', path, { headers: { authorization: `Bearer ${token}` } })
}

describe('limits of a subtree', () => {
  let served: ServedApi
  let team: ServedTenant
  let one: ServedTenant
  let two: ServedTenant
  before(async () => {
    served = await startServedApi()
    ;[team, one, two] = [await served.tenant('team'), await served.tenant('one'), await served.tenant('two')]
    await place('team', { limits: { objects: 10 } })
    await place('one', { parentRef: { name: 'team' } })
    await place('two', { parentRef: { name: 'team' } })
  })
  after(() => served[Symbol.asyncDispose]())

  async function place(name: string, spec: object): Promise<void> {
    await served.root.patch(logicalClusters, { name }, 'merge', { spec }, { signal: served.signal })
    // The write is visible in the directory after the event of the watch.
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
  const refusal = (name: string, spec: object): Promise<string> =>
    place(name, spec).then(
      () => 'written',
      (error: unknown) => (error as Error).message,
    )
  const make = (tenant: ServedTenant, name: string): Promise<Reply> =>
    tenant.request('POST', `${tenant.base}/api/v1/namespaces/default/configmaps`, { body: { metadata: { name } } })
  const fill = async (tenant: ServedTenant, prefix: string): Promise<number> => {
    for (let made = 0; made < 50; made++) {
      const { status, text } = await make(tenant, `${prefix}-${made}`)
      if (status === 403) {
        expect(text).to.match(/exceeded quota: objects of logical cluster/)
        return made
      }
      expect(status, text).to.equal(201)
    }
    throw new Error('no limit was enforced')
  }
  const drop = (tenant: ServedTenant, name: string): Promise<Reply> =>
    tenant.request('DELETE', `${tenant.base}/api/v1/namespaces/default/configmaps/${name}`)

  it('bound the sum of all that share them, whoever writes, also at the same time', async () => {
    await make(one, 'first')
    const both = await Promise.all(
      Array.from({ length: 20 }, (_, i) => make(i % 2 === 0 ? one : two, `burst-${i}`).then(({ status }) => status)),
    )
    expect(both.filter((status) => status === 201)).to.have.length(9)
    expect((await make(team, 'own')).status).to.equal(403)
    await drop(one, 'first')
    expect((await make(two, 'after')).status, 'a deletion makes room for a sibling').to.equal(201)
    expect((await make(one, 'again')).status).to.equal(403)
  })

  it('are carved up by limits below, which must fit into what is left', async () => {
    for (const tenant of [one, two])
      await tenant.request('DELETE', `${tenant.base}/api/v1/namespaces/default/configmaps`)
    expect(await refusal('one', { limits: { objects: 11 } })).to.match(/objects 11 is more than the 10 that are left/)
    expect(await refusal('one', { limits: { objects: 4 } })).to.equal('written')
    expect(await refusal('two', { limits: { objects: 7 } })).to.match(/objects 7 is more than the 6 that are left/)
    expect([await fill(one, 'a'), await fill(two, 'b')]).to.deep.equal([4, 6])
    expect(await refusal('one', { limits: { objects: 5 } }), 'nobody widens what is used up').to.match(
      /more than the 4/,
    )
    expect(await refusal('one', { limits: { objects: 3 } })).to.match(/use or set aside 4 already/)
    expect(await refusal('team', { limits: { objects: 9 } })).to.match(/use or set aside 10 already/)
  })

  it('are checked by a move, and free what has moved away', async () => {
    const small = await served.tenant('small')
    await place(small.name, { limits: { objects: 3 } })
    expect(await refusal('two', { parentRef: { name: 'small' } })).to.match(
      /objects 6 is more than the 3 that are left/,
    )
    expect(await refusal('one', { parentRef: null })).to.equal('written')
    expect(await fill(team, 'c')).to.equal(4)
  })

  it('count logical clusters below, and refuse cycles, depth, missing parents and removal of parents', async () => {
    await place('team', { limits: { objects: null, children: 1 } })
    expect(await refusal('small', { parentRef: { name: 'team' } })).to.match(
      /may have 1 logical clusters below it, and has 1/,
    )
    await place('team', { limits: { children: null } })
    expect(await refusal('team', { parentRef: { name: 'two' } })).to.match(/its parents form a cycle/)
    expect(await refusal('small', { parentRef: { name: 'nowhere' } })).to.match(
      /"nowhere", which is named as parent, does not exist/,
    )
    expect(await refusal('small', { parentRef: { name: 'root' } })).to.match(/"root" has no children/)
    const removal = served.root.delete(logicalClusters, { name: 'team' }, { signal: served.signal })
    expect(await removal.then(String, (error: unknown) => (error as Error).message)).to.match(
      /it has children: two; delete them/,
    )
    await place('team', { limits: { depth: 1 } })
    expect(await refusal('small', { parentRef: { name: 'two' }, limits: null })).to.match(
      /may have 1 levels below it, and this is level 2/,
    )
  })

  it('refuse a cycle by concurrent writes, every time', async () => {
    const names = ['x', 'y', 'z']
    for (const name of names) await served.tenant(name)
    for (let round = 0; round < 10; round++) {
      const outcomes = await Promise.all(
        names.map((name, i) => refusal(name, { parentRef: { name: names[(i + 1) % names.length] } })),
      )
      expect(outcomes.filter((outcome) => outcome === 'written').length, outcomes.join('; ')).to.be.lessThan(3)
      for (const name of names) await place(name, { parentRef: null })
    }
  })
})

describe('children through the API of their parent', () => {
  let served: ServedApi
  let acme: ServedTenant
  let beta: ServedTenant
  let flat: ServedTenant
  const path = '/apis/kcp.dev/v1alpha1/logicalclusters'
  before(async () => {
    served = await startServedApi()
    ;[acme, beta, flat] = [await served.tenant('acme'), await served.tenant('beta'), await served.tenant('flat')]
    for (const name of ['acme', 'beta'])
      await served.root.patch(
        logicalClusters,
        { name },
        'merge',
        { spec: { limits: { children: 2, objects: 20 } } },
        { signal: served.signal },
      )
    await untilTrue(() => served.api.directory.byId(beta.id)?.limits !== undefined, 'the limits are known')
  })
  after(() => served[Symbol.asyncDispose]())
  const on = (who: ServedTenant, method: string, name = '', body?: object, base = who.base): Promise<Reply> =>
    who.request(method, `${base}${path}${name && `/${name}`}`, {
      ...(body === undefined ? {} : { body: { apiVersion: 'kcp.dev/v1alpha1', kind: 'LogicalCluster', ...body } }),
      ...(method === 'PATCH' ? { headers: { 'content-type': 'application/merge-patch+json' } } : {}),
    })
  const named = (name: string, spec: object = {}): object => ({ metadata: { name }, spec })
  const hostOf = (place: ServedTenant, name: string) => {
    const child = [...served.api.directory.childrenOf(place.name)].find(
      (one) => one.labels?.['kcp.dev/child-name'] === name,
    )
    return child
  }

  it('are created, read, changed and deleted by those with permission there', async () => {
    const created = await on(acme, 'POST', '', named('dev'))
    expect(created.status, created.text).to.equal(201)
    expect(JSON.parse(created.text)).to.deep.include({ kind: 'LogicalCluster' })
    await untilTrue(() => hostOf(acme, 'dev') !== undefined, 'the child is served')
    expect(JSON.parse((await on(acme, 'GET', 'dev')).text)).to.have.nested.property('spec.parentRef.name', 'acme')
    const list = JSON.parse((await on(acme, 'GET')).text) as { items: { metadata: { name: string } }[] }
    expect(list.items.map(({ metadata }) => metadata.name)).to.deep.equal(['dev'])
    const changed = await on(acme, 'PATCH', 'dev', { spec: { limits: { objects: 5 } } })
    expect(changed.status, changed.text).to.equal(200)
    const wide = await on(acme, 'PATCH', 'dev', { spec: { limits: { objects: 21 } } })
    expect(wide.status).to.equal(422)
    expect(wide.text).to.contain('left of the limit of logical cluster')
  })

  it('belong to their creator, who comes in with the credentials of the parent', async () => {
    const child = hostOf(acme, 'dev')!
    const inside = await acme.request('GET', `/clusters/${child.name}/api/v1/namespaces/default/secrets`)
    expect(inside.status, inside.text).to.equal(200)
    const stranger = await beta.request('GET', `/clusters/${child.name}/api/v1/namespaces/default/secrets`)
    expect(stranger.status).to.equal(401)
  })

  it('have names that neither collide with nor reveal those of other tenants', async () => {
    expect((await on(beta, 'GET', 'dev')).status).to.equal(404)
    expect((await on(beta, 'GET', hostOf(acme, 'dev')!.name)).status).to.equal(404)
    for (const name of ['flat', 'acme', 'dev']) expect((await on(beta, 'GET', name)).status, name).to.equal(404)
    const same = await on(beta, 'POST', '', named('dev'))
    expect(same.status, same.text).to.equal(201)
    expect((await on(beta, 'POST', '', named('flat'))).status, 'the name of a top-level one is free below').to.equal(
      201,
    )
    expect((await on(acme, 'POST', '', named('dev'))).status).to.equal(409)
    expect((await on(beta, 'DELETE', hostOf(acme, 'dev')!.name)).status).to.equal(404)
  })

  it('that admins have made keep owners of the host, Secrets and level when a tenant changes them', async () => {
    const spec = {
      parentRef: { name: 'beta' },
      owners: [{ kind: 'User', name: 'alice' }],
      podSecurity: { enforce: 'privileged' },
      kubeconfigs: [{ namespace: 'flux', name: 'made', format: 'Flux' }],
      sleep: { afterIdle: '1h' },
    }
    await served.root.patch(
      logicalClusters,
      { name: 'beta' },
      'merge',
      { spec: { limits: { children: 3 } } },
      { signal: served.signal },
    )
    await untilTrue(() => served.api.directory.byId(beta.id)?.limits?.children === 3, 'the limit is known')
    const made = { apiVersion: 'kcp.dev/v1alpha1', kind: 'LogicalCluster', metadata: { name: 'made' }, spec }
    await served.root.create(logicalClusters, made, { signal: served.signal })
    await untilTrue(() => served.api.directory.byName('made' as ServedTenant['name']) !== undefined, 'it is served')
    const shown = await on(beta, 'GET', 'made')
    expect(shown.text).not.to.contain('alice').and.not.to.contain('flux')
    const changed = await on(beta, 'PATCH', 'made', {
      spec: { owners: [{ kind: 'User', name: 'bob' }], limits: { objects: 1 } },
    })
    expect(changed.status, changed.text).to.equal(200)
    const stored = await served.root.get(logicalClusters, { name: 'made' }, { signal: served.signal })
    expect(stored).to.have.nested.property('spec.podSecurity.enforce', 'privileged')
    expect(stored).to.have.nested.property('spec.kubeconfigs[0].namespace', 'flux')
    expect(stored).to.have.nested.property('spec.sleep.afterIdle', '1h')
    const put = await on(beta, 'PATCH', 'made', { spec: { sleep: { asleep: true } } })
    expect([put.status, put.text]).to.satisfy(
      ([status, text]: [number, string]) => status === 422 && text.includes('spec.sleep'),
    )
    expect(stored).to.have.nested.property('spec.owners').with.length(2)
    expect(JSON.stringify(stored)).to.contain('"name":"alice"').and.to.contain('"name":"cluster:beta:bob"')
    await on(beta, 'DELETE', 'made')
    await served.root.patch(
      logicalClusters,
      { name: 'made' },
      'merge',
      { metadata: { finalizers: [] } },
      { signal: served.signal },
    )
    await served.root.patch(
      logicalClusters,
      { name: 'beta' },
      'merge',
      { spec: { limits: { children: 2 } } },
      { signal: served.signal },
    )
    await untilTrue(() => served.api.directory.byId(beta.id)?.limits?.children === 2, 'the limit is back')
  })

  it('are as many as allowed, also if many are created at once', async () => {
    const many = await served.tenant('many')
    await served.root.patch(
      logicalClusters,
      { name: 'many' },
      'merge',
      { spec: { limits: { children: 3 } } },
      { signal: served.signal },
    )
    await untilTrue(() => served.api.directory.byId(many.id)?.limits !== undefined, 'the limit is known')
    const all = await Promise.all(Array.from({ length: 12 }, (_, i) => on(many, 'POST', '', named(`m-${i}`))))
    expect(all.filter(({ status }) => status === 201)).to.have.length(3)
  })

  it('have one of each name, also if two are created at once', async () => {
    const twin = await served.tenant('twin')
    const limits = { spec: { limits: { children: 9 } } }
    await served.root.patch(logicalClusters, { name: 'twin' }, 'merge', limits, { signal: served.signal })
    await untilTrue(() => served.api.directory.byId(twin.id)?.limits !== undefined, 'the limit is known')
    const both = await Promise.all(['same', 'same'].map((name) => on(twin, 'POST', '', named(name))))
    expect(both.map(({ status }) => status).sort()).to.deep.equal([201, 409])
  })

  it('are bounded, and refused with a forged parent, labels, Secrets of the installation or a wider level', async () => {
    await untilTrue(() => [...served.api.directory.childrenOf(beta.name)].length === 2, 'both children are known')
    const third = await on(beta, 'POST', '', named('third'))
    expect(third.status).to.equal(422)
    expect(third.text).to.contain('may have 2 logical clusters below it, and has 2')
    for (const [spec, reason] of [
      [{ parentRef: { name: 'beta' } }, 'is below'],
      [{ parentRef: { name: 'root' } }, 'is below'],
      [{ kubeconfigs: [{ namespace: 'x', name: 'y', format: 'Flux' }] }, 'for its admins'],
      [{ podSecurity: { enforce: 'privileged' } }, 'not wider'],
    ] as const) {
      const refused = await on(acme, 'POST', '', named('forged', spec))
      expect(refused.status, refused.text).to.equal(422)
      expect(refused.text).to.contain(reason)
    }
    const labelled = await on(acme, 'POST', '', { metadata: { name: 'x', labels: { tier: 'gold' } } })
    expect(labelled.status).to.equal(422)
    const moved = await on(acme, 'PATCH', 'dev', { spec: { parentRef: { name: 'beta' } } })
    expect(moved.status).to.equal(422)
  })

  it('are served nowhere else: not without limits.children, not by a copy of the definition, not to others', async () => {
    expect((await on(flat, 'GET')).status).to.equal(404)
    expect((await on(flat, 'POST', '', named('dev'))).status).to.equal(404)
    const bob = await served.user(acme, 'bob')
    for (const method of ['GET', 'POST'])
      expect((await on(bob, method, '', method === 'POST' ? named('b') : undefined)).status).to.equal(403)
    const crd = await served.root.get<{ spec: object } & Parameters<typeof served.root.create>[1]>(
      { group: 'apiextensions.k8s.io', version: 'v1', resource: 'customresourcedefinitions' },
      { name: 'logicalclusters.kcp.dev' },
      { signal: served.signal },
    )
    const copied = await flat.request('POST', `${flat.base}${crds}`, {
      body: { metadata: { name: 'logicalclusters.kcp.dev' }, spec: crd.spec },
    })
    expect(copied.status, copied.text).to.equal(201)
    expect((await on(flat, 'POST', '', named('fake'))).status).to.equal(201)
    expect([...served.api.directory.all()].some(({ name }) => name.startsWith('fake'))).to.equal(false)
  })

  it('tell watches what changes, and cannot go while they have children of their own', async () => {
    const open = await acme.open('GET', `${acme.base}${path}?watch=true&resourceVersion=0`)
    const lines: string[] = []
    open.on('data', (chunk: Buffer) => lines.push(chunk.toString()))
    const child = hostOf(acme, 'dev')!
    const grandchild = await on(acme, 'POST', '', named('deep'), `/clusters/${child.name}`)
    expect(grandchild.status, grandchild.text).to.equal(201)
    await untilTrue(() => [...served.api.directory.childrenOf(child.name)].length === 1, 'the grandchild is known')
    const held = await on(acme, 'DELETE', 'dev')
    expect(held.status).to.equal(409)
    expect(held.text).to.contain('it has children')
    expect((await on(acme, 'DELETE', 'deep', undefined, `/clusters/${child.name}`)).status).to.equal(200)
    await on(acme, 'PATCH', 'dev', { metadata: { annotations: { note: 'seen' } } })
    await untilTrue(() => lines.join('').includes('"note":"seen"'), 'the watch has told the change')
    open.destroy()
  })
})
