// Group apis.kcp.io: an API that one logical cluster exports and others bind, in a server with an embedded store.
import { expect } from 'chai'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import type { LogicalCluster } from '#crds/index.ts'
import { sleep } from '#async/index.ts'
import { rounds, waitFor } from '#test/support/index.ts'
import { startInstance, type KcpInstance, type Tenant } from './kcp-instance.ts'

const races = rounds({ short: 8, long: 1000 })
const apis = '/apis/apis.kcp.io'
const bindings = `${apis}/v1alpha2/apibindings`
const definitions = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'
const rbac = '/apis/rbac.authorization.k8s.io/v1'
const widgets = '/apis/example.io/v1/namespaces/default/widgets'

interface KubeList {
  readonly items: KubeObject[]
}

const widget = (name: string, spec: object): object => ({
  apiVersion: 'example.io/v1',
  kind: 'Widget',
  metadata: { name },
  spec,
})

/** The definition of widgets with these properties of the spec. */
function widgetDefinition(properties: object = { size: { type: 'integer' }, color: { type: 'string' } }): object {
  const spec = { type: 'object', properties }
  const names = { plural: 'widgets', singular: 'widget', kind: 'Widget', listKind: 'WidgetList' }
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: 'widgets.example.io' },
    spec: {
      group: 'example.io',
      scope: 'Namespaced',
      names,
      versions: [
        {
          name: 'v1',
          served: true,
          storage: true,
          schema: { openAPIV3Schema: { type: 'object', properties: { spec } } },
        },
      ],
    },
  }
}

const widgetBinding = (spec: object = {}): object => ({
  apiVersion: 'apis.kcp.io/v1alpha2',
  kind: 'APIBinding',
  metadata: { name: 'widgets' },
  spec: { reference: { export: { path: 'provider', name: 'widgets' } }, ...spec },
})

interface WithConditions extends KubeObject {
  readonly status?: { readonly conditions?: { type: string; status: string; reason?: string }[] }
}
const conditionsOf = ({ status }: WithConditions) => status?.conditions ?? []
const isReady = (object: WithConditions): boolean =>
  conditionsOf(object).some(({ type, status }) => type === 'Ready' && status === 'True')
const hasReason =
  (reason: string) =>
  (object: WithConditions): boolean =>
    conditionsOf(object).some((condition) => condition.reason === reason)

/** The object once it is as wanted. */
async function until(tenant: Tenant, path: string, isWanted: (object: WithConditions) => boolean): Promise<KubeObject> {
  return waitFor(
    async () => {
      const object = await get<WithConditions>(tenant, 'GET', path)
      if (!isWanted(object)) throw new Error(JSON.stringify(object.status))
      return object
    },
    { what: path, deadlineMs: 10_000 },
  )
}

interface WithEndpoints extends KubeObject {
  readonly status?: { readonly endpoints?: { url: string }[] }
}

const eventually = (probe: () => Promise<boolean>): Promise<unknown> =>
  waitFor(probe, { what: 'the view to change', deadlineMs: 10_000 })

const gone = (tenant: Tenant, path: string): Promise<unknown> =>
  waitFor(async () => (await ask(tenant, 'GET', path)).status === 404, {
    what: `the end of ${path}`,
    deadlineMs: 10_000,
  })

interface Response {
  readonly status: number
  readonly text: string
  readonly json: () => Record<string, unknown>
}

/** A request to the logical cluster of `tenant`; PATCH is a merge patch. */
async function ask(tenant: Tenant, method: string, path: string, body?: object): Promise<Response> {
  const type = method === 'PATCH' ? 'application/merge-patch+json' : 'application/json'
  const options = body === undefined ? {} : { body: JSON.stringify(body), headers: ['content-type', type] }
  return tenant.http.request(method, `${tenant.base}${path}`, options)
}

