// Registers our server with the host's aggregator: a Service without selector, an EndpointSlice with our own address
// (and Endpoints on old hosts), and the APIService, which comes last so that the host never calls a server that it
// cannot find.
import type { KubeClient } from '#client/index.ts'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { tolerate } from '#apimachinery/status/index.ts'
import { installationNamespace } from './host-installation.ts'
import type { Registration } from './registration.ts'

const serviceName = 'kcp-apiserver'
/** Host names that the aggregator expects in our certificate. */
export const serviceHosts = [
  `${serviceName}.${installationNamespace}.svc`,
  `${serviceName}.${installationNamespace}`,
] as const

export interface Endpoint {
  /** A non-loopback address of this machine that the host's kube-apiserver can reach. */
  readonly address: string
  readonly port: number
  /** PEM. */
  readonly ca: string
}

interface Gvr {
  readonly group: string
  readonly version: string
  readonly resource: string
}

const services: Gvr = { group: '', version: 'v1', resource: 'services' }
const endpoints: Gvr = { group: '', version: 'v1', resource: 'endpoints' }
const endpointSlices: Gvr = { group: 'discovery.k8s.io', version: 'v1', resource: 'endpointslices' }
const apiServices: Gvr = { group: 'apiregistration.k8s.io', version: 'v1', resource: 'apiservices' }
const apiServiceName = 'v1alpha1.virtual.kcp.dev'

/** Applies the objects by which the host finds us; harmless if they exist already. */
export async function register(
  client: KubeClient,
  what: Registration,
  endpoint: Endpoint,
  signal: AbortSignal,
): Promise<void> {
  if (what === 'none') return
  const apply = async (gvr: Gvr, object: KubeObject): Promise<void> => {
    const { name = '', namespace } = object.metadata
    const options = { fieldManager: 'kcp-apiserver', force: true, signal }
    await client.patch(gvr, { name, ...(namespace === undefined ? {} : { namespace }) }, 'apply', object, options)
  }
  if (what === 'all') {
    await apply(services, service(endpoint))
    await apply(endpointSlices, endpointSlice(endpoint))
    if (await needsEndpoints(client, signal)) await apply(endpoints, endpointsOf(endpoint))
  }
  await apply(apiServices, apiService(endpoint))
}

/**
 * Whether the host needs Endpoints: its aggregator reads them before Kubernetes 1.33, and later versions warn of their
 * use.
 */
async function needsEndpoints(client: KubeClient, signal: AbortSignal): Promise<boolean> {
  const { major = '', minor = '' } = (await client.raw('/version', { signal })) as { major?: string; minor?: string }
  // Some clouds append "+".
  return parseInt(major) === 1 && parseInt(minor) < 33
}

/** Deletes the APIService: while it exists and no server responds, the host cannot delete namespaces. */
export async function unregister(client: KubeClient, signal: AbortSignal): Promise<void> {
  await client.delete(apiServices, { name: apiServiceName }, { signal }).catch(tolerate('NotFound'))
}

const metadata = { name: serviceName, namespace: installationNamespace }

function service({ port }: Endpoint): KubeObject {
  const spec = { ports: [{ name: 'https', port: 443, targetPort: port, protocol: 'TCP' }] }
  return { apiVersion: 'v1', kind: 'Service', metadata, spec }
}

function endpointSlice({ address, port }: Endpoint): KubeObject {
  const labels = {
    'kubernetes.io/service-name': serviceName,
    'endpointslice.kubernetes.io/managed-by': 'kcp-apiserver',
  }
  return {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { ...metadata, labels },
    addressType: address.includes(':') ? 'IPv6' : 'IPv4',
    endpoints: [{ addresses: [address], conditions: { ready: true } }],
    ports: [{ name: 'https', port, protocol: 'TCP' }],
  }
}

function endpointsOf({ address, port }: Endpoint): KubeObject {
  // No mirrored EndpointSlice is needed: our own says the same already.
  const labels = { 'endpointslice.kubernetes.io/skip-mirror': 'true' }
  const subsets = [{ addresses: [{ ip: address }], ports: [{ name: 'https', port, protocol: 'TCP' }] }]
  return { apiVersion: 'v1', kind: 'Endpoints', metadata: { ...metadata, labels }, subsets }
}

function apiService({ ca }: Endpoint): KubeObject {
  return {
    apiVersion: 'apiregistration.k8s.io/v1',
    kind: 'APIService',
    metadata: { name: apiServiceName },
    spec: {
      group: 'virtual.kcp.dev',
      version: 'v1alpha1',
      // Below the priority of CustomResourceDefinitions (1000): kubectl must find LogicalClusters in kcp.dev first.
      groupPriorityMinimum: 100,
      versionPriority: 10,
      service: { name: serviceName, namespace: installationNamespace, port: 443 },
      caBundle: Buffer.from(ca).toString('base64'),
    },
  }
}
