import { expect } from 'chai'
import { clusterIdOf, type KubeObject } from '../../apimachinery/meta/index.ts'
import { contentDown, serviceDown } from './down.ts'

const place = { cluster: 'acme', clusterId: clusterIdOf('uid of acme') }
const metadata = { name: 'web', namespace: 'shop', uid: 'u' }

describe('objects on their way into a member', () => {
  it('a Service loses the external addresses that its tenant wrote', () => {
    const spec = { type: 'ClusterIP', clusterIP: '10.0.0.1', externalIPs: ['10.96.0.1'], ports: [{ port: 443 }] }
    const service: KubeObject = { apiVersion: 'v1', kind: 'Service', metadata, spec }
    expect(serviceDown(service, place)['spec']).to.deep.equal({ type: 'ClusterIP', ports: [{ port: 443 }] })
  })
  it('a Secret keeps its type, unless it holds a token of the logical cluster', () => {
    const secret = (type: string): KubeObject => ({ apiVersion: 'v1', kind: 'Secret', metadata, type, data: {} })
    expect(contentDown(secret('kubernetes.io/tls'), place)['type']).to.equal('kubernetes.io/tls')
    expect(contentDown(secret('kubernetes.io/service-account-token'), place)['type']).to.equal('Opaque')
  })
})
