import { expect } from 'chai'
import { clusterIdOf, type KubeObject } from '#apimachinery/meta/index.ts'
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
  it('a NetworkPolicy that allows the DNS of a cluster allows the nameserver of the member', () => {
    const system = { matchLabels: { 'kubernetes.io/metadata.name': 'kube-system' } }
    const dns = { matchLabels: { 'k8s-app': 'kube-dns' } }
    const nameserver = {
      namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'kcp-system' } },
      podSelector: { matchLabels: { 'app.kubernetes.io/name': 'kcp-dns' } },
    }
    for (const { peer, from = 'shop', allowed } of [
      { peer: { namespaceSelector: system, podSelector: dns }, allowed: true },
      { peer: { namespaceSelector: system }, allowed: true },
      { peer: { namespaceSelector: {} }, allowed: true },
      { peer: { namespaceSelector: {}, podSelector: dns }, allowed: true },
      {
        peer: {
          namespaceSelector: {
            matchExpressions: [{ key: 'kubernetes.io/metadata.name', operator: 'In', values: ['kube-system', 'a'] }],
          },
          podSelector: { matchExpressions: [{ key: 'k8s-app', operator: 'In', values: ['kube-dns', 'coredns'] }] },
        },
        allowed: true,
      },
      { peer: { podSelector: dns }, from: 'kube-system', allowed: true },
      { peer: { podSelector: dns }, allowed: false },
      { peer: { podSelector: {} }, allowed: false },
      { peer: { namespaceSelector: { matchLabels: { team: 'a' } } }, allowed: false },
      { peer: { namespaceSelector: system, podSelector: { matchLabels: { app: 'x' } } }, allowed: false },
      { peer: { ipBlock: { cidr: '10.0.0.0/8' } }, allowed: false },
    ]) {
      const ports = [{ port: 53, protocol: 'UDP' }]
      const policy = object('networking.k8s.io/v1', 'NetworkPolicy', {
        podSelector: {},
        ingress: [{ from: [peer] }],
        egress: [{ to: [peer], ports }],
      })
      const spec = specOf(networkPolicyDown({ ...policy, metadata: { ...metadata, namespace: from } }, place))
      const { ingress, egress } = spec as { ingress: [{ from: object[] }]; egress: [{ to: object[]; ports: unknown }] }
      expect(egress[0].to.slice(1), JSON.stringify(peer)).to.deep.equal(allowed ? [nameserver] : [])
      expect(egress[0].ports).to.deep.equal(ports)
      expect(ingress[0].from).to.have.length(1)
    }
  })
})
