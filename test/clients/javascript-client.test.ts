// The official JavaScript client: typed and generic API, every kind of patch, server-side apply, watch and informer.
/* eslint @typescript-eslint/no-unsafe-class-instance-assignment: off -- the client takes plain objects for its model classes */
import {
  ApiException,
  AppsV1Api,
  CoreV1Api,
  KubeConfig,
  KubernetesObjectApi,
  makeInformer,
  PatchStrategy,
  setHeaderOptions,
  Watch,
  type KubernetesObject,
  type V1ConfigMap,
  type V1Deployment,
} from '@kubernetes/client-node'
import { expect } from 'chai'
import { startInstance, type KcpInstance } from '#test/integration/kcp-instance.ts'
import { waitFor } from '#test/support/index.ts'

const namespace = 'javascript'

describe('the JavaScript client in a logical cluster', () => {
  let kcp: KcpInstance
  let config: KubeConfig
  let core: CoreV1Api
  let apps: AppsV1Api
  before(async () => {
    kcp = await startInstance()
    config = new KubeConfig()
    config.loadFromFile((await kcp.tenant('javascript')).kubeconfig)
    core = config.makeApiClient(CoreV1Api)
    apps = config.makeApiClient(AppsV1Api)
    await core.createNamespace({ body: { metadata: { name: namespace } } })
  })
  after(() => kcp[Symbol.asyncDispose]())

  it('creates, reads, replaces, lists in pages and deletes', async () => {
    const body: V1ConfigMap = { metadata: { name: 'one', labels: { set: 'yes' } }, data: { a: 'b' } }
    await core.createNamespacedConfigMap({ namespace, body })
    await refused(409, () => core.createNamespacedConfigMap({ namespace, body }))
    const stale = await core.readNamespacedConfigMap({ namespace, name: 'one' })
    await core.replaceNamespacedConfigMap({
      namespace,
      name: 'one',
      body: Object.assign(structuredClone(stale), { data: { a: 'c' } }),
    })
    await refused(409, () => core.replaceNamespacedConfigMap({ namespace, name: 'one', body: stale }))
    for (const name of ['two', 'three'])
      await core.createNamespacedConfigMap({ namespace, body: { metadata: { name } } })
    const first = await core.listNamespacedConfigMap({ namespace, limit: 2, labelSelector: '!kcp.dev/none' })
    expect(first.items).to.have.length(2)
    const next = { namespace, limit: 2, labelSelector: '!kcp.dev/none', _continue: first.metadata?._continue ?? '' }
    expect((await core.listNamespacedConfigMap(next)).items.length).to.be.greaterThan(0)
    await core.deleteNamespacedConfigMap({ namespace, name: 'one' })
    await refused(404, () => core.readNamespacedConfigMap({ namespace, name: 'one' }))
  })

  it('patches in all three formats', async () => {
    await apps.createNamespacedDeployment({ namespace, body: deployment('patched', 'nginx:1') })
    const patch = (body: object, strategy: PatchStrategy): Promise<V1Deployment> =>
      apps.patchNamespacedDeployment({ namespace, name: 'patched', body }, setHeaderOptions('Content-Type', strategy))
    await patch([{ op: 'replace', path: '/spec/replicas', value: 3 }], PatchStrategy.JsonPatch)
    await patch({ metadata: { labels: { merged: 'yes' } } }, PatchStrategy.MergePatch)
    const sidecar = { spec: { template: { spec: { containers: [{ name: 'sidecar', image: 'busybox' }] } } } }
    const { metadata, spec } = await patch(sidecar, PatchStrategy.StrategicMergePatch)
    expect(metadata?.labels).to.deep.equal({ merged: 'yes' })
    expect(spec?.replicas).to.equal(3)
    expect(spec?.template.spec?.containers.map(({ name }) => name)).to.have.members(['web', 'sidecar'])
  })

  it('shares an object by server-side apply', async () => {
    const apply = (fieldManager: string, image: string, force = false): Promise<V1Deployment> =>
      apps.patchNamespacedDeployment(
        { namespace, name: 'applied', fieldManager, force, body: deployment('applied', image) },
        setHeaderOptions('Content-Type', PatchStrategy.ServerSideApply),
      )
    const made = await apply('one', 'nginx:1')
    expect(managers(made)).to.deep.equal(['one'])
    expect((await apply('one', 'nginx:1')).metadata?.resourceVersion).to.equal(made.metadata?.resourceVersion)
    await refused(409, () => apply('two', 'nginx:2'))
    const shared = await apply('two', 'nginx:2', true)
    expect(managers(shared)).to.deep.equal(['one', 'two'])
    const generic = KubernetesObjectApi.makeApiClient(config)
    const strategy = PatchStrategy.ServerSideApply
    const forced = await generic.patch(deployment('applied', 'nginx:3'), undefined, undefined, 'three', true, strategy)
    expect(managers(forced)).to.deep.equal(['one', 'three', 'two'])
  })

  it('watches, and keeps a cache by an informer', async () => {
    const seen: string[] = []
    const { metadata } = await core.listNamespacedSecret({ namespace })
    const path = `/api/v1/namespaces/${namespace}/secrets`
    const options = { resourceVersion: metadata?.resourceVersion ?? '' }
    const request = await new Watch(config).watch(
      path,
      options,
      (type) => seen.push(type),
      () => undefined,
    )
    const informer = makeInformer(config, path, () => core.listNamespacedSecret({ namespace }))
    try {
      await informer.start()
      await core.createNamespacedSecret({ namespace, body: { metadata: { name: 's' }, stringData: { k: 'v' } } })
      const patch = [{ op: 'add', path: '/metadata/labels', value: { a: 'b' } }]
      const merge = setHeaderOptions('Content-Type', PatchStrategy.JsonPatch)
      await core.patchNamespacedSecret({ namespace, name: 's', body: patch }, merge)
      const isCached = (): boolean => informer.get('s', namespace)?.metadata?.labels?.['a'] === 'b'
      await waitFor(isCached, { what: 'the informer to know the label', deadlineMs: 20_000 })
      await core.deleteNamespacedSecret({ namespace, name: 's' })
      await waitFor(() => seen.length === 3, { what: 'three events', deadlineMs: 20_000 })
      expect(seen).to.deep.equal(['ADDED', 'MODIFIED', 'DELETED'])
      await waitFor(() => informer.list(namespace).every((one) => one.metadata?.name !== 's'), {
        what: 'the informer to forget it',
        deadlineMs: 20_000,
      })
    } finally {
      request.abort()
      await informer.stop()
    }
  })
})

const deployment = (name: string, image: string) => ({
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { name, namespace },
  spec: {
    selector: { matchLabels: { app: name } },
    template: { metadata: { labels: { app: name } }, spec: { containers: [{ name: 'web', image }] } },
  },
})

/** Sorted: the server sorts entries by their time, which has a resolution of a second. */
const managers = ({ metadata }: KubernetesObject): (string | undefined)[] =>
  (metadata?.managedFields ?? []).map(({ manager }) => manager).sort()

/** Fails unless the API server answers with this code. */
async function refused(code: number, call: () => Promise<unknown>): Promise<void> {
  try {
    await call()
  } catch (error) {
    expect(error).to.be.instanceOf(ApiException)
    expect((error as ApiException<unknown>).code).to.equal(code)
    return
  }
  expect.fail(`was not refused with ${code}`)
}