/** The same, for a response that must be a success. */
async function get<T = KubeObject>(...request: Parameters<typeof ask>): Promise<T> {
  const { status, text } = await ask(...request)
  expect(status, `${request[1]} ${request[2]}: ${text}`).to.be.within(200, 201)
  return JSON.parse(text) as T
}

describe('shared APIs', function () {
  this.timeout(120_000)
  let kcp: KcpInstance
  let provider: Tenant
  let consumer: Tenant

  before(async () => {
    kcp = await startInstance()
    provider = await kcp.tenant('provider')
    consumer = await kcp.tenant('consumer')
  })
  after(() => kcp[Symbol.asyncDispose]())

  it('shows an export written as v1alpha1 in both versions, and loses nothing that v1alpha1 lacks', async () => {
    const old = {
      apiVersion: 'apis.kcp.io/v1alpha1',
      kind: 'APIExport',
      metadata: { name: 'both' },
      spec: {
        latestResourceSchemas: ['v1.gadgets.example.io'],
        permissionClaims: [{ group: '', resource: 'configmaps', all: true }],
      },
    }
    await get(provider, 'POST', `${apis}/v1alpha1/apiexports`, old)
    const path = (version: string): string => `${apis}/${version}/apiexports/both`
    const spec = (await get(provider, 'GET', path('v1alpha2')))['spec'] as Record<string, unknown[]>
    expect(spec['resources']).to.deep.equal([
      { group: 'example.io', name: 'gadgets', schema: 'v1.gadgets.example.io', storage: { crd: {} } },
    ])
    expect(spec['permissionClaims']?.[0]).to.include({ resource: 'configmaps', group: '' })
    const claims = [{ resource: 'configmaps', verbs: ['get'], namespaces: ['default'] }]
    await get(provider, 'PATCH', path('v1alpha2'), { spec: { permissionClaims: claims } })
    // The server writes the status meanwhile.
    await waitFor(
      async () => {
        const current = await get(provider, 'GET', path('v1alpha1'))
        return (await ask(provider, 'PUT', path('v1alpha1'), current)).status === 200
      },
      { what: 'the update', deadlineMs: 10_000 },
    )
    const after = (await get(provider, 'GET', path('v1alpha2')))['spec'] as { permissionClaims: object[] }
    expect(after.permissionClaims[0]).to.deep.include({ verbs: ['get'], namespaces: ['default'] })
  })
  it('serves an exported CustomResourceDefinition in a logical cluster that binds it', async () => {
    await exportWidgets()
    const refused = await ask(consumer, 'POST', bindings, widgetBinding())
    expect(refused.status, refused.text).to.equal(403)
    expect(refused.text).to.include('verb \\"bind\\"')
    await letBind()
    await get(consumer, 'POST', bindings, widgetBinding())
    const bound = await until(consumer, `${bindings}/widgets`, isReady)
    expect(bound['status']).to.deep.include({ phase: 'Bound', apiExportClusterName: 'provider', revision: 1 })
    await get(consumer, 'POST', widgets, widget('one', { size: 3 }))
    const invalid = await ask(consumer, 'POST', widgets, widget('two', { size: 'large' }))
    expect(invalid.status, invalid.text).to.equal(422)
    expect((await get<KubeList>(consumer, 'GET', widgets)).items).to.have.length(1)
    expect((await get<KubeList>(provider, 'GET', widgets)).items).to.have.length(0)
    const { stdout } = await consumer.kubectl(['api-resources', '--api-group=example.io', '-o', 'name'])
    expect(stdout.trim()).to.equal('widgets.example.io')
    const { stdout: explained } = await consumer.kubectl(['explain', 'widget.spec.size'])
    expect(explained).to.include('<integer>')
  })

  it('refuses a definition of a resource that a binding gives, and a binding of a resource that is defined', async () => {
    const own = await ask(consumer, 'POST', definitions, widgetDefinition())
    expect(own.status, own.text).to.equal(422)
    expect(own.text).to.include('belongs to APIBinding')
    const other = await kcp.tenant('defined')
    await get(other, 'POST', definitions, widgetDefinition())
    await letBind('system:authenticated', 'everybody')
    await get(other, 'POST', bindings, widgetBinding())
    const conflicting = await until(other, `${bindings}/widgets`, hasReason('NamingConflicts'))
    expect(conflicting['status']).to.not.have.property('boundResources')
  })

  it('keeps a binding that is being deleted while objects exist, and refuses new ones', async () => {
    await get(consumer, 'DELETE', `${bindings}/widgets`)
    await until(consumer, `${bindings}/widgets`, hasReason('ObjectsExist'))
    const refused = await ask(consumer, 'POST', widgets, widget('late', {}))
    expect(refused.status, refused.text).to.equal(405)
    await get(consumer, 'PATCH', `${bindings}/widgets`, { spec: { deletionPolicy: 'Delete' } })
    await gone(consumer, `${bindings}/widgets`)
    expect((await ask(consumer, 'GET', widgets)).status).to.equal(404)
  })

  describe('through the view of the provider', () => {
    const view = '/services/apiexport/provider/widgets/clusters'
    let viewer: Tenant
    const ask_ = (method: string, path: string, body?: object) => ask({ ...provider, base: view }, method, path, body)
    const get_ = <T = KubeObject>(method: string, path: string, body?: object): Promise<T> =>
      get<T>({ ...provider, base: view }, method, path, body)

    before(async () => {
      viewer = await kcp.tenant('viewed')
      await get(provider, 'PATCH', `${apis}/v1alpha2/apiexports/widgets`, {
        spec: { permissionClaims: [{ group: '', resource: 'configmaps', verbs: ['*'] }] },
      })
      await get(viewer, 'POST', bindings, widgetBinding())
      await until(viewer, `${bindings}/widgets`, isReady)
      await get(viewer, 'POST', widgets, widget('one', { size: 1 }))
    })

    it('lists exported objects of all consumers, with the annotations of their logical clusters', async () => {
      const { items } = await get_<KubeList>('GET', '/*/apis/example.io/v1/widgets')
      const shown = items.filter(({ metadata }) => metadata.name === 'one')
      expect(shown.map(({ metadata }) => metadata.annotations?.['kcp.io/cluster'])).to.deep.equal(['viewed'])
      const slice = await get<WithEndpoints>(provider, 'GET', `${apis}/v1alpha1/apiexportendpointslices/widgets`)
      expect(slice.status?.endpoints?.[0]?.url).to.equal(
        `https://127.0.0.1:${kcp.port}/services/apiexport/provider/widgets`,
      )
      const bound = await get_<KubeList>('GET', '/*/apis/apis.kcp.io/v1alpha1/apibindings')
      expect(new Set(bound.items.map(({ metadata }) => metadata.name))).to.deep.equal(new Set(['widgets']))
    })

    it('writes exported objects of a consumer, and stores none of the annotations of the view', async () => {
      const path = '/viewed/apis/example.io/v1/namespaces/default/widgets/one'
      const shown = await get_('GET', path)
      expect(shown.metadata.annotations).to.include({ 'kcp.io/cluster': 'viewed' })
      const same = await get_('PUT', path, shown)
      expect(same.metadata.resourceVersion).to.equal(shown.metadata.resourceVersion)
      await get_('PUT', path, { ...shown, spec: { size: 5 } })
      const stored = await get(viewer, 'GET', `${widgets}/one`)
      expect(stored.metadata).to.not.have.property('annotations')
      expect(stored['spec']).to.deep.equal({ size: 5 })
    })

    it('shows claimed objects once the consumer has accepted the claim, and hides them when it rejects the claim', async () => {
      const configMaps = '/viewed/api/v1/namespaces/default/configmaps'
      const refused = await ask_('GET', configMaps)
      expect(refused.status, refused.text).to.equal(403)
      expect((await get_<KubeList>('GET', '/*/api/v1/configmaps')).items).to.be.empty
      await answerClaim('Accepted')
      await eventually(async () => (await get_<KubeList>('GET', '/*/api/v1/configmaps')).items.length > 0)
      await get_('POST', configMaps, { metadata: { name: 'from-provider' }, data: { a: 'b' } })
      await answerClaim('Rejected')
      await eventually(async () => (await get_<KubeList>('GET', '/*/api/v1/configmaps')).items.length === 0)
      expect((await ask_('GET', `${configMaps}/from-provider`)).status).to.equal(403)
    })

    it('watches: objects appear when a claim is accepted and disappear when it is rejected', async () => {
      await using watch = await provider.http.watch(
        `${view}/*/api/v1/configmaps?watch=1&fieldSelector=metadata.name=from-provider`,
      )
      await answerClaim('Accepted')
      const added = await watch.next()
      expect(added?.type).to.equal('ADDED')
      expect(added?.object.metadata.annotations).to.include({ 'kcp.io/cluster': 'viewed' })
      await answerClaim('Rejected')
      expect((await watch.next())?.type).to.equal('DELETED')
    })

    it('shows objects that exported objects name, and no others, while they name them', async () => {
      const reference = { resource: 'widgets', group: 'example.io', namePath: 'spec.color' }
      const claim = { group: '', resource: 'secrets', verbs: ['*'], reference }
      const before = (await get(provider, 'GET', `${apis}/v1alpha2/apiexports/widgets`))['spec'] as {
        permissionClaims: object[]
      }
      await get(provider, 'PATCH', `${apis}/v1alpha2/apiexports/widgets`, {
        spec: { permissionClaims: [...before.permissionClaims, claim] },
      })
      const answer = { group: '', resource: 'secrets', verbs: ['*'], selector: { matchAll: true }, state: 'Accepted' }
      await get(viewer, 'PATCH', `${bindings}/widgets`, { spec: { permissionClaims: [answer] } })
      const secrets = '/viewed/api/v1/namespaces/default/secrets'
      for (const name of ['named', 'other'])
        await get(viewer, 'POST', '/api/v1/namespaces/default/secrets', { metadata: { name } })
      await eventually(async () => (await ask_('GET', secrets)).status === 200)
      await using watch = await provider.http.watch(`${view}/*/api/v1/secrets?watch=1`)
      const { items: none } = await get_<KubeList>('GET', '/*/api/v1/secrets')
      expect(none).to.be.empty
      await get(viewer, 'POST', widgets, widget('naming', { color: 'named' }))
      expect(await watch.next()).to.nested.include({ type: 'ADDED', 'object.metadata.name': 'named' })
      const { items } = await get_<KubeList>('GET', secrets)
      expect(items.map(({ metadata }) => metadata.name)).to.deep.equal(['named'])
      expect((await ask_('GET', `${secrets}/other`)).status).to.equal(404)
      expect((await ask_('PATCH', `${secrets}/other`, { metadata: { labels: { a: 'b' } } })).status).to.equal(404)
      expect((await ask_('POST', secrets, { metadata: { name: 'third' } })).status).to.equal(403)
      await get(viewer, 'DELETE', `${widgets}/naming`)
      expect(await watch.next()).to.nested.include({ type: 'DELETED', 'object.metadata.name': 'named' })
      expect((await get_<KubeList>('GET', secrets)).items).to.be.empty
      await get(provider, 'PATCH', `${apis}/v1alpha2/apiexports/widgets`, { spec: before })
    })

    it('refuses what is neither exported nor claimed, other logical clusters, other users, and writes over all', async () => {
      expect((await ask_('GET', '/viewed/api/v1/namespaces/default/secrets')).status).to.equal(404)
      expect((await ask_('GET', '/*/api/v1/secrets')).status).to.equal(404)
      const [unbound, missing] = [
        await ask_('GET', '/defined/api/v1/configmaps'),
        await ask_('GET', '/nowhere/api/v1/configmaps'),
      ]
      expect([unbound.status, missing.status]).to.deep.equal([403, 403])
      expect(unbound.text.replaceAll('defined', 'nowhere')).to.equal(missing.text)
      expect((await viewer.http.request('GET', `${view}/*/apis/example.io/v1/widgets`)).status).to.equal(401)
      expect((await ask_('POST', '/*/apis/example.io/v1/namespaces/default/widgets', widget('x', {}))).status).to.equal(
        403,
      )
      expect((await ask_('DELETE', '/viewed/')).status).to.equal(404)
      const own = await ask(viewer, 'PATCH', `${bindings}/widgets/status`, { status: { exportUID: 'forged' } })
      expect(own.status, own.text).to.equal(403)
    })

    it('writes large objects, exported and claimed, within what the consumer has accepted', async () => {
      const text = 'x'.repeat(700_000)
      const path = '/viewed/apis/example.io/v1/namespaces/default/widgets'
      const large = await get_('POST', path, widget('large', { color: text }))
      expect(large.metadata.annotations).to.include({ 'kcp.io/cluster': 'viewed' })
      const stored = await get(viewer, 'GET', `${widgets}/large`)
      expect(stored.metadata).to.not.have.property('annotations')
      await get_('DELETE', `${path}/large`)
      const configMap = { metadata: { name: 'large' }, data: { text } }
      const configMaps = '/viewed/api/v1/namespaces/default/configmaps'
      await answerClaim('Accepted', { namespaces: ['other'] })
      await eventually(async () => (await ask_('GET', configMaps)).status === 200)
      const refused = await ask_('POST', configMaps, configMap)
      expect(refused.status, refused.text).to.equal(403)
      await answerClaim('Accepted')
      await eventually(async () => (await ask_('POST', configMaps, configMap)).status === 201)
      await answerClaim('Rejected')
    })

    it('serves discovery of the exported and claimed resources alone', async () => {
      for (const cluster of ['*', '%2A', 'viewed']) {
        const { groups } = await get_<{ groups: { name: string }[] }>('GET', `/${cluster}/apis`)
        expect(groups.map(({ name }) => name)).to.have.members(['apis.kcp.io', 'example.io'])
        const core = await get_<{ resources: { name: string }[] }>('GET', `/${cluster}/api/v1`)
        expect(core.resources.map(({ name }) => name)).to.deep.equal(['configmaps'])
      }
    })

    async function answerClaim(state: string, bounds: object = {}): Promise<void> {
      const claim = { group: '', resource: 'configmaps', verbs: ['*'], selector: { matchAll: true }, state, ...bounds }
      await get(viewer, 'PATCH', `${bindings}/widgets`, { spec: { permissionClaims: [claim] } })
    }
  })

  it(`give a resource one owner in ${races} races of a definition and a binding`, async function () {
    this.timeout(races * 2000 + 60_000)
    const racer = await kcp.tenant('racer')
    const wins = { definition: 0, binding: 0 }
    for (let i = 0; i < races; i++) {
      // The binding is bound some milliseconds after its write.
      const later = sleep((i % 8) * 2, AbortSignal.timeout(5000)).then(() =>
        ask(racer, 'POST', definitions, widgetDefinition()),
      )
      const [bindingAnswer, definitionAnswer] = await Promise.all([
        ask(racer, 'POST', bindings, widgetBinding()),
        later,
      ])
      expect(bindingAnswer.status, bindingAnswer.text).to.equal(201)
      const settled = await until(
        racer,
        `${bindings}/widgets`,
        (one) => isReady(one) || hasReason('NamingConflicts')(one),
      )
      const isBound = isReady(settled)
      expect(isBound, `${String(definitionAnswer.status)} ${definitionAnswer.text}`).to.equal(
        definitionAnswer.status === 422,
      )
      wins[isBound ? 'binding' : 'definition']++
      if (!isBound) await get(racer, 'DELETE', `${definitions}/widgets.example.io`)
      await get(racer, 'DELETE', `${bindings}/widgets`)
      await gone(racer, `${bindings}/widgets`)
      await gone(racer, `${definitions}/widgets.example.io`)
    }
    expect(wins.definition + wins.binding).to.equal(races)
  })

  it('let RBAC of the provider bound what users of consumers do, if the export says so', async () => {
    const bounded = await kcp.tenant('bounded')
    await get(bounded, 'POST', bindings, widgetBinding())
    await until(bounded, `${bindings}/widgets`, isReady)
    const exported = `${apis}/v1alpha2/apiexports/widgets`
    await get(provider, 'PATCH', exported, { spec: { maximalPermissionPolicy: { local: {} } } })
    await eventually(async () => (await ask(bounded, 'GET', widgets)).status === 403)
    const rules = [{ apiGroups: ['example.io'], resources: ['widgets'], verbs: ['get', 'list'] }]
    await get(provider, 'POST', `${rbac}/clusterroles`, { metadata: { name: 'bounds' }, rules })
    await get(provider, 'POST', `${rbac}/clusterrolebindings`, {
      metadata: { name: 'bounds' },
      subjects: [
        { kind: 'Group', apiGroup: 'rbac.authorization.k8s.io', name: 'apis.kcp.io:binding:system:authenticated' },
      ],
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'bounds' },
    })
    await get(bounded, 'GET', widgets)
    const refused = await ask(bounded, 'POST', widgets, widget('no', {}))
    expect(refused.status, refused.text).to.equal(403)
    expect(refused.text).to.include('maximal permission policy')
    await get(provider, 'PATCH', exported, { spec: { maximalPermissionPolicy: null } })
    await eventually(async () => (await ask(bounded, 'POST', widgets, widget('yes', {}))).status === 201)
  })

  describe('that change', () => {
    let [first, second]: Tenant[] = []
    const exportPath = `${apis}/v1alpha2/apiexports/widgets`

    before(async () => {
      ;[first, second] = await Promise.all([kcp.tenant('first'), kcp.tenant('second')])
      for (const tenant of [first, second]) {
        await get(tenant, 'POST', bindings, widgetBinding())
        await until(tenant, `${bindings}/widgets`, isReady)
      }
      await get(first, 'POST', widgets, widget('colored', { color: 'red' }))
    })

    it('reach consumers as a new revision, but not one whose objects would lose a field', async () => {
      await redefine({ size: { type: 'integer' }, weight: { type: 'integer' } })
      const held = await until(first!, `${bindings}/widgets`, hasReason('ObjectsWouldBreak'))
      expect(JSON.stringify(held['status'])).to.include('default/colored').and.to.include('spec.color')
      expect(isReady(held)).to.equal(true)
      await get(first!, 'POST', widgets, widget('still', { color: 'blue' }))
      const exported = await until(provider, exportPath, hasReason('Held'))
      expect(JSON.stringify(exported['status'])).to.include('"cluster":"first"')
      for (const name of ['colored', 'still']) await get(first!, 'DELETE', `${widgets}/${name}`)
      await get(first!, 'PATCH', `${bindings}/widgets`, { metadata: { labels: { again: 'yes' } } })
      await until(first!, `${bindings}/widgets`, (object) => (object.status as { revision?: number }).revision === 2)
      await until(second!, `${bindings}/widgets`, (object) => (object.status as { revision?: number }).revision === 2)
      await get(second!, 'POST', widgets, widget('heavy', { weight: 7 }))
      expect((await get(second!, 'GET', `${widgets}/heavy`))['spec']).to.deep.equal({ weight: 7 })
    })

    it('wait while the rollout is paused', async () => {
      await get(provider, 'PATCH', exportPath, { spec: { rollout: { pause: true } } })
      await redefine({ size: { type: 'integer' }, weight: { type: 'integer' }, height: { type: 'integer' } })
      await until(provider, exportPath, hasReason('Paused'))
      await until(second!, `${bindings}/widgets`, hasReason('NotReleased'))
      await get(provider, 'PATCH', exportPath, { spec: { rollout: { pause: false } } })
      await until(second!, `${bindings}/widgets`, (object) => (object.status as { revision?: number }).revision === 3)
    })

    it('leave the objects of an orphaning binding to a successor that asks for them, with their uids', async () => {
      const { metadata } = await get(second!, 'GET', `${widgets}/heavy`)
      await get(second!, 'PATCH', `${bindings}/widgets`, { spec: { deletionPolicy: 'Orphan' } })
      await get(second!, 'DELETE', `${bindings}/widgets`)
      await gone(second!, `${bindings}/widgets`)
      expect((await ask(second!, 'GET', `${widgets}/heavy`)).status).to.equal(404)
      await get(second!, 'POST', bindings, widgetBinding())
      await until(second!, `${bindings}/widgets`, hasReason('ObjectsLeft'))
      await get(second!, 'PATCH', `${bindings}/widgets`, { spec: { adoptExisting: true } })
      await until(second!, `${bindings}/widgets`, isReady)
      expect((await get(second!, 'GET', `${widgets}/heavy`)).metadata.uid).to.equal(metadata.uid)
    })

    it('keep a tenant from revisions, statuses, finalizers and the reference', async () => {
      const { items } = await get<KubeList>(provider, 'GET', `${apis}/v1alpha1/apiexportrevisions`)
      const revision = `${apis}/v1alpha1/apiexportrevisions/${items[0]?.metadata.name ?? ''}`
      expect((await ask(provider, 'DELETE', revision)).status).to.equal(403)
      expect((await ask(provider, 'PATCH', revision, { spec: { revision: 9 } })).status).to.equal(403)
      expect((await ask(provider, 'PATCH', `${exportPath}/status`, { status: { revision: 9 } })).status).to.equal(403)
      const bound = `${bindings}/widgets`
      const changed = await ask(first!, 'PATCH', bound, { spec: { reference: { export: { path: 'viewed' } } } })
      expect(changed.status, changed.text).to.equal(422)
      const { metadata } = await get(first!, 'PATCH', bound, { metadata: { finalizers: [] } })
      expect(metadata.finalizers).to.deep.equal(['apis.kcp.io/apibinding-finalizer'])
    })

    async function redefine(properties: object): Promise<void> {
      const path = `${definitions}/widgets.example.io`
      const current = await get(provider, 'GET', path)
      const wanted = widgetDefinition(properties) as { spec: object }
      await get(provider, 'PUT', path, { ...current, spec: wanted.spec })
    }
  })

  async function exportWidgets(): Promise<void> {
    await get(provider, 'POST', definitions, widgetDefinition())
    const resources = [{ name: 'widgets', group: 'example.io', crd: 'widgets.example.io' }]
    const object = {
      apiVersion: 'apis.kcp.io/v1alpha2',
      kind: 'APIExport',
      metadata: { name: 'widgets' },
      spec: { resources },
    }
    await get(provider, 'POST', `${apis}/v1alpha2/apiexports`, object)
  }

  /** Lets a group of users, by default all users of the consumer, bind the exports of the provider. */
  async function letBind(group?: string, name = 'bind'): Promise<void> {
    const role = { rules: [{ apiGroups: ['apis.kcp.io'], resources: ['apiexports'], verbs: ['bind'] }] }
    await get(provider, 'POST', `${rbac}/clusterroles`, { metadata: { name }, ...role })
    const { status } = await get<LogicalCluster>(kcp.admin, 'GET', '/apis/kcp.dev/v1alpha1/logicalclusters/consumer')
    await get(provider, 'POST', `${rbac}/clusterrolebindings`, {
      metadata: { name },
      subjects: [
        { kind: 'Group', apiGroup: 'rbac.authorization.k8s.io', name: group ?? `system:cluster:${status?.id ?? ''}` },
      ],
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name },
    })
  }
})
