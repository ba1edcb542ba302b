import { expect } from 'chai'
import { gatewayListenerPorts, maxGatewayPortsPerCluster } from '#crds/index.ts'
import { GatewayPorts, type CountedSlice } from './gateway-ports.ts'

const slice = (name: string, usualNamespace = 'aaaaaaaaaa-default', namespace = usualNamespace): CountedSlice => ({
  namespace,
  name,
  usualNamespace,
})

describe('the ports of a gateway', () => {
  let nowMs = 0
  it('stay while their slice is there', () => {
    const ports = new GatewayPorts(() => nowMs)
    const http = ports.portFor(slice('web'), 'http')
    const admin = ports.portFor(slice('web'), 'admin')
    expect(http).to.not.equal(admin)
    expect([ports.portFor(slice('web'), 'http'), ports.portFor(slice('web'), 'admin')]).to.deep.equal([http, admin])
  })

  it('are those that slices in the member have after a restart', () => {
    const ports = new GatewayPorts(() => nowMs)
    ports.load({
      apiVersion: 'discovery.k8s.io/v1',
      kind: 'EndpointSlice',
      metadata: { name: 'web', namespace: 'aaaaaaaaaa-default', annotations: { 'kcp.dev/gateway-target': '{}' } },
      ports: [{ name: 'http', port: 10_000 }],
    })
    expect(ports.portFor(slice('web'), 'http')).to.equal(10_000)
    expect(ports.portFor(slice('api'), 'http')).to.equal(10_001)
  })

  it('are not used again at once: a client may still connect', () => {
    const ports = new GatewayPorts(() => nowMs)
    const first = ports.portFor(slice('web'), 'http')
    ports.release(slice('web'))
    expect(ports.portFor(slice('api'), 'http')).to.not.equal(first)
  })

  it('are bounded for each logical cluster', () => {
    const ports = new GatewayPorts(() => nowMs)
    for (let i = 0; i < maxGatewayPortsPerCluster; i++) ports.portFor(slice(`s${i}`), 'http')
    expect(ports.portFor(slice('more'), 'http')).to.equal(undefined)
    expect(ports.portFor(slice('more', 'aaaaaaaaaa-shop', 'shop'), 'http'), 'an adopted namespace').to.equal(undefined)
    expect(ports.portFor(slice('web', 'bbbbbbbbbb-default'), 'http')).to.be.a('number')
    ports.release(slice('s0'))
    expect(ports.portFor(slice('more'), 'http')).to.be.a('number')
  })

  it('begin anew after the last one', () => {
    const ports = new GatewayPorts(() => nowMs)
    ports.load({
      apiVersion: 'discovery.k8s.io/v1',
      kind: 'EndpointSlice',
      metadata: { ...slice('last'), annotations: { 'kcp.dev/gateway-target': '{}' } },
      ports: [{ name: 'http', port: gatewayListenerPorts.last }],
    })
    expect(ports.portFor(slice('web'), 'http')).to.equal(gatewayListenerPorts.first)
  })

  it('are listened on before anybody may connect', () => {
    const ports = new GatewayPorts(() => nowMs)
    const wanted = { apiVersion: 'v1', kind: 'EndpointSlice', metadata: slice('web'), ports: [{ port: 10_000 }] }
    expect(ports.listensInMs(slice('web'), wanted, undefined)).to.equal(2000)
    nowMs += 500
    expect(ports.listensInMs(slice('web'), wanted, wanted)).to.equal(1500)
    nowMs += 1500
    expect(ports.listensInMs(slice('web'), wanted, wanted)).to.equal(0)
    const more = { ...wanted, ports: [{ port: 10_000 }, { port: 10_001 }] }
    expect(ports.listensInMs(slice('web'), more, wanted), 'with another port').to.equal(2000)
    expect(ports.listensInMs(slice('old'), wanted, wanted), 'known before a restart').to.equal(0)
    const used = { ...wanted, endpoints: [{ addresses: ['10.1.0.5'] }] }
    expect(ports.listensInMs(slice('used'), more, used), 'with endpoints').to.equal(0)
  })
})
