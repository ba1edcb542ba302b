// Owners of shared APIs: the transfer of an export to another logical cluster, and the order in which consumers get a
// new revision.
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
  hasReason,
  isReady,
  send,
  until,
  type WithConditions,
} from './shared-api-objects.ts'

const widgets = '/apis/example.io/v1/namespaces/default/widgets'
const exportPath = `${apis}/v1alpha2/apiexports/widgets`
const definitionPath = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.example.io'
const within = { deadlineMs: 10_000 }

interface Bound extends WithConditions {
  readonly status?: WithConditions['status'] & { revision?: number; apiExportClusterName?: string; exportUID?: string }
}

describe('owners of shared APIs', function () {
  this.timeout(120_000)
  let kcp: KcpInstance
  let [first, second, third, canary, late]: Tenant[] = []

  before(async () => {
    kcp = await startInstance()
    ;[first, second, third, canary, late] = await Promise.all(
      ['first', 'second', 'third', 'canary', 'late'].map((name) => kcp.tenant(name)),
    )
    await exportResource(first!)
    for (const tenant of [canary!, late!]) {
      await answer(tenant, 'POST', bindingPath(), bindingTo('first', 'widgets'))
      await until(tenant, bindingPath('widgets'), isReady)
      await answer(tenant, 'POST', widgets, { apiVersion: 'example.io/v1', kind: 'Widget', metadata: { name: 'one' } })
    }
  })
  after(() => kcp[Symbol.asyncDispose]())

  it('release a revision to the consumers that the export names first, and to no other before', async () => {
    const order = [{ consumers: ['canary'] }, { selector: { matchLabels: { wave: 'last' } } }]
    await answer(first!, 'PATCH', exportPath, { spec: { rollout: { order, percent: 0 } } })
    await answer(late!, 'PATCH', bindingPath('widgets'), { metadata: { labels: { wave: 'none' } } })
    await redefine(first!, 'a second revision')
    await until<Bound>(canary!, bindingPath('widgets'), ({ status }) => status?.revision === 2)
    const waiting = await until<Bound>(late!, bindingPath('widgets'), hasReason('NotReleased'))
    expect(waiting.status?.revision).to.equal(1)
    await answer(late!, 'PATCH', bindingPath('widgets'), { metadata: { labels: { wave: 'last' } } })
    await until<Bound>(late!, bindingPath('widgets'), ({ status }) => status?.revision === 2)
    await answer(first!, 'PATCH', exportPath, { spec: { rollout: null } })
  })

  describe('that transfer an export', () => {
    const view = (owner: Tenant, cluster: string): Tenant => ({
      ...owner,
      base: `/services/apiexport/${owner.name}/widgets/clusters/${cluster}`,
    })
    const takeOver = (from: string): object => ({
      apiVersion: 'apis.kcp.io/v1alpha2',
      kind: 'APIExport',
      metadata: { name: 'widgets' },
      spec: {
        resources: [{ name: 'widgets', group: 'example.io', crd: 'widgets.example.io' }],
        transfer: { from: { path: from, name: 'widgets' } },
      },
    })
    let former: Bound
    let objects: KubeObject[]

    before(async () => {
      former = await answer<Bound>(late!, 'GET', bindingPath('widgets'))
      objects = (await answer<KubeList>(late!, 'GET', widgets)).items
      const { spec } = await answer(first!, 'GET', definitionPath)
      for (const tenant of [second!, third!])
        await answer(tenant, 'POST', definitionPath.replace('/widgets.example.io', ''), {
          metadata: { name: 'widgets.example.io' },
          spec: spec as object,
        })
    })

    it('need the consent of its owner: nobody else takes it, whatever the name', async () => {
      await answer(third!, 'POST', `${apis}/v1alpha2/apiexports`, takeOver('first'))
      const refused = await until(third!, exportPath, hasReason('NotOffered'))
      expect(refused.status).to.not.have.property('origin')
      await answer(first!, 'PATCH', exportPath, { spec: { transfer: { to: 'second' } } })
      const forged = await send(third!, 'PATCH', `${exportPath}/status`, {
        status: { origin: { uid: 'x', transfers: 9 } },
      })
      expect(forged.status, forged.text).to.equal(403)
      expect((await send(view(third!, '*'), 'GET', '/apis/example.io/v1/widgets')).text).to.not.include('"one"')
    })

    it('give identity, consumers and objects to the new owner, which loses nothing', async () => {
      await using watch = await first!.http.watch(`${view(first!, '*').base}/apis/example.io/v1/widgets?watch=1`)
      for (const _ of [canary, late]) expect((await watch.next())?.type).to.equal('ADDED')
      await answer(second!, 'POST', `${apis}/v1alpha2/apiexports`, takeOver('first'))
      const after = await until<Bound>(
        late!,
        bindingPath('widgets'),
        ({ status }) => status?.apiExportClusterName === 'second',
      )
      expect(after.status?.exportUID).to.equal(former.status?.exportUID)
      expect([after.metadata.uid, after['spec']]).to.deep.equal([former.metadata.uid, former['spec']])
      expect((await answer<KubeList>(late!, 'GET', widgets)).items).to.deep.equal(objects)
      const seen = await answer<KubeList>(view(second!, '*'), 'GET', '/apis/example.io/v1/widgets')
      expect(seen.items.map(({ metadata }) => metadata.annotations?.['kcp.io/cluster'])).to.have.members([
        'canary',
        'late',
      ])
      // The former owner loses the view, open watches included.
      for (const _ of [canary, late]) expect((await watch.next())?.type).to.equal('DELETED')
      expect((await send(view(first!, 'late'), 'GET', `${widgets}/one`)).status).to.equal(404)
      const isGone = async () => (await send(first!, 'GET', exportPath)).status === 404
      await waitFor(isGone, { what: 'the end of the former export', ...within })
      const left = await answer<KubeList>(first!, 'GET', `${apis}/v1alpha1/apiexportrevisions`)
      expect(left.items).to.deep.equal([])
    })

    it('go on with revisions of the new owner', async () => {
      const { revision = 0 } = (await answer<Bound>(late!, 'GET', bindingPath('widgets'))).status ?? {}
      await redefine(second!, 'by the new owner')
      await until<Bound>(late!, bindingPath('widgets'), ({ status }) => (status?.revision ?? 0) > revision)
      await answer(late!, 'POST', widgets, { apiVersion: 'example.io/v1', kind: 'Widget', metadata: { name: 'two' } })
    })
  })

  describe('that are deleted', () => {
    it('stay while others use their exports, and consumers lose nothing meanwhile', async () => {
      const clusters = '/apis/kcp.dev/v1alpha1/logicalclusters'
      const refused = await send(kcp.admin, 'DELETE', `${clusters}/second`)
      expect(refused.status, refused.text).to.equal(409)
      expect(refused.text).to.include('2 APIBindings of other logical clusters')
      // Without the export, the deletion begins; the kept definitions stay with their consumers.
      await answer(second!, 'DELETE', exportPath)
      await answer(kcp.admin, 'DELETE', `${clusters}/second`)
      const held = await until(kcp.admin, `${clusters}/second`, hasReason('ContentRemains'))
      expect(JSON.stringify(held.status)).to.include('apis.kcp.io/consumers')
      for (const tenant of [canary!, late!]) await answer(tenant, 'GET', `${widgets}/one`)
      // One consumer ends its binding, the other one ends itself.
      await answer(canary!, 'PATCH', bindingPath('widgets'), { spec: { deletionPolicy: 'Delete' } })
      await answer(canary!, 'DELETE', bindingPath('widgets'))
      await answer(kcp.admin, 'DELETE', `${clusters}/late`)
      const isGone = async () => (await send(kcp.admin, 'GET', `${clusters}/second`)).status === 404
      await waitFor(isGone, { what: 'the end of the provider', deadlineMs: 30_000 })
    })
  })

  /** Changes the description of the definition. */
  async function redefine(owner: Tenant, description: string): Promise<void> {
    const { spec } = await answer<KubeObject & { spec: { versions: object[] } }>(owner, 'GET', definitionPath)
    const schema = { openAPIV3Schema: { type: 'object', description, 'x-kubernetes-preserve-unknown-fields': true } }
    const versions = spec.versions.map((version) => ({ ...version, schema }))
    await answer(owner, 'PATCH', definitionPath, { spec: { versions } })
  }
})
