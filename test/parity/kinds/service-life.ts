// Changes of stored Services: which fields are kept, which are released, and which changes are refused.
import type { JsonObject, JsonValue } from '#apimachinery/meta/index.ts'
import { row, type Row } from '#test/parity/support/compare-rows.ts'
import type { Manifest, Session } from '#test/parity/support/session.ts'

const port = (rest: JsonObject = {}): JsonObject => ({ name: 'http', port: 80, ...rest })

function service(name: string, spec: JsonObject = {}): Manifest {
  const metadata = { name: `${name}-$ID` }
  return { apiVersion: 'v1', kind: 'Service', metadata, spec: { selector: { app: 'web' }, ports: [port()], ...spec } }
}

/** A Service, and a sequence of changes. */
function life(title: string, name: string, first: JsonObject, changes: readonly JsonValue[]): Row {
  return row(`v1 Service: ${title}`, async (session) => {
    await session.create(service(name, first))
    for (const change of changes) await session.patch(pathOfService(name), change)
    await session.delete(pathOfService(name))
  })
}

const pathOfService = (name: string): string => `/api/v1/namespaces/$NS/services/${name}-$ID`

/** New Services, as dry runs. */
const others: readonly (readonly [about: string, spec: JsonObject])[] = [
  ['two families with a single-stack policy', { ipFamilyPolicy: 'RequireDualStack' }],
  ['two families if there are', { ipFamilyPolicy: 'PreferDualStack' }],
  ['an address of another family', { clusterIP: '10.0.0.200', ipFamilies: ['IPv6'] }],
  ['two addresses of a family', { clusterIP: '10.0.0.200', clusterIPs: ['10.0.0.200', '10.0.0.201'] }],
  ['an IP family that the cluster lacks', { ipFamilies: ['IPv6'] }],
  ['families twice', { ipFamilies: ['IPv4', 'IPv4'] }],
  ['an unknown family', { ipFamilies: ['IPv5'] }],
  ['an unknown policy', { ipFamilyPolicy: 'Huh' }],
  ['one family and two listed', { ipFamilyPolicy: 'SingleStack', ipFamilies: ['IPv4', 'IPv6'] }],
  ['addresses that differ', { clusterIP: '10.0.0.200', clusterIPs: ['10.0.0.201'] }],
  ['an address out of range', { clusterIP: '192.0.2.1' }],
  ['an invalid address', { clusterIP: 'x' }],
  ['no address and a node port', { clusterIP: 'None', type: 'NodePort' }],
  [
    'no address and two families',
    { clusterIP: 'None', ipFamilies: ['IPv4', 'IPv6'], ipFamilyPolicy: 'RequireDualStack' },
  ],
  ['headless without a selector', { clusterIP: 'None', selector: null }],
  ['headless without ports', { clusterIP: 'None', ports: null }],
  ['an external name', { type: 'ExternalName', externalName: 'example.com', ports: null }],
  ['an external name and a cluster IP', { type: 'ExternalName', externalName: 'example.com', clusterIP: '10.0.0.9' }],
  ['an external name and IP families', { type: 'ExternalName', externalName: 'example.com', ipFamilies: ['IPv4'] }],
  ['no external name', { type: 'ExternalName' }],
  ['a node port out of range', { type: 'NodePort', ports: [port({ nodePort: 80 })] }],
  ['a node port without a type for it', { ports: [port({ nodePort: 30001 })] }],
  [
    'node ports twice',
    { type: 'NodePort', ports: [port({ nodePort: 30002 }), { name: 'b', port: 81, nodePort: 30002 }] },
  ],
  ['ports twice', { ports: [port(), port()] }],
  ['ports with the same number', { ports: [port(), { name: 'b', port: 80 }] }],
  ['ports without names', { ports: [{ port: 80 }, { port: 81 }] }],
  ['an invalid target', { ports: [port({ targetPort: 'A_' })] }],
  ['an application protocol', { ports: [port({ appProtocol: 'example.com/x' })] }],
  ['an invalid application protocol', { ports: [port({ appProtocol: 'x y' })] }],
  ['sessions', { sessionAffinity: 'ClientIP' }],
  [
    'session timeouts above a day',
    { sessionAffinity: 'ClientIP', sessionAffinityConfig: { clientIP: { timeoutSeconds: 90_000 } } },
  ],
  ['sessions without affinity', { sessionAffinityConfig: { clientIP: { timeoutSeconds: 5 } } }],
  ['a traffic policy that the type does not allow', { externalTrafficPolicy: 'Local' }],
  ['unknown traffic policies', { type: 'NodePort', externalTrafficPolicy: 'x', internalTrafficPolicy: 'y' }],
  ['a balancer', { type: 'LoadBalancer', loadBalancerSourceRanges: ['10.0.0.0/8'], loadBalancerClass: 'a.b/c' }],
  ['invalid source ranges', { type: 'LoadBalancer', loadBalancerSourceRanges: ['x'] }],
  ['sources without a balancer', { loadBalancerSourceRanges: ['10.0.0.0/8'] }],
  ['a class without a balancer', { loadBalancerClass: 'a.b/c' }],
  ['a load balancer without node ports', { type: 'LoadBalancer', allocateLoadBalancerNodePorts: false }],
  ['allocateLoadBalancerNodePorts without a load balancer', { allocateLoadBalancerNodePorts: false }],
  ['an unneeded health check port', { healthCheckNodePort: 30005 }],
  [
    'fields that are not validated',
    { clusterIP: 'None', externalIPs: ['192.0.2.1'], sessionAffinity: 'ClientIP', externalName: 'x' },
  ],
  ['external IPs', { externalIPs: ['192.0.2.1', 'x', '127.0.0.1'] }],
  ['a distribution', { trafficDistribution: 'PreferClose' }],
  ['an unknown traffic distribution', { trafficDistribution: 'Huh' }],
]

