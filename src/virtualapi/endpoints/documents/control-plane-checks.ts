// The health checks of a logical cluster. They have the names and the order of kube-apiserver's checks, because
// monitoring asks for single checks by name. `etcd` stands for the storage of objects. The work of a post start hook is
// done here when a logical cluster is created, or by the controllers of this process, so the hooks have passed in every
// logical cluster that answers.
export type HealthEndpoint = 'healthz' | 'livez' | 'readyz'

/** A check and its result. `problem`: why it failed; undefined if it passed. */
export interface HealthCheck {
  readonly name: string
  readonly problem: string | undefined
}

const hooks = [
  'start-apiserver-admission-initializer',
  'generic-apiserver-start-informers',
  'priority-and-fairness-config-consumer',
  'priority-and-fairness-filter',
  'storage-object-count-tracker-hook',
  'start-apiextensions-informers',
  'start-apiextensions-controllers',
  'crd-informer-synced',
  'start-system-namespaces-controller',
  'start-cluster-authentication-info-controller',
  'start-kube-apiserver-identity-lease-controller',
  'start-kube-apiserver-identity-lease-garbage-collector',
  'start-legacy-token-tracking-controller',
  'start-service-ip-repair-controllers',
  'rbac/bootstrap-roles',
  'scheduling/bootstrap-system-priority-classes',
  'priority-and-fairness-config-producer',
  'bootstrap-controller',
  'start-kubernetes-service-cidr-controller',
  'aggregator-reload-proxy-client-cert',
  'start-kube-aggregator-informers',
  'apiservice-status-local-available-controller',
  'apiservice-status-remote-available-controller',
  'apiservice-registration-controller',
  'apiservice-discovery-controller',
  'kube-apiserver-autoregistration',
]
const lateHooks = ['apiservice-openapi-controller', 'apiservice-openapiv3-controller']

/** The checks of an endpoint. `problem`: why the process is not ready; undefined if it is. */
export function controlPlaneChecks(endpoint: HealthEndpoint, problem: string | undefined): HealthCheck[] {
  const passed = (name: string): HealthCheck => ({ name, problem: undefined })
  const hook = (name: string): HealthCheck => passed(`poststarthook/${name}`)
  const isReadiness = endpoint === 'readyz'
  return [
    passed('ping'),
    passed('log'),
    { name: 'etcd', problem },
    ...(isReadiness ? [{ name: 'etcd-readiness', problem }, passed('informer-sync')] : []),
    ...hooks.map(hook),
    passed('autoregister-completion'),
    ...lateHooks.map(hook),
    ...(isReadiness ? [{ name: 'shutdown', problem }] : []),
  ]
}
