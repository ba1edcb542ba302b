import { expect } from 'chai'
import { clusterIdOf, type KubeObject } from '../../apimachinery/meta/index.ts'
import { claimDown, namespaceLabel, networkPolicyDown } from './dependents-down.ts'

const place = { cluster: 'acme', clusterId: clusterIdOf('uid of acme') }
const metadata = { name: 'web', namespace: 'shop', uid: 'u' }
const object = (apiVersion: string, kind: string, spec: Record<string, unknown>): KubeObject => ({
  apiVersion,
  kind,
  metadata,
  spec,
})
const specOf = (copy: KubeObject): Record<string, unknown> => copy['spec'] as Record<string, unknown>

describe('what belongs to workloads, on its way into a member', () => {
  it('a claim names no volume: it would be one of the member', () => {
    const claim = object('v1', 'PersistentVolumeClaim', { volumeName: 'disk-of-another', storageClassName: 's' })
    expect(specOf(claimDown(claim, place))).to.deep.equal({ storageClassName: 's' })
  })
  it('a NetworkPolicy selects namespaces of its logical cluster only', () => {
    const expression = { key: 'team', operator: 'In', values: ['a'] }
    const policy = object('networking.k8s.io/v1', 'NetworkPolicy', {
      podSelector: {},
      ingress: [{ from: [{ namespaceSelector: {} }, { podSelector: {} }] }],
      egress: [{ to: [{ namespaceSelector: { matchLabels: { team: 'a' }, matchExpressions: [expression] } }] }],
    })
    const own = { 'kcp.dev/logical-cluster': place.clusterId }
    const team = namespaceLabel('team')
    expect(specOf(networkPolicyDown(policy, place))).to.deep.include({
      ingress: [{ from: [{ namespaceSelector: { matchLabels: own } }, { podSelector: {} }] }],
      egress: [
        {
          to: [
            {
              namespaceSelector: {
                matchLabels: { ...own, [team]: 'a' },
                matchExpressions: [{ ...expression, key: team }],
              },
            },
          ],
        },
      ],
    })
  })
})
