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
  /** Where objects go that name no namespace. Default: `app`. */
  readonly namespace?: string
  /** Secrets that the real programs create when they start, by namespace and name. */
  readonly secrets?: readonly string[]
  /** What pod security `baseline` answers. The application runs where `privileged` is allowed. */
  readonly refused?: string
  /** What else its tenant should know. */
  readonly remark?: string
  /** What stays without running pods, by KIND/NAME, and the reason that its tenant is shown. */
  readonly stays?: Readonly<Record<string, string>>
}

const kubernetes = 'k8s.io/kubernetes'
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
