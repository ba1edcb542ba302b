import { expect } from 'chai'
import type { MemberCluster, MemberClusterStatus } from '#crds/index.ts'
import { clusterProfileOf, tenantProfileOf } from './cluster-profiles.ts'

const addresses = {
  member: (name: string) => `https://kcp.example/services/members/${name}`,
  logicalCluster: (name: string) => `https://kcp.example/clusters/${name}`,
  servingCa: 'PEM',
}
const where = { namespace: 'kcp-system', version: 'v1alpha1', addresses }
const lastTransitionTime = '2026-01-01T00:00:00Z'
const ready = {
  type: 'Ready',
  status: 'True',
  reason: 'Answers',
  message: 'its API answers',
  lastTransitionTime,
} as const
const accepted = { ...ready, type: 'Accepted', reason: 'Accepted', message: 'it is registered once' }
const member = (status?: MemberClusterStatus): MemberCluster => ({
  apiVersion: 'kcp.dev/v1alpha1',
  kind: 'MemberCluster',
  metadata: { name: 'east', uid: 'u1' },
  ...(status !== undefined && { status }),
})

describe('the ClusterProfile of a member', () => {
  it('shows its identity, version, health and size, and belongs to it', () => {
    const status: MemberClusterStatus = {
      id: 'kube-system-uid',
      version: 'v1.34.3',
      nodes: { ready: 2, total: 3 },
      allocatable: { cpu: '7800m', memory: '16Gi' },
      conditions: [accepted, ready],
      lastHeartbeatTime: lastTransitionTime,
    }
    expect(clusterProfileOf(member(status), where)).to.deep.equal({
      apiVersion: 'multicluster.x-k8s.io/v1alpha1',
      kind: 'ClusterProfile',
      metadata: {
        name: 'east',
        namespace: 'kcp-system',
        labels: {
          'x-k8s.io/cluster-manager': 'kcp',
          'multicluster.x-k8s.io/inventory-member-id': 'kube-system-uid',
        },
        ownerReferences: [{ apiVersion: 'kcp.dev/v1alpha1', kind: 'MemberCluster', name: 'east', uid: 'u1' }],
      },
      spec: { displayName: 'east', clusterManager: { name: 'kcp' } },
      status: {
        conditions: [
          { ...ready, type: 'ControlPlaneHealthy' },
          { ...accepted, type: 'Joined' },
        ],
        version: { kubernetes: 'v1.34.3' },
        properties: [
          { name: 'kcp.dev/state', value: 'Active' },
          { name: 'kcp.dev/nodes', value: '3' },
          { name: 'kcp.dev/ready-nodes', value: '2' },
          { name: 'kcp.dev/allocatable-cpu', value: '7800m' },
          { name: 'kcp.dev/allocatable-memory', value: '16Gi' },
        ],
      },
    })
  })

  it('says nothing of a member that was not asked yet but its state', () => {
    const { metadata, status } = clusterProfileOf(member(), where)
    expect(metadata.labels).to.deep.equal({ 'x-k8s.io/cluster-manager': 'kcp' })
    expect(status).to.deep.equal({ conditions: [], properties: [{ name: 'kcp.dev/state', value: 'Active' }] })
  })

  it('does not change with a heartbeat', () => {
    const at = (lastHeartbeatTime: string) =>
      clusterProfileOf(member({ conditions: [ready], lastHeartbeatTime }), where)
    expect(at('2026-01-01T00:00:00Z')).to.deep.equal(at('2026-01-01T00:00:30Z'))
  })

  it('has an address only if the MemberCluster names a ServiceAccount for others', () => {
    const access = { serviceAccountRef: { namespace: 'team', name: 'fleet' } }
    expect(clusterProfileOf({ ...member(), spec: { access } }, where).status.accessProviders).to.deep.equal([
      {
        name: 'kcp',
        cluster: { server: 'https://kcp.example/services/members/east', 'certificate-authority-data': 'UEVN' },
      },
    ])
    expect(clusterProfileOf({ ...member(), spec: {} }, where).status).not.to.have.property('accessProviders')
  })
})

describe('the ClusterProfile of a logical cluster', () => {
  it('leads to its own API, has a name of its own, and belongs to it', () => {
    const { metadata, spec, status } = tenantProfileOf(
      {
        apiVersion: 'kcp.dev/v1alpha1',
        kind: 'LogicalCluster',
        metadata: { name: 'acme', uid: 'u2' },
        spec: { access: { serviceAccountRef: { namespace: 'default', name: 'fleet' } } },
        status: { conditions: [ready] },
      },
      where,
    )
    expect([metadata.name, spec.displayName]).to.deep.equal(['acme.logicalcluster', 'acme'])
    expect(metadata.ownerReferences?.[0]).to.deep.include({ kind: 'LogicalCluster', name: 'acme', uid: 'u2' })
    expect(status.conditions).to.deep.equal([{ ...ready, type: 'ControlPlaneHealthy' }])
    expect(status.accessProviders?.[0]?.cluster.server).to.equal('https://kcp.example/clusters/acme')
  })
})
