// The applications that run in members: where their manifests are, and what of them does not run.
import { readdirSync } from 'node:fs'
import { join } from 'node:path'

export interface ApplicationSource {
  readonly title: string
  /** A module of test/programs/manifests; absent: this repository. */
  readonly module?: string
  /** Files, or folders with files in YAML, in the module. */
  readonly paths?: readonly string[]
  /** Installed with Helm instead of `kubectl apply`; `path` is its folder. */
  readonly chart?: { readonly path: string; readonly values?: readonly string[] }
  /** Files in the module with definitions that another application brings. */
  readonly definitions?: readonly string[]
  /** Where objects go that name no namespace. Default: `app`. */
  readonly namespace?: string
  /** Secrets that the real programs create when they start, by namespace and name. */
  readonly secrets?: readonly string[]
  /** What pod security `baseline` answers. The application runs where `privileged` is allowed. */
  readonly refused?: string
  /** What else its tenant should know. */
  readonly remark?: string
  /** What stays without some or all of its pods, by KIND/NAME, and the reason that its tenant is shown. */
  readonly stays?: Readonly<Record<string, string>>
}

/** What cannot be installed as its project publishes it. */
export interface UnusableSource extends ApplicationSource {
  readonly module: string
  /** What kubectl or Helm prints. */
  readonly answer: string
  /** Why, for the page. */
  readonly reason: string
}

const kubernetes = 'k8s.io/kubernetes'
const argoCd = 'github.com/argoproj/argo-cd/v3'
const rollouts = 'github.com/argoproj/argo-rollouts'
const certManager = 'github.com/cert-manager/cert-manager'
const gatekeeper = 'github.com/open-policy-agent/gatekeeper/v3'
const prometheusOperator = 'github.com/prometheus-operator/prometheus-operator'
/** What the scheduler tells. */
const oneNode = "didn't match pod anti-affinity rules"
const examples = 'test/e2e/testing-manifests'

/** Own manifests, modelled on well-known ones. */
const own = (name: string, more: Partial<ApplicationSource> = {}): ApplicationSource => ({
  title: name,
  paths: [`test/manifests/applications/${name}.yaml`],
  ...more,
})

/** A folder of Kubernetes' own tests. */
const example = (name: string, more: Partial<ApplicationSource> = {}): ApplicationSource => ({
  title: name.split('/').at(-1) ?? name,
  module: kubernetes,
  paths: [`${examples}/${name}`],
  ...more,
})

const addon = (name: string, more: Partial<ApplicationSource> = {}): ApplicationSource => ({
  title: name,
  module: kubernetes,
  paths: [`cluster/addons/${name}`],
  namespace: 'kube-system',
  ...more,
})

