// The objects that every logical cluster has from the start, without uid and times. They are the same for all logical
// clusters.
import { BlockList, isIP } from 'node:net'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { localApiServices, crdApiService } from './local-api-services.ts'
import { withMetricsReader } from './metrics-reader.ts'
import { placeholders } from './placeholders.ts'
import policy from './generated/bootstrap-objects.json' with { type: 'json' }
import { crdOf, placementKind, placements } from '#crds/index.ts'
import { crdStatus, defaultCrd, type CustomResourceDefinition } from '#virtualapi/catalog/apiextensions/index.ts'

export interface BootstrapObject {
  /** The resource as in store keys: `clusterroles.rbac.authorization.k8s.io`. */
  readonly resource: string
  /**
   * kind, apiVersion, metadata first; metadata has neither uid nor times. Values that differ per logical cluster are
   * `placeholders`.
   */
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
  Endpoints: 'endpoints',
  EndpointSlice: 'endpointslices.discovery.k8s.io',
  ServiceCIDR: 'servicecidrs.networking.k8s.io',
  APIService: 'apiservices.apiregistration.k8s.io',
  CustomResourceDefinition: 'customresourcedefinitions.apiextensions.k8s.io',
}

/** The address at which clients reach this server. */
export interface ApiAddress {
  readonly host: string
  readonly port: number
}

/**
 * All bootstrap objects, unordered. `rootCa`: the PEM with which pods verify our serving certificate. `address`: the
 * endpoint of the Service `kubernetes`. The Service has no endpoint if this is not an IP address that Endpoints may
 * contain. `isPlain`: only what kube-apiserver itself creates.
 */
export function bootstrapObjects({
  rootCa,
  address,
  isPlain = false,
}: {
  readonly rootCa: string
  readonly address?: ApiAddress
  readonly isPlain?: boolean
}): BootstrapObject[] {
  const roles = policy as unknown as KubeObject[]
  const objects: KubeObject[] = [
    ...(isPlain ? roles : withMetricsReader(roles)).map(withFlowStatus),
    ...defaultNamespaces.flatMap((name) => [
      namespace(name),
      ...(isPlain ? [] : [serviceAccount(name), rootCaConfigMap(name, rootCa)]),
    ]),
    kubernetesService(address?.port),
    ...(address === undefined ? [] : kubernetesEndpoints(address)),
    defaultServiceRange(),
    ...localApiServices(),
    extensionAuthentication(),
    ...(isPlain ? [] : placementDefinition()),
  ]
  return objects.map((object) => {
    const resource = resourceOf[object.kind]
    if (resource === undefined) throw new Error(`no resource is known for bootstrap kind "${object.kind}"`)
    const { kind, apiVersion, metadata, ...rest } = object
    return { resource, object: { kind, apiVersion, metadata, ...rest } }
  })
}

/**
 * Adds the condition that kube-apiserver writes to a FlowSchema whose priority level exists, which is true for all
 * bootstrap FlowSchemas.
 */
function withFlowStatus(object: KubeObject): KubeObject {
  if (object.kind !== 'FlowSchema') return object
  const { priorityLevelConfiguration } = object['spec'] as { priorityLevelConfiguration: { name: string } }
  const level = JSON.stringify(priorityLevelConfiguration.name)
  const condition = {
    type: 'Dangling',
    status: 'False',
    lastTransitionTime: placeholders.creationTime,
    reason: 'Found',
    message: `This FlowSchema references the PriorityLevelConfiguration object named ${level} and it exists`,
  }
  return { ...object, status: { conditions: [condition] } }
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

function kubernetesService(targetPort = 6443): KubeObject {
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
      ports: [{ name: 'https', port: 443, protocol: 'TCP', targetPort }],
      sessionAffinity: 'None',
      type: 'ClusterIP',
    },
    status: { loadBalancer: {} },
  }
}

/**
 * The Endpoints and the EndpointSlice, as the endpoint reconciler of kube-apiserver writes them
 * (pkg/controlplane/reconcilers); empty if `host` is not an IP address that Endpoints may contain.
 */
function kubernetesEndpoints({ host, port }: ApiAddress): KubeObject[] {
  const version = isIP(host)
  if (version === 0 || unreachable.check(host, version === 4 ? 'ipv4' : 'ipv6')) return []
  const metadata = { name: 'kubernetes', namespace: 'default' }
  const ports = [{ name: 'https', port, protocol: 'TCP' }]
  return [
    {
      kind: 'Endpoints',
      apiVersion: 'v1',
      metadata: { ...metadata, labels: { 'endpointslice.kubernetes.io/skip-mirror': 'true' } },
      subsets: [{ addresses: [{ ip: host }], ports }],
    },
    {
      kind: 'EndpointSlice',
      apiVersion: 'discovery.k8s.io/v1',
      metadata: { ...metadata, generation: 1, labels: { 'kubernetes.io/service-name': 'kubernetes' } },
      addressType: version === 4 ? 'IPv4' : 'IPv6',
      endpoints: [{ addresses: [host], conditions: { ready: true } }],
      ports,
    },
  ]
}

/** Addresses that the validation of Endpoints refuses. */
const unreachable = new BlockList()
for (const [net, prefix] of [
  ['0.0.0.0', 32],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['224.0.0.0', 24],
] as const)
  unreachable.addSubnet(net, prefix, 'ipv4')
for (const [net, prefix] of [
  ['::', 127],
  ['fe80::', 10],
  ['ff02::', 16],
] as const)
  unreachable.addSubnet(net, prefix, 'ipv6')

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

// The object for aggregated API servers.

/**
 * The ConfigMap that tells aggregated API servers whose identity headers to trust, as kube-apiserver writes it. It has
 * no client-ca-file, because one authority signs the client certificates of all logical clusters, so an API server in
 * one of them must not trust it.
 */
function extensionAuthentication(): KubeObject {
  return {
    kind: 'ConfigMap',
    apiVersion: 'v1',
    metadata: { name: 'extension-apiserver-authentication', namespace: 'kube-system' },
    data: {
      'requestheader-allowed-names': '["front-proxy-client"]',
      'requestheader-client-ca-file': placeholders.frontProxyCa,
      'requestheader-extra-headers-prefix': '["X-Remote-Extra-"]',
      'requestheader-group-headers': '["X-Remote-Group"]',
      'requestheader-uid-headers': '["X-Remote-Uid"]',
      'requestheader-username-headers': '["X-Remote-User"]',
    },
  }
}

// The objects for Placements.

/**
 * The definition of Placements and its APIService, as they are stored after config/crd/kcp.dev_placements.yaml was
 * applied. In `root` and in a host, the operator finds and updates them.
 */
function placementDefinition(): KubeObject[] {
  const definition = structuredClone(crdOf(placementKind)) as unknown as CustomResourceDefinition
  definition.metadata = { ...definition.metadata, generation: 1 }
  defaultCrd(definition)
  definition.status = crdStatus(definition, [], placeholders.creationTime)
  return [definition as unknown as KubeObject, crdApiService(placements)]
}
