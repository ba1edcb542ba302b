// Prometheus-operator beside a real kube-apiserver and beside 20 logical clusters at once: it makes StatefulSets,
// Secrets and Services of monitors, follows changes, and the garbage collector removes what it made.
import { expect } from 'chai'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import {
  applyAll,
  installCrds,
  read,
  untilGone,
  untilObject,
  type ClusterAccess,
  type Seen,
} from '#test/clients/controllers/cluster-access.ts'
import { expectNoUnexplainedErrors, type Explained } from '#test/clients/controllers/logged-errors.ts'
import { moduleFolders } from '#test/manifests/module-files.ts'
import { ensurePrograms, freePort, startProcess, type ManagedProcess } from '#test/support/index.ts'
import { besideClusters } from './beside-clusters.ts'

const realFlags = { 'kube-controller-manager': ['--controllers=*,-statefulset-controller'] }
describe('prometheus-operator', () => {
  besideClusters('prometheus', live, { realFlags })
})

const namespace = 'monitoring'
const monitoring = (version: string, kind: string, name: string, spec: object) => ({
  apiVersion: `monitoring.coreos.com/${version}`,
  kind,
  metadata: { name, namespace, labels: { team: 'a' } },
  spec,
})
const all = { matchLabels: { team: 'a' } }
const prometheus = (replicas: number) =>
  monitoring('v1', 'Prometheus', 'main', {
    replicas,
    serviceAccountName: 'prometheus',
    serviceMonitorSelector: all,
    podMonitorSelector: all,
    scrapeConfigSelector: all,
    ruleSelector: all,
    alerting: { alertmanagers: [{ namespace, name: 'alertmanager-operated', port: 'web' }] },
  })
const rule = (expression: string) =>
  monitoring('v1', 'PrometheusRule', 'rules', {
    groups: [{ name: 'web', rules: [{ alert: 'Down', expr: expression, for: '5m' }] }],
  })

/** Errors of the operator after its objects are deleted; before, it logs none. */
const explainedByRemoval: Explained = [
  [
    /err="(sync|status) \\"monitoring\/main\\" failed: .* not found"/,
    'the garbage collector deletes what a synchronization that began before the deletion still updates',
  ],
]

async function live(cluster: ClusterAccess): Promise<void> {
  const modules = await moduleFolders()
  const folder = join(
    modules.get('github.com/prometheus-operator/prometheus-operator')!,
    'example/prometheus-operator-crd',
  )
  await installCrds(
    cluster,
    readdirSync(folder).map((file) => join(folder, file)),
  )
  await using operator = await startOperator(cluster)
  await install(cluster)
  await change(cluster)
  expectNoUnexplainedErrors(operator.log(), [], cluster.name)
  await remove(cluster)
  expectNoUnexplainedErrors(operator.log(), explainedByRemoval, cluster.name)
}

async function startOperator({ name, kubeconfig }: ClusterAccess): Promise<ManagedProcess> {
  const programs = await ensurePrograms(['prometheus-operator'])
  const address = `127.0.0.1:${await freePort()}`
  return startProcess({
    name: `prometheus-operator-${name}`,
    command: programs['prometheus-operator'],
    args: [`--web.listen-address=${address}`, '--kubelet-endpoints=false'],
    env: { KUBECONFIG: kubeconfig },
    ready: async (signal) => (await fetch(`http://${address}/healthz`, { signal })).ok,
  })
}

async function install(cluster: ClusterAccess): Promise<void> {
  const base = { apiVersion: 'v1', metadata: { name: 'prometheus', namespace } }
  await applyAll(cluster, [
    { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } },
    { ...base, kind: 'ServiceAccount' },
    prometheus(2),
    monitoring('v1', 'ServiceMonitor', 'web', {
      selector: { matchLabels: { app: 'web' } },
      endpoints: [{ port: 'http' }],
    }),
    monitoring('v1', 'PodMonitor', 'pods', { selector: {}, podMetricsEndpoints: [{ port: 'metrics' }] }),
    monitoring('v1alpha1', 'ScrapeConfig', 'outside', { staticConfigs: [{ targets: ['example.com:9090'] }] }),
    rule('up == 0'),
    monitoring('v1', 'Alertmanager', 'main', { replicas: 1, alertmanagerConfigSelector: all }),
    monitoring('v1alpha1', 'AlertmanagerConfig', 'mail', {
      route: { receiver: 'none', groupBy: ['job'] },
      receivers: [{ name: 'none' }],
    }),
  ])
  const set = await untilObject(cluster, ['statefulsets/prometheus-main', namespace], () => true)
  expect(set.metadata.ownerReferences?.map(({ kind, name }) => `${kind}/${name}`)).to.deep.equal(['Prometheus/main'])
  expect((set as Seen & { spec: { replicas: number } }).spec.replicas).to.equal(2)
  await untilObject(cluster, ['statefulsets/alertmanager-main', namespace], () => true)
  await read(cluster, ['services/prometheus-operated', namespace])
  await read(cluster, ['services/alertmanager-operated', namespace])
  await untilConfiguration(cluster, (text) =>
    ['serviceMonitor/monitoring/web/0', 'podMonitor/monitoring/pods/0', 'scrapeConfig/monitoring/outside'].every(
      (job) => text.includes(`job_name: ${job}`),
    ),
  )
  await untilObject(cluster, ['configmaps/prometheus-main-rulefiles-0', namespace], (seen) =>
    JSON.stringify(seen).includes('up == 0'),
  )
  // Without pods it is not available, and its status says so.
  await untilObject(cluster, ['prometheuses/main', namespace], ({ status }) =>
    Boolean(status?.conditions?.some(({ type, status: is }) => type === 'Available' && is === 'False')),
  )
}

async function change(cluster: ClusterAccess): Promise<void> {
  await applyAll(cluster, [prometheus(3), rule('up == 1')])
  await untilObject(
    cluster,
    ['statefulsets/prometheus-main', namespace],
    (seen) => (seen as Seen & { spec: { replicas: number } }).spec.replicas === 3,
  )
  await untilObject(cluster, ['configmaps/prometheus-main-rulefiles-0', namespace], (seen) =>
    JSON.stringify(seen).includes('up == 1'),
  )
  await cluster.kubectl(['-n', namespace, 'delete', 'servicemonitor/web'])
  await untilConfiguration(cluster, (text) => !text.includes('serviceMonitor/'))
  // What somebody changes by hand, the operator changes back.
  await cluster.kubectl(['-n', namespace, 'scale', 'statefulset/prometheus-main', '--replicas=7'])
  await untilObject(
    cluster,
    ['statefulsets/prometheus-main', namespace],
    (seen) => (seen as Seen & { spec: { replicas: number } }).spec.replicas === 3,
  )
}

async function remove(cluster: ClusterAccess): Promise<void> {
  await cluster.kubectl(['-n', namespace, 'delete', 'prometheus/main', 'alertmanager/main'])
  for (const what of ['statefulsets/prometheus-main', 'statefulsets/alertmanager-main', 'secrets/prometheus-main'])
    await untilGone(cluster, [what, namespace])
}

/** Waits until the configuration that the operator generates is as asked. */
async function untilConfiguration(cluster: ClusterAccess, isDone: (text: string) => boolean): Promise<void> {
  await untilObject(cluster, ['secrets/prometheus-main', namespace], (seen) => {
    const { data } = seen as Seen & { data?: Record<string, string> }
    const packed = Buffer.from(data?.['prometheus.yaml.gz'] ?? '', 'base64')
    return packed.length > 0 && isDone(gunzipSync(packed).toString())
  })
}
