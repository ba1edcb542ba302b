// A Service whose backend is a plain process on this machine: how APIServices and webhooks reach a server under test.

export interface HostServiceSpec {
  name: string
  namespace: string
  /** Not a loopback address; `cluster.hostAddress`. */
  address: string
  port: number
}

/**
 * A List to apply: a Service without selector on port 443 and an EndpointSlice with the process's address. The
 * process's certificate must be valid for `NAME.NAMESPACE.svc`.
 */
export function hostService({ name, namespace, address, port }: HostServiceSpec): object {
  const labels = { 'kubernetes.io/service-name': name }
  const slice = { name: `${name}-host`, namespace, labels }
  return {
    apiVersion: 'v1',
    kind: 'List',
    items: [
      {
        apiVersion: 'v1',
        kind: 'Service',
        metadata: { name, namespace },
        spec: { ports: [{ name: 'https', port: 443, targetPort: port, protocol: 'TCP' }] },
      },
      {
        apiVersion: 'discovery.k8s.io/v1',
        kind: 'EndpointSlice',
        metadata: slice,
        addressType: 'IPv4',
        endpoints: [{ addresses: [address], conditions: { ready: true } }],
        ports: [{ name: 'https', port, protocol: 'TCP' }],
      },
    ],
  }
}