/** Not compared: who wrote it, and where the servers are. */
const notCompared = ['metadata.managedFields', 'subsets.0.addresses.0.ip', 'subsets.0.ports.0.port']
const notComparedOfSlice = ['metadata.managedFields', 'endpoints.0.addresses', 'ports.0.port']

const endpointsOfServer = row('v1 Service: the endpoints of the Service kubernetes', async (session) => {
  const isThere = ({ status }: { status: number }): boolean => status === 200
  await session.until('/api/v1/namespaces/default/endpoints/kubernetes', isThere, { without: notCompared })
  const slice = '/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes'
  await session.until(slice, isThere, { without: notComparedOfSlice })
})

export const serviceRows: readonly Row[] = [
  endpointsOfServer,
  ...others.map(([about, spec]) =>
    row(`v1 Service: new with ${about}`, async (session: Session) => {
      await session.create(service('other', spec), { query: '?dryRun=All' })
    }),
  ),
  life('keeps its address', 'kept', {}, [
    { spec: { selector: { app: 'x' } } },
    { spec: { clusterIP: '10.0.0.77' } },
    { spec: { clusterIP: null } },
    { spec: { clusterIP: '' } },
    { spec: { clusterIP: 'None' } },
    { spec: { clusterIPs: ['None'] } },
    { spec: { ports: [port({ targetPort: 8080 }), { name: 'b', port: 81 }] } },
    { spec: { ports: [] } },
  ]),
  life('headless stays headless', 'headless', { clusterIP: 'None' }, [
    { spec: { clusterIP: '10.0.0.78' } },
    { spec: { clusterIP: null } },
    { spec: { ports: null } },
    { spec: { type: 'NodePort' } },
    { spec: { type: 'ExternalName', externalName: 'example.com' } },
  ]),
  life('gets node ports, keeps them and loses them', 'typed', {}, [
    { spec: { type: 'NodePort' } },
    { spec: { ports: [port()] } },
    { spec: { externalTrafficPolicy: 'Local' } },
    { spec: { type: 'LoadBalancer' } },
    { spec: { allocateLoadBalancerNodePorts: false } },
    { spec: { type: 'ClusterIP' } },
    { spec: { type: 'NodePort', ports: [port({ nodePort: 30003 })] } },
    { spec: { ports: [port({ nodePort: 30004 })] } },
    { spec: { ports: [port({ nodePort: 30004 }), { name: 'b', port: 81 }] } },
    { spec: { type: 'ClusterIP' } },
  ]),
  life('becomes ExternalName, and back', 'renamed', {}, [
    { spec: { type: 'ExternalName' } },
    { spec: { type: 'ExternalName', externalName: 'example.com' } },
    { spec: { externalName: 'x_y' } },
    { spec: { type: 'ExternalName', externalName: 'example.com', clusterIP: null, clusterIPs: null } },
    { spec: { type: 'ClusterIP' } },
    { spec: { type: 'ClusterIP', externalName: null } },
  ]),
  life('of one family', 'family', {}, [
    { spec: { ipFamilyPolicy: 'RequireDualStack' } },
    { spec: { ipFamilyPolicy: 'PreferDualStack' } },
    { spec: { ipFamilyPolicy: 'SingleStack' } },
    { spec: { ipFamilies: ['IPv4', 'IPv6'] } },
    { spec: { ipFamilies: null, ipFamilyPolicy: null } },
    { spec: { clusterIPs: ['10.0.0.79'] } },
  ]),
  life('keeps its load balancer class', 'balanced', { type: 'LoadBalancer', loadBalancerClass: 'a.b/c' }, [
    { spec: { loadBalancerClass: 'a.b/d' } },
    { spec: { loadBalancerClass: null } },
    { spec: { loadBalancerSourceRanges: ['10.0.0.0/8'] } },
    { spec: { type: 'NodePort' } },
    { spec: { type: 'NodePort', loadBalancerClass: null, loadBalancerSourceRanges: null } },
  ]),
  row('v1 Service: put without the fields that the server set', async (session) => {
    await session.create(service('put', { type: 'NodePort' }))
    await session.put(service('put', { type: 'NodePort' }))
    await session.put(service('put'))
    await session.put(service('put', { type: 'NodePort', ports: [port({ nodePort: 30006 })] }))
    await session.put(service('put', { clusterIP: 'None' }))
    await session.delete(pathOfService('put'))
  }),
]
