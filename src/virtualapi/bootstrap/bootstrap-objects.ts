// The objects that every logical cluster has from the start, without uid and times: the same for all.
import type { KubeObject } from '../../apimachinery/meta/index.ts'
import policy from './generated/bootstrap-objects.json' with { type: 'json' }

export interface BootstrapObject {
  /** The resource as in store keys: `clusterroles.rbac.authorization.k8s.io`. */
  readonly resource: string
  /** kind, apiVersion, metadata first; metadata has neither uid nor times. */
  readonly object: KubeObject
}

/** The namespaces that every logical cluster has from the start. */
export const defaultNamespaces = ['default', 'kube-node-lease', 'kube-public', 'kube-system'] as const

/** Address of the Service `kubernetes`, the same in every logical cluster. */
export const kubernetesServiceIp = '10.96.0.1'
/** The range of all Services' addresses. */
const kubernetesServiceRange = '10.96.0.0/12'

const resourceOf: Readonly<Record<string, string>> = {
  ClusterRole: 'clusterroles.rbac.authorization.k8s.io',
  ClusterRoleBinding: 'clusterrolebindings.rbac.authorization.k8s.io',
  Role: 'roles.rbac.authorization.k8s.io',
  RoleBinding: 'rolebindings.rbac.authorization.k8s.io',
  PriorityClass: 'priorityclasses.scheduling.k8s.io',
  FlowSchema: 'flowschemas.flowcontrol.apiserver.k8s.io',
  PriorityLevelConfiguration: 'prioritylevelconfigurations.flowcontrol.apiserver.k8s.io',
  Namespace: 'namespaces',
  ServiceAccount: 'serviceaccounts',
  ConfigMap: 'configmaps',
  Service: 'services',
  ServiceCIDR: 'servicecidrs.networking.k8s.io',
}

/** All bootstrap objects, unordered. `rootCa`: PEM that pods verify our serving certificate with. */
export function bootstrapObjects(rootCa: string): BootstrapObject[] {
  const objects: KubeObject[] = [
    ...(policy as unknown as KubeObject[]),
    ...defaultNamespaces.flatMap((name) => [namespace(name), serviceAccount(name), rootCaConfigMap(name, rootCa)]),
    kubernetesService(),
    defaultServiceRange(),
  ]
  return objects.map((object) => {
    const resource = resourceOf[object.kind]
    if (resource === undefined) throw new Error(`no resource is known for bootstrap kind "${object.kind}"`)
    const { kind, apiVersion, metadata, ...rest } = object
    return { resource, object: { kind, apiVersion, metadata, ...rest } }
  })
}

function namespace(name: string): KubeObject {
  return {
    kind: 'Namespace',
    apiVersion: 'v1',
    metadata: { name, labels: { 'kubernetes.io/metadata.name': name } },
    spec: { finalizers: ['kubernetes'] },
    status: { phase: 'Active' },
  }
}

function serviceAccount(namespace: string): KubeObject {
  return { kind: 'ServiceAccount', apiVersion: 'v1', metadata: { name: 'default', namespace } }
}

function rootCaConfigMap(namespace: string, rootCa: string): KubeObject {
  return {
    kind: 'ConfigMap',
    apiVersion: 'v1',
    metadata: {
      name: 'kube-root-ca.crt',
      namespace,
      annotations: { 'kubernetes.io/description': 'The certificate authority of this API server.' },
    },
    data: { 'ca.crt': rootCa },
  }
}

function kubernetesService(): KubeObject {
  return {
    kind: 'Service',
    apiVersion: 'v1',
    metadata: {
      name: 'kubernetes',
      namespace: 'default',
      labels: { component: 'apiserver', provider: 'kubernetes' },
    },
    spec: {
      clusterIP: kubernetesServiceIp,
      clusterIPs: [kubernetesServiceIp],
      internalTrafficPolicy: 'Cluster',
      ipFamilies: ['IPv4'],
      ipFamilyPolicy: 'SingleStack',
      ports: [{ name: 'https', port: 443, protocol: 'TCP', targetPort: 6443 }],
      sessionAffinity: 'None',
      type: 'ClusterIP',
    },
    status: { loadBalancer: {} },
  }
}

/** The ServiceCIDR from which Services get addresses. */
function defaultServiceRange(): KubeObject {
  return {
    kind: 'ServiceCIDR',
    apiVersion: 'networking.k8s.io/v1',
    metadata: { name: 'kubernetes' },
    spec: { cidrs: [kubernetesServiceRange] },
    status: {},
  }
}