export const applications: readonly ApplicationSource[] = [
  ...['backups', 'elasticsearch', 'grafana', 'ingress-nginx', 'kafka', 'nginx', 'postgres', 'prometheus'].map((name) =>
    own(name),
  ),
  ...['rabbitmq', 'redis', 'webhook-controller', 'wordpress'].map((name) => own(name)),
  own('metrics-server', { refused: 'system-cluster-critical' }),
  own('node-exporter', { refused: 'host namespaces' }),
  example('statefulset/cassandra', { refused: 'IPC_LOCK' }),
  example('statefulset/cockroachdb'),
  example('statefulset/etcd'),
  example('statefulset/mysql-galera'),
  example('statefulset/mysql-upgrade'),
  example('statefulset/zookeeper'),
  {
    title: 'guestbook',
    module: kubernetes,
    paths: ['agnhost-primary', 'agnhost-replica', 'frontend'].flatMap((name) => [
      `${examples}/guestbook/${name}-deployment.yaml.in`,
      `${examples}/guestbook/${name}-service.yaml`,
    ]),
  },
  example('ingress/http'),
  example('gpu/gce', { refused: 'privileged', remark: 'its DaemonSets select nodes with GPUs; the lab has none' }),
  addon('dns-horizontal-autoscaler', { refused: 'system-cluster-critical' }),
  addon('kube-network-policies', { refused: 'privileged' }),
  addon('metrics-server', { refused: 'system-cluster-critical' }),
  addon('volumesnapshots'),
  {
    title: 'Argo CD',
    module: argoCd,
    paths: ['manifests/install.yaml'],
    namespace: 'argocd',
    secrets: ['argocd/argocd-redis'],
  },
  {
    title: 'Argo CD, highly available',
    module: argoCd,
    paths: ['manifests/ha/namespace-install.yaml'],
    namespace: 'argocd',
    secrets: ['argocd/argocd-redis'],
    remark: 'wants three nodes; the lab has one',
    stays: {
      'Deployment/argocd-redis-ha-haproxy': oneNode,
      'StatefulSet/argocd-redis-ha-server': oneNode,
      'Deployment/argocd-repo-server': oneNode,
      'Deployment/argocd-server': oneNode,
    },
  },
  { title: 'Argo Rollouts', module: rollouts, paths: ['manifests/install.yaml'], namespace: 'argo-rollouts' },
  {
    title: 'dashboard of Argo Rollouts',
    module: rollouts,
    paths: ['manifests/dashboard-install.yaml'],
    namespace: 'argo-rollouts',
  },
  {
    title: 'source-controller of Flux',
    module: 'github.com/fluxcd/source-controller',
    paths: ['config/manager'],
    namespace: 'flux-system',
  },
  {
    title: 'kustomize-controller of Flux',
    module: 'github.com/fluxcd/kustomize-controller',
    paths: ['config/manager'],
    namespace: 'flux-system',
  },
  {
    title: 'Kyverno',
    module: 'github.com/kyverno/kyverno',
    paths: ['config/install-latest-testing.yaml'],
    remark: 'kubectl warns that the member issues no token for its audience `kyverno-svc.kyverno.io`',
  },
  { title: 'Gatekeeper', module: gatekeeper, paths: ['deploy/gatekeeper.yaml'], refused: 'system-cluster-critical' },
  { title: 'Prometheus Operator', module: prometheusOperator, paths: ['bundle.yaml'] },
  {
    title: 'Thanos Query',
    module: prometheusOperator,
    paths: ['example/thanos/query-deployment.yaml', 'example/thanos/query-service.yaml'],
  },
  {
    title: 'example-app of Prometheus Operator',
    module: prometheusOperator,
    paths: [
      'example/user-guides/getting-started/example-app-deployment.yaml',
      'example/user-guides/getting-started/example-app-service.yaml',
    ],
  },
  {
    title: 'demo of multi-cluster Services',
    module: 'sigs.k8s.io/mcs-api',
    paths: ['demo/yaml/dep1.yaml', 'demo/yaml/svc.yaml'],
  },
  { title: 'shop', chart: { path: 'test/e2e/application-chart', values: ['storageClass=default'] } },
  {
    title: 'guestbook of Argo CD',
    module: argoCd,
    chart: { path: 'applicationset/examples/git-generator-directory/excludes/cluster-addons/exclude-helm-guestbook' },
  },
  {
    title: 'MinIO',
    module: argoCd,
    chart: { path: 'util/helm/testdata/minio', values: ['persistence.storageClass=default'] },
  },
  {
    title: 'cert-manager',
    module: certManager,
    chart: {
      path: 'deploy/charts/cert-manager',
      values: [
        'crds.enabled=true',
        'crds.keep=false',
        'startupapicheck.image.repository=kcp.test/stand-in',
        'startupapicheck.image.tag=once-nonroot',
      ],
    },
    namespace: 'cert-manager',
  },
  { title: 'Pebble of cert-manager', module: certManager, chart: { path: 'make/config/pebble/chart' } },
  {
    title: 'sample webhook of cert-manager',
    module: certManager,
    chart: { path: 'make/config/samplewebhook/chart' },
    definitions: ['certificates', 'issuers'].map((name) => `deploy/crds/cert-manager.io_${name}.yaml`),
    secrets: ['app/app-example-webhook-webhook-tls'],
  },
  {
    title: 'Gatekeeper',
    module: gatekeeper,
    chart: {
      path: 'charts/gatekeeper',
      values: [
        'postInstall.labelNamespace',
        'postInstall.probeWebhook',
        'preInstall.crdRepository',
        'preUninstall.deleteWebhookConfigurations',
      ].flatMap((hook) => [`${hook}.image.repository=kcp.test/stand-in`, `${hook}.image.tag=once`]),
    },
    namespace: 'gatekeeper-system',
    refused: 'system-cluster-critical',
  },
  {
    title: 'metrics-server',
    module: 'sigs.k8s.io/metrics-server',
    chart: { path: 'charts/metrics-server' },
    namespace: 'kube-system',
    refused: 'system-cluster-critical',
  },
  { title: 'KWOK', module: 'sigs.k8s.io/kwok', chart: { path: 'charts/kwok' }, namespace: 'kube-system' },
  { title: 'Kueue', module: 'sigs.k8s.io/kueue', chart: { path: 'charts/kueue' }, namespace: 'kueue-system' },
]

export const unusable: readonly UnusableSource[] = [
  {
    title: 'node-problem-detector',
    module: kubernetes,
    paths: ['cluster/addons/node-problem-detector'],
    answer: 'unknown field "spec.template.spec.nodeSelectors"',
    reason: 'its DaemonSet has a field that no version of Kubernetes knows (`nodeSelectors`)',
  },
  {
    title: 'Argo Workflows',
    module: argoCd,
    paths: ['applicationset/examples/matrix/cluster-addons/argo-workflows/namespace-install.yaml'],
    answer: 'no matches for kind "CustomResourceDefinition" in version "apiextensions.k8s.io/v1beta1"',
    reason: 'its definitions are `apiextensions.k8s.io/v1beta1`, which Kubernetes does not serve since 1.22',
  },
  {
    title: 'Redis',
    module: argoCd,
    chart: { path: 'util/helm/testdata/redis' },
    answer: 'no matches for kind "StatefulSet" in version "apps/v1beta2"',
    reason: 'its StatefulSet is `apps/v1beta2`, which Kubernetes does not serve since 1.16',
  },
  {
    title: 'Kyverno',
    module: 'github.com/kyverno/kyverno',
    chart: { path: 'charts/kyverno' },
    answer: 'missing in charts/ directory: kyverno-api, openreports, reports-server',
    reason:
      'it depends on charts of other projects that it does not contain; Kyverno runs from its manifests, see above',
  },
  {
    title: 'Redis, highly available',
    module: argoCd,
    chart: { path: 'manifests/ha/base/redis-ha/chart' },
    answer: 'missing in charts/ directory: redis-ha',
    reason:
      'it depends on a chart that it does not contain; its manifests are a part of "Argo CD, highly available", see above',
  },
]

/** The files of an application's folders, recursively, and its single files. */
export function filesOf(paths: readonly string[], folder: string): string[] {
  return paths.flatMap((path) => {
    if (/\.(yaml|in)$/.test(path)) return [join(folder, path)]
    const found = readdirSync(join(folder, path), { recursive: true, withFileTypes: true })
    const isManifest = (name: string): boolean => name.endsWith('.yaml') && name !== 'kustomization.yaml'
    return found
      .filter((entry) => entry.isFile() && isManifest(entry.name))
      .map((entry) => join(entry.parentPath, entry.name))
      .sort()
  })
}
