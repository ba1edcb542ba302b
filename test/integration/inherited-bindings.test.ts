// APIBindings that a parent marks as inherited: every logical cluster below is a consumer, too.
import { expect } from 'chai'
import type { KubeList } from '#apimachinery/meta/index.ts'
import type { APIBinding } from '#crds/index.ts'
import { waitFor } from '#test/support/index.ts'
import { startInstance, type KcpInstance, type Tenant } from './kcp-instance.ts'
import { answer, bindingPath, bindingTo, exportResource, isReady, send, until } from './shared-api-objects.ts'

const widgets = '/apis/example.io/v1/namespaces/default/widgets'
const rbac = '/apis/rbac.authorization.k8s.io/v1'
const clusters = '/apis/kcp.dev/v1alpha1/logicalclusters'
const marked = { metadata: { labels: { 'kcp.dev/inherit': 'true' } } }

describe('inherited bindings', function () {
  this.timeout(120_000)
  let kcp: KcpInstance
  let [provider, acme, dev, test, other]: Tenant[] = []

  before(async () => {
    kcp = await startInstance()
    ;[provider, acme, dev, test, other] = await Promise.all(
      ['provider', 'acme', 'dev', 'test', 'other'].map((name) => kcp.tenant(name)),
    )
    await exportResource(provider!, { permissionClaims: [{ resource: 'secrets', verbs: ['get'] }] })
    const claim = { resource: 'secrets', verbs: ['get'], selector: { matchAll: true }, state: 'Accepted' }
    await answer(acme!, 'POST', bindingPath(), bindingTo('provider', 'widgets', { permissionClaims: [claim] }))
    await until(acme!, bindingPath('widgets'), isReady)
    await setParent('dev', 'acme')
  })
  after(() => kcp[Symbol.asyncDispose]())

  const setParent = (name: string, parent: string): Promise<unknown> =>
    answer(kcp.admin, 'PATCH', `${clusters}/${name}`, { spec: { parentRef: { name: parent } } })

  it('bind those below, present and future, at all levels; nobody beside', async () => {
    expect((await send(dev!, 'GET', bindingPath('widgets'))).status).to.equal(404)
    await answer(acme!, 'PATCH', bindingPath('widgets'), marked)
    const inherited = await until<APIBinding>(dev!, bindingPath('widgets'), isReady)
    expect(inherited.metadata.annotations).to.include({ 'apis.kcp.io/inherited-from': 'acme' })
    await setParent('test', 'dev')
    await until(test!, bindingPath('widgets'), isReady)
    await answer(test!, 'POST', widgets, { apiVersion: 'example.io/v1', kind: 'Widget', metadata: { name: 'deep' } })
    const view = { ...provider!, base: '/services/apiexport/provider/widgets/clusters/*' }
    const { items } = await answer<KubeList>(view, 'GET', '/apis/example.io/v1/widgets')
    expect(items.map(({ metadata }) => metadata.annotations?.['kcp.io/path'])).to.deep.equal(['acme:dev:test'])
    expect((await answer<KubeList>(other!, 'GET', bindingPath())).items).to.deep.equal([])
  })

  it('accept no claims for a child', async () => {
    const { spec, status } = await until<APIBinding>(dev!, bindingPath('widgets'), isReady)
    expect([spec?.permissionClaims, status?.appliedPermissionClaims]).to.deep.equal([undefined, []])
  })

  it('come back while the mark stands, and are ordinary ones afterwards', async () => {
    const { metadata } = await answer<APIBinding>(dev!, 'GET', bindingPath('widgets'))
    await answer(dev!, 'DELETE', bindingPath('widgets'))
    const again = await until<APIBinding>(dev!, bindingPath('widgets'), (one) => one.metadata.uid !== metadata.uid)
    expect(again.metadata.labels).to.deep.equal(marked.metadata.labels)
    for (const tenant of [acme!, dev!])
      await answer(tenant, 'PATCH', bindingPath('widgets'), { metadata: { labels: { 'kcp.dev/inherit': null } } })
    await answer(dev!, 'DELETE', bindingPath('widgets'))
    const isGone = async () => (await send(dev!, 'GET', bindingPath('widgets'))).status === 404
    await waitFor(isGone, { what: 'the end of the binding', deadlineMs: 10_000 })
  })

  it('need the right to bind of the user who marks them', async () => {
    await answer(provider!, 'DELETE', `${rbac}/clusterrolebindings/bind`)
    const refused = await send(acme!, 'PATCH', bindingPath('widgets'), marked)
    expect(refused.status, refused.text).to.equal(403)
    expect(refused.text).to.include('verb \\"bind\\"')
    await answer(acme!, 'PATCH', bindingPath('widgets'), { metadata: { labels: { a: 'b' } } })
  })
})
