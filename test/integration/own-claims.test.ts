// Permission claims on resources that are neither built in nor of the export: definitions of the consumer itself.
import { expect } from 'chai'
import type { KubeList, KubeObject } from '#apimachinery/meta/index.ts'
import { waitFor } from '#test/support/index.ts'
import { startInstance, type KcpInstance, type Tenant } from './kcp-instance.ts'
import {
  answer,
  apis,
  bindingPath,
  bindingTo,
  exportResource,
  isReady,
  letBind,
  send,
  until,
} from './shared-api-objects.ts'

const definitions = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'
const gears = '/apis/other.io/v1/namespaces/default/gears'

describe('claims on definitions of consumers', function () {
  this.timeout(120_000)
  let kcp: KcpInstance
  let [provider, other, owning, bound]: Tenant[] = []
  const view = (cluster: string): Tenant => ({
    ...provider!,
    base: `/services/apiexport/provider/widgets/clusters/${cluster}`,
  })
  const claims = [{ group: 'other.io', resource: 'gears', verbs: ['*'] }]
  const accepted = claims.map((claim) => ({ ...claim, selector: { matchAll: true }, state: 'Accepted' }))

  before(async () => {
    kcp = await startInstance()
    ;[provider, other, owning, bound] = await Promise.all(
      ['provider', 'other', 'owning', 'bound'].map((name) => kcp.tenant(name)),
    )
    await exportResource(provider!, { permissionClaims: claims })
    for (const tenant of [other!, owning!]) await defineGears(tenant)
    const resources = [{ name: 'gears', group: 'other.io', crd: 'gears.other.io' }]
    await answer(other!, 'POST', `${apis}/v1alpha2/apiexports`, {
      apiVersion: 'apis.kcp.io/v1alpha2',
      kind: 'APIExport',
      metadata: { name: 'gears' },
      spec: { resources },
    })
    await letBind(other!)
    await answer(bound!, 'POST', bindingPath(), bindingTo('other', 'gears'))
    await until(bound!, bindingPath('gears'), isReady)
    for (const tenant of [owning!, bound!]) {
      await answer(tenant, 'POST', bindingPath(), bindingTo('provider', 'widgets', { permissionClaims: accepted }))
      await until(tenant, bindingPath('widgets'), isReady)
      await answer(tenant, 'POST', gears, { apiVersion: 'other.io/v1', kind: 'Gear', metadata: { name: 'one' } })
    }
  })
  after(() => kcp[Symbol.asyncDispose]())

  it('give the objects of the consumer, with its own definition', async () => {
    const { items } = await answer<KubeList>(view('owning'), 'GET', gears)
    expect(items.map(({ metadata }) => metadata.name)).to.deep.equal(['one'])
    await answer(view('owning'), 'POST', gears, { apiVersion: 'other.io/v1', kind: 'Gear', metadata: { name: 'two' } })
    const { groups } = await answer<{ groups: { name: string }[] }>(view('owning'), 'GET', '/apis')
    expect(groups.map(({ name }) => name)).to.include('other.io')
  })

  it('give no objects of another export of this name', async () => {
    const refused = await send(view('bound'), 'GET', gears)
    expect(refused.status, refused.text).to.equal(403)
    const written = await send(view('bound'), 'DELETE', `${gears}/one`)
    expect(written.status, written.text).to.equal(403)
    expect((await send(view('*'), 'GET', '/apis/other.io/v1/gears')).text).to.not.include('"one"')
  })

  it('mean the export that the identity names, and no definition of the consumer of this name', async () => {
    await using watch = await provider!.http.watch(`${view('owning').base}/apis/other.io/v1/gears?watch=1`)
    const { status } = await answer<KubeObject & { status: { identityHash: string } }>(
      other!,
      'GET',
      `${apis}/v1alpha2/apiexports/gears`,
    )
    const byIdentity = claims.map((claim) => ({ ...claim, identityHash: status.identityHash }))
    await answer(provider!, 'PATCH', `${apis}/v1alpha2/apiexports/widgets`, { spec: { permissionClaims: byIdentity } })
    const answers = byIdentity.map((claim) => ({ ...claim, selector: { matchAll: true }, state: 'Accepted' }))
    for (const tenant of [owning!, bound!])
      await answer(tenant, 'PATCH', bindingPath('widgets'), { spec: { permissionClaims: answers } })
    const isShown = async () => (await send(view('bound'), 'GET', gears)).status === 200
    await waitFor(isShown, { what: 'the claim to be in force', deadlineMs: 10_000 })
    expect((await send(view('owning'), 'GET', gears)).status).to.equal(403)
    const { items } = await answer<KubeList>(view('*'), 'GET', '/apis/other.io/v1/gears')
    expect(items.map(({ metadata }) => metadata.annotations?.['kcp.io/cluster'])).to.deep.equal(['bound'])
    // The open watch, which has shown objects of the consumer, ends with 410.
    const events = await watch.rest()
    expect(events.map(({ type }) => type)).to.deep.equal(['ADDED', 'ADDED', 'ERROR'])
  })

  async function defineGears(tenant: Tenant): Promise<void> {
    const schema = { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } }
    await answer(tenant, 'POST', definitions, {
      metadata: { name: 'gears.other.io' },
      spec: {
        group: 'other.io',
        scope: 'Namespaced',
        names: { plural: 'gears', singular: 'gear', kind: 'Gear', listKind: 'GearList' },
        versions: [{ name: 'v1', served: true, storage: true, schema }],
      },
    })
  }
})
