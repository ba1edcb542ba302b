// A syncer whose list of exported custom resources is empty by mistake: of the objects, or of their definitions.
import { expect } from 'chai'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import {
  clusterInKey,
  createInformer,
  namespaceKeyOf,
  ObjectIndex,
  sharedInformers,
  type KubeClient,
} from '#client/index.ts'
import { exportedFromLabel, placedOnAnnotation } from '#crds/index.ts'
import { startSyncer } from '#syncer/syncer.ts'
import { gvrs } from '#syncer/context/resources.ts'
import { createUpstream } from '#syncer/context/upstream.ts'
import { silentLogger } from '#telemetry/index.ts'
import { startCluster, waitFor } from '#test/support/index.ts'
import { Mistake } from './mistake.ts'
import { asWildcard, clientOf, oneCluster } from './ordinary-upstream.ts'

const namespace = 'shop'
const signal = new AbortController().signal
const widgets = { group: 'example.com', version: 'v1', resource: 'widgets' }
const crds = { group: 'apiextensions.k8s.io', version: 'v1', resource: 'customresourcedefinitions' }
const widget = (name: string): KubeObject => ({
  apiVersion: 'example.com/v1',
  kind: 'Widget',
  metadata: { name, namespace, annotations: { [placedOnAnnotation]: '{"east":{"state":"Serving"}}' } },
})
const definition: KubeObject = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: 'widgets.example.com' },
  spec: {
    group: 'example.com',
    scope: 'Namespaced',
    names: { plural: 'widgets', singular: 'widget', kind: 'Widget', listKind: 'WidgetList' },
    versions: [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: { type: 'object' } } }],
  },
}

describe('copies of exported custom resources', function () {
  this.timeout(60_000)
  const ids = oneCluster('acme')
  const stack = new AsyncDisposableStack()
  const down = `${ids.id}-${namespace}`
  const objects = new Mistake('widgets')
  const definitions = new Mistake('customresourcedefinitions')
  let up: KubeClient
  let member: KubeClient
  let isAdmitted = true
  let admission: (cluster: string) => void = () => undefined
  const until = <T>(what: string, attempt: () => Promise<T> | T): Promise<unknown> =>
    waitFor(async () => (await attempt()) || undefined, { what, deadlineMs: 30_000 })
  const copy = (name = 'first'): Promise<KubeObject | undefined> =>
    member.tryGet(widgets, { namespace: down, name }, { signal })

  before(async function () {
    this.timeout(300_000)
    const life = new AbortController()
    const flags = { 'kube-apiserver': ['--disable-admission-plugins=ServiceAccount'] }
    const started = async (name: string): Promise<KubeClient> =>
      clientOf(stack.use(await startCluster({ name, flags })).kubeconfig, stack)
    ;[up, member] = await Promise.all([started('up'), started('east')])
    stack.defer(() => life.abort())
    const client = definitions.of(objects.of(up))
    const all = asWildcard(client, 'acme')
    const upstream = createUpstream({
      informers: sharedInformers(all, { allClusters: true, log: silentLogger, signal: life.signal }),
      client: (cluster) => (cluster === '*' ? all : client),
      ids,
    })
    const shown = { ...definition.metadata, labels: { [exportedFromLabel]: 'east' } }
    const informerOf = (gvr: typeof widgets, selection: { labelSelector?: string }) =>
      createInformer<KubeObject>({
        ...{ ...selection, client: all, gvr, allClusters: true, log: silentLogger, signal: life.signal },
        backoff: { firstMs: 100, maxMs: 1000 },
      })
    await member.create(crds, definition, { signal })
    await up.create(crds, { ...definition, metadata: shown }, { signal })
    for (const one of [up, member])
      await until('the API', () =>
        one.list(widgets, { signal }).then(
          () => true,
          () => false,
        ),
      )
    await up.create(gvrs.namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } }, { signal })
    stack.use(
      startSyncer({
        member: { name: 'east', id: 'eastmember', serviceNetwork: 'None' },
        upstream,
        downstream: member,
        apiAddress: { host: 'kcp.example', port: 7443 },
        exports: {
          apis: [{ group: 'example.com', resource: 'widgets' }],
          former: [],
          admits: () => isAdmitted,
          onAdmission: (listener) => {
            admission = listener
            return () => undefined
          },
          definitions: informerOf(crds, { labelSelector: exportedFromLabel }),
          objectsOf: async () => {
            const informer = informerOf(widgets, {})
            const groups = new ObjectIndex(informer, (key) => [namespaceKeyOf(key), clusterInKey(key)])
            await informer.synced(life.signal)
            return { informer, groups }
          },
          seen: () => undefined,
          withdrawn: () => undefined,
        },
        log: silentLogger,
        signal: life.signal,
      }),
    )
    for (const name of ['first', 'second']) {
      await up.create(widgets, widget(name), { signal })
      await until('the copy', () => copy(name))
    }
  })
  after(async function () {
    this.timeout(60_000)
    await stack.disposeAsync()
  })

  for (const [title, mistake] of [
    ['objects', objects],
    ['definitions', definitions],
  ] as const)
    it(`stay where the list of ${title} is empty by mistake`, async () => {
      const before = await copy()
      mistake.turn(true)
      await until('the syncer to ask twice', () => mistake.asked >= 2)
      expect((await copy())?.metadata).to.deep.include({ uid: before?.metadata.uid })
      mistake.turn(false)
      await until('the end of questions', async () => {
        const { asked } = mistake
        await new Promise((resolve) => setTimeout(resolve, 500))
        return mistake.asked === asked
      })
      expect((await copy())?.metadata).to.deep.include({ uid: before?.metadata.uid })
    })

  it('go with their object', async () => {
    await up.delete(widgets, { namespace, name: 'first' }, { signal })
    await until('the end of the copy', async () => (await copy()) === undefined)
    expect(await copy('second')).not.to.equal(undefined)
  })

  it('go when the logical cluster may not use the member any more', async () => {
    isAdmitted = false
    admission('acme')
    await until('the end of the copy', async () => (await copy('second')) === undefined)
    expect(await up.tryGet(widgets, { namespace, name: 'second' }, { signal })).not.to.equal(undefined)
  })
})
