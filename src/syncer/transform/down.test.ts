import { expect } from 'chai'
import { clusterIdOf, type KubeObject } from '#apimachinery/meta/index.ts'
import { contentDown, serviceAccountDown, serviceDown } from './down.ts'

const place = { cluster: 'acme', clusterId: clusterIdOf('uid of acme') }
const metadata = { name: 'web', namespace: 'shop', uid: 'u' }

describe('objects on their way into a member', () => {
  it('a Service loses the external addresses that its tenant wrote', () => {
    const spec = {
      type: 'ClusterIP',
      clusterIP: '10.0.0.1',
      externalIPs: ['10.96.0.1'],
      loadBalancerIP: '10.0.0.2',
      ports: [{ port: 443 }],
    }
    const service: KubeObject = { apiVersion: 'v1', kind: 'Service', metadata, spec }
    expect(serviceDown(service, place)['spec']).to.deep.equal({ type: 'ClusterIP', ports: [{ port: 443 }] })
  })
  it('a Service selects pods that take requests, unless it is there for the names of pods', () => {
    const selects = (more: object): unknown => {
      const spec = { selector: { app: 'web' }, ...more }
      return (serviceDown({ apiVersion: 'v1', kind: 'Service', metadata, spec }, place)['spec'] as KubeObject)[
        'selector'
      ]
    }
    const serving = { app: 'web', 'kcp.dev/serving': 'true' }
    expect(selects({})).to.deep.equal(serving)
    expect(selects({ clusterIP: 'None' })).to.deep.equal(serving)
    expect(selects({ publishNotReadyAddresses: true })).to.deep.equal(serving)
    expect(selects({ clusterIP: 'None', publishNotReadyAddresses: true })).to.deep.equal({ app: 'web' })
  })
  it('only annotations that no controller of a member acts on go down, besides those that the member allows', () => {
    const annotations = {
      'external-dns.alpha.kubernetes.io/hostname': 'bank.example',
      'eks.amazonaws.com/role-arn': 'arn:aws:iam::1:role/admin',
      'reflector.v1.k8s.emberstack.com/reflection-auto-enabled': 'true',
      'checksum/config': '1',
      'acme.example/own': 'x',
      team: 'blue',
    }
    const account: KubeObject = { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { ...metadata, annotations } }
    const namesIn = (annotationPrefixes?: string[]) =>
      Object.keys(
        serviceAccountDown(account, { ...place, ...(annotationPrefixes && { annotationPrefixes }) }).metadata
          .annotations ?? {},
      )
    expect(namesIn()).to.deep.equal(['checksum/config', 'team', 'kcp.dev/locator'])
    expect(namesIn(['acme.example/'])).to.deep.equal(['checksum/config', 'acme.example/own', 'team', 'kcp.dev/locator'])
  })
  it('a Secret keeps its type, unless it holds a token of the logical cluster', () => {
    const secret = (type: string): KubeObject => ({ apiVersion: 'v1', kind: 'Secret', metadata, type, data: {} })
    expect(contentDown(secret('kubernetes.io/tls'), place)['type']).to.equal('kubernetes.io/tls')
    expect(contentDown(secret('kubernetes.io/service-account-token'), place)['type']).to.equal('Opaque')
  })
})
