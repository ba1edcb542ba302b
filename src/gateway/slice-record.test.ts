import { expect } from 'chai'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { sliceIn, sliceRecord } from './slice-record.ts'

const namespace = 'acmeacme22-shop'

function slice(
  by: string,
  more: {
    readonly namespace?: string
    readonly target?: object
    readonly endpoints?: object[]
    readonly ports?: object[]
  } = {},
): KubeObject {
  const { target, endpoints = [], ports = [{ name: 'http', port: 10_001, protocol: 'TCP' }] } = more
  return {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: {
      name: 'web',
      namespace: more.namespace ?? namespace,
      labels: {
        'kubernetes.io/service-name': 'web',
        'endpointslice.kubernetes.io/managed-by': by,
        'kcp.dev/member': 'west',
      },
      annotations: { ...(target && { 'kcp.dev/gateway-target': JSON.stringify(target) }) },
    },
    ports,
    endpoints,
  }
}

const remote = (target: object, more: object = {}): KubeObject => slice('kcp-syncer', { target, ...more })

describe('what a gateway keeps of an EndpointSlice', () => {
  it('is where to listen, for one of another member', () => {
    expect(sliceRecord(remote({ namespace, service: 'web' }))).to.deep.equal({
      type: 'remote',
      namespace,
      member: 'west',
      clusterId: 'acmeacme22',
      targetNamespace: namespace,
      service: 'web',
      ports: [{ name: 'http', port: 10_001 }],
    })
  })

  for (const { title, given } of [
    { title: 'one of another member without a gateway', given: slice('kcp-syncer') },
    { title: 'a target in a namespace of no logical cluster', given: remote({ namespace: 'shop', service: 'web' }) },
    { title: 'a target without a Service', given: remote({ namespace }) },
    { title: 'addresses that somebody else has written', given: slice('me') },
  ])
    it(`is nothing of ${title}`, () => expect(sliceRecord(given)).to.equal(undefined))

  it('counts where it leads into its own namespace, whatever the name of that is here', () => {
    const [own, adopted] = [namespace, 'shop'].map((here) =>
      sliceRecord(remote({ namespace, service: 'web' }, { namespace: here })),
    )
    expect(own && sliceIn(own, namespace)).to.equal(own)
    expect(adopted && sliceIn(adopted, namespace)).to.equal(adopted)
    expect(own && sliceIn(own, 'bobbobbob2-shop')).to.equal(undefined)
  })

  it('is the pods that take connections, for one of this member', () => {
    const endpoint = (last: number, conditions: object | undefined, name?: string): object => ({
      addresses: [`10.0.0.${last}`],
      ...(conditions && { conditions }),
      ...(name !== undefined && { targetRef: { kind: 'Pod', name } }),
    })
    const given = slice('endpointslice-controller.k8s.io', {
      ports: [
        { name: 'http', port: 80 },
        { name: 'dns', port: 53, protocol: 'UDP' },
        { port: 81, protocol: 'TCP' },
      ],
      endpoints: [
        endpoint(1, { ready: true }, 'one'),
        endpoint(2, undefined),
        endpoint(3, { ready: false, serving: true, terminating: true }),
        endpoint(4, { ready: false, serving: false }),
      ],
    })
    expect(sliceRecord(given)).to.deep.equal({
      type: 'local',
      namespace,
      service: 'web',
      ports: [
        { name: 'http', port: 80 },
        { name: '', port: 81 },
      ],
      endpoints: [
        { address: '10.0.0.1', pod: `${namespace}/one`, isReady: true },
        { address: '10.0.0.2', pod: '', isReady: true },
        { address: '10.0.0.3', pod: '', isReady: false },
      ],
    })
  })
})
