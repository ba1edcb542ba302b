// Registers our server with the host's aggregator: a Service without selector, an EndpointSlice with our own address,
// and the APIService, which comes last so that the host never calls a server that it cannot find.
import type { KubeClient } from '../../client/index.ts'
import type { KubeObject } from '../../apimachinery/meta/index.ts'
import { installationNamespace } from './host-installation.ts'

const serviceName = 'kcp-apiserver'
/** Host names that the aggregator expects in our certificate. */
export const serviceHosts = [
  `${serviceName}.${installationNamespace}.svc`,
  `${serviceName}.${installationNamespace}`,
] as const

export interface Registration {
  /** A non-loopback address of this machine that the host's kube-apiserver can reach. */
  readonly address: string
  readonly port: number
  /** PEM. */
  readonly ca: string
}

/** Applies the three objects; does nothing if they are up to date. */
export async function registerApiService(
  client: KubeClient,
  { address, port, ca }: Registration,
  signal: AbortSignal,
): Promise<void> {
  const options = { fieldManager: 'kcp-apiserver', force: true, signal }
  const apply = async (
    gvr: { group: string; version: string; resource: string },
    object: KubeObject,
  ): Promise<void> => {
    const { name = '', namespace } = object.metadata
    await client.patch(gvr, { name, ...(namespace === undefined ? {} : { namespace }) }, 'apply', object, options)
  }
  const metadata = { name: serviceName, namespace: installationNamespace }
  await apply(
    { group: '', version: 'v1', resource: 'services' },
    {
      apiVersion: 'v1',
      kind: 'Service',
      metadata,
      spec: { ports: [{ name: 'https', port: 443, targetPort: port, protocol: 'TCP' }] },
    },
  )
  await apply(
    { group: 'discovery.k8s.io', version: 'v1', resource: 'endpointslices' },
    {
      apiVersion: 'discovery.k8s.io/v1',
      kind: 'EndpointSlice',
      metadata: {
        ...metadata,
        labels: {
          'kubernetes.io/service-name': serviceName,
          'endpointslice.kubernetes.io/managed-by': 'kcp-apiserver',
        },
      },
      addressType: address.includes(':') ? 'IPv6' : 'IPv4',
      endpoints: [{ addresses: [address], conditions: { ready: true } }],
      ports: [{ name: 'https', port, protocol: 'TCP' }],
    },
  )
  await apply(
    { group: 'apiregistration.k8s.io', version: 'v1', resource: 'apiservices' },
    {
      apiVersion: 'apiregistration.k8s.io/v1',
      kind: 'APIService',
      metadata: { name: 'v1alpha1.virtual.kcp.dev' },
      spec: {
        group: 'virtual.kcp.dev',
        version: 'v1alpha1',
        // Below the priority of CustomResourceDefinitions (1000): kubectl must find LogicalClusters in kcp.dev first.
        groupPriorityMinimum: 100,
        versionPriority: 10,
        service: { name: serviceName, namespace: installationNamespace, port: 443 },
        caBundle: Buffer.from(ca).toString('base64'),
      },
    },
  )
}
