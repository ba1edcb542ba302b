// Keeps a ConfigMap with the size of each Widget, in all logical clusters of an installation. Run it with a kubeconfig
// of the installation's admin; as one of two processes that divide the logical clusters: SHARD=0/2 and SHARD=1/2; as the
// provider of an APIExport: VIEW=URL. The same in Go: clients/go/examples/config-map-per-widget.
import { createLogger, isOf, loadKubeconfig, watchAcross, type AcrossResource, type KubeObject } from 'kcp/watch-across'

interface Widget extends KubeObject {
  readonly spec?: { readonly size?: number }
}
interface ConfigMap extends KubeObject {
  readonly data?: Readonly<Record<string, string>>
}
const widgets: AcrossResource<Widget> = { group: 'example.com', version: 'v1', resource: 'widgets' }
const configMaps: AcrossResource<ConfigMap> = {
  group: '',
  version: 'v1',
  resource: 'configmaps',
  labelSelector: 'widget',
}

const { SHARD = '0/1', VIEW = '' } = process.env
const [index = 0, of = 1] = SHARD.split('/').map(Number)
const log = createLogger()
const ending = new AbortController()
for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, () => ending.abort())

await using controller = watchAcross({
  kubeconfig: await loadKubeconfig({ file: process.argv[2] ?? '.kcp/admin.kubeconfig' }, { trusted: true }),
  view: VIEW,
  ...(of > 1 ? { shard: { index, of } } : {}),
  resources: [widgets, configMaps],
  logicalClusters: '*',
  workers: 16,
  signal: ending.signal,
  log,
  async reconcile(request) {
    // A ConfigMap leads to its Widget of the same name: so a ConfigMap that somebody deletes or changes comes back.
    const { logicalCluster, namespace, name, client, signal } = request
    const ref = { logicalCluster, namespace, name }
    const widget = isOf(request, widgets) ? request.object : controller.get({ ...ref, resource: widgets })
    if (widget?.metadata.deletionTimestamp !== undefined || widget === undefined) return
    const data = { size: String(widget.spec?.size ?? 0) }
    if (controller.get({ ...ref, resource: configMaps })?.data?.['size'] === data.size) return
    const { apiVersion, kind, metadata } = widget
    const owner = { apiVersion, kind, name, uid: metadata.uid ?? '' }
    const wanted = { name, namespace, labels: { widget: name }, ownerReferences: [owner] }
    const object: ConfigMap = { apiVersion: 'v1', kind: 'ConfigMap', metadata: wanted, data }
    await client.patch(configMaps, { namespace, name }, 'apply', object, {
      fieldManager: 'widgets',
      force: true,
      signal,
    })
  },
})
await controller.synced()
log.info('the controller works')
await new Promise((resolve) => ending.signal.addEventListener('abort', resolve))
