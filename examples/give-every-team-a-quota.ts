// Gives each namespace with a label `team` a ResourceQuota, in all logical clusters of an installation: one list and
// one watch per resource, however many there are. Run it with the path of a kubeconfig of the installation's admin:
// node examples/give-every-team-a-quota.ts .kcp/admin.kubeconfig
import { createLogger, loadKubeconfig, watchAcross, type KubeObject } from 'kcp/watch-across'

const namespaces = { group: '', version: 'v1', resource: 'namespaces', labelSelector: 'team' }
const quotas = { group: '', version: 'v1', resource: 'resourcequotas', labelSelector: 'made-for-team' }
const log = createLogger()
const ending = new AbortController()
for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, () => ending.abort())

await using controller = watchAcross({
  kubeconfig: await loadKubeconfig({ file: process.argv[2] ?? '.kcp/admin.kubeconfig' }, { trusted: true }),
  resources: [namespaces, quotas],
  logicalClusters: '*',
  workers: 16,
  signal: ending.signal,
  log,
  async reconcile({ logicalCluster, resource, namespace, name, client, signal }) {
    // A quota leads to its namespace: so a quota that somebody deletes or changes comes back.
    const team = resource.resource === 'namespaces' ? name : namespace
    const found = controller.get({ logicalCluster, resource: namespaces, namespace: '', name: team })
    if (found?.metadata.deletionTimestamp !== undefined || found === undefined) return
    const quota: KubeObject = {
      apiVersion: 'v1',
      kind: 'ResourceQuota',
      metadata: { name: 'team', namespace: team, labels: { 'made-for-team': found.metadata.labels?.['team'] ?? '' } },
      spec: { hard: { 'count/configmaps': '100' } },
    }
    const ref = { namespace: team, name: 'team' }
    const known = controller.get({ logicalCluster, resource: quotas, ...ref })
    if (JSON.stringify(known?.['spec']) === JSON.stringify(quota['spec'])) return
    await client.patch(quotas, ref, 'apply', quota, { fieldManager: 'team-quota', force: true, signal })
    log.info('gave a namespace its quota', { logicalCluster, namespace: team })
  },
})
await controller.synced()
log.info('the controller works')
await new Promise((resolve) => ending.signal.addEventListener('abort', resolve))
