// The health checks of a logical cluster. They have the names of kube-apiserver's, which monitoring asks for one by
// one, in its order. `etcd` is where objects are stored. What a post start hook does there is done here when a logical
// cluster is created or by the controllers of this process, so hooks have passed in every logical cluster that answers.
export type HealthEndpoint = 'healthz' | 'livez' | 'readyz'

/** A check and its result: undefined if it passed, else why not. */
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
