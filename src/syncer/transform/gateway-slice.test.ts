import { expect } from 'chai'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { remoteSliceThroughGateway } from './down.ts'

const slice = (endpoints: object[], ports: object[]): KubeObject => ({
  apiVersion: 'discovery.k8s.io/v1',
  kind: 'EndpointSlice',
  metadata: {
    name: 'web-abc',
    namespace: 'shop',
    uid: 'u',
    labels: { 'kubernetes.io/service-name': 'web' },
    annotations: { 'kcp.dev/member': 'west', 'kcp.dev/reachable': 'gateway' },
  },
  addressType: 'IPv4',
  endpoints,
  ports,
})
const owner = { cluster: 'acme', clusterId: 'aaaaaaaaaa' } as Parameters<typeof remoteSliceThroughGateway>[1]
const way = {
  target: { namespace: 'aaaaaaaaaa-shop', service: 'web' },
  addresses: ['10.1.0.5', '10.1.0.6'],
  live: undefined,
  portFor: (name: string): number | undefined => ({ http: 10_000, admin: 10_001 })[name],
}
const ready = { addresses: ['10.2.0.1'], conditions: { ready: true } }
const http = { name: 'http', port: 8080, protocol: 'TCP' }
const through = (endpoints: object[], ports: object[]): KubeObject =>
  remoteSliceThroughGateway(slice(endpoints, ports), owner, 'kcp-web-abc', way)

describe('the EndpointSlice of another member, through the gateway', () => {
  it('has the addresses and ports of the gateway here, and tells where it leads and what is behind it', () => {
    const made = through([ready, { ...ready, addresses: ['10.2.0.2'] }], [http])
    expect(made['endpoints']).to.deep.equal([
      { addresses: ['10.1.0.5'], conditions: { ready: true } },
      { addresses: ['10.1.0.6'], conditions: { ready: true } },
    ])
    expect(made['ports']).to.deep.equal([{ name: 'http', port: 10_000, protocol: 'TCP' }])
    expect(made.metadata.annotations).to.include({
      'kcp.dev/gateway-target': '{"namespace":"aaaaaaaaaa-shop","service":"web"}',
      'kcp.dev/ready-endpoints': '2',
    })
    expect(made.metadata.labels).to.include({ 'kcp.dev/member': 'west' })
  })

  it('has ports without endpoints while none is ready: the gateway listens before anybody connects', () => {
    const made = through([{ ...ready, conditions: { ready: false } }], [http])
    expect(made['endpoints']).to.deep.equal([])
    expect(made['ports']).to.have.length(1)
    expect(made.metadata.annotations).to.include({ 'kcp.dev/ready-endpoints': '0' })
  })

  it('keeps its ports when all endpoints have gone: nodes still send connections', () => {
    const live = through([ready], [http])
    const made = remoteSliceThroughGateway(slice([], []), owner, 'kcp-web-abc', { ...way, live })
    expect([made['ports'], made['endpoints']]).to.deep.equal([live['ports'], []])
  })

  it('has no port that is not TCP, and none where no port is left', () => {
    const udp = { name: 'admin', port: 53, protocol: 'UDP' }
    expect(through([ready], [http, udp])['ports']).to.deep.equal([{ name: 'http', port: 10_000, protocol: 'TCP' }])
    const none = through([ready], [{ name: 'other', port: 1, protocol: 'TCP' }])
    expect([none['ports'], none['endpoints']]).to.deep.equal([[], []])
  })
})
