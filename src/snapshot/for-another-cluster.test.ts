import { expect } from 'chai'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { forAnotherCluster, forSameCluster, leftOut, uidInCluster } from './for-another-cluster.ts'

const [owner, other] = ['11111111-1111-4111-8111-111111111111', '22222222-2222-4222-8222-222222222222']

function object(kind: string, metadata: object, rest: object = {}): KubeObject {
  return { kind, apiVersion: kind === 'Deployment' || kind === 'StatefulSet' ? 'apps/v1' : 'v1', metadata, ...rest }
}

describe('an object of a snapshot', () => {
  it('begins elsewhere with its own uids, also where others name it, and without what the installation wrote', () => {
    const uids = new Map([[owner, uidInCluster('b', owner)]])
    const begun = forAnotherCluster(
      object(
        'Deployment',
        {
          name: 'web',
          uid: owner,
          resourceVersion: '7',
          annotations: {
            'kcp.dev/clusters': 'east',
            'kcp.dev/placed-on': '{"east":{}}',
            'status.kcp.dev/east': '{}',
            a: 'b',
          },
          finalizers: ['syncer.kcp.dev/east', 'example.com/mine'],
          ownerReferences: [{ apiVersion: 'v1', kind: 'X', name: 'x', uid: owner }],
        },
        { spec: { replicas: 3, ref: { uid: owner, text: `about ${owner}` } }, status: { replicas: 3 } },
      ),
      uids,
    )
    expect(begun).to.deep.equal({
      kind: 'Deployment',
      apiVersion: 'apps/v1',
      metadata: {
        name: 'web',
        uid: uids.get(owner),
        annotations: { 'kcp.dev/clusters': 'east', a: 'b' },
        finalizers: ['example.com/mine'],
        ownerReferences: [{ apiVersion: 'v1', kind: 'X', name: 'x', uid: uids.get(owner) }],
      },
      spec: { replicas: 3, ref: { uid: uids.get(owner), text: `about ${owner}` } },
      status: {},
    })
    expect(uids.get(owner)).to.match(/^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
    expect(uidInCluster('c', owner)).not.to.equal(uids.get(owner))
  })

  it('keeps its data as they are: a ConfigMap that mentions a uid, a number beyond 2^53', () => {
    const uids = new Map([[owner, other]])
    const data = { owner, n: 1 }
    expect(forAnotherCluster(object('ConfigMap', { name: 'a', uid: owner }, { data }), uids)).to.deep.equal(
      object('ConfigMap', { name: 'a', uid: other }, { data }),
    )
  })

  it('loses the place of its data and the token of another logical cluster', () => {
    const claim = object(
      'PersistentVolumeClaim',
      { name: 'd' },
      { spec: { volumeName: 'v', resources: {} }, status: { phase: 'Bound' } },
    )
    expect(forAnotherCluster(claim, new Map())).to.deep.include({
      spec: { resources: {} },
      status: { phase: 'Pending' },
    })
    const token = object(
      'Secret',
      { name: 't' },
      { type: 'kubernetes.io/service-account-token', data: { token: 'eA==' } },
    )
    expect(forAnotherCluster(token, new Map())).not.to.have.property('data')
  })

  it('keeps the status of a Job that has ended, so that it does not run again', () => {
    const status = { conditions: [{ type: 'Complete', status: 'True' }] }
    const job = { ...object('Job', { name: 'j' }, { status }), apiVersion: 'batch/v1' }
    expect(forAnotherCluster(job, new Map())).to.deep.include({ status })
  })

  it('is left out if others make it again, or if it tells of another time', () => {
    const of = (kind: string, metadata: object) => leftOut(object(kind, { name: 'x', ...metadata }))
    expect(of('Pod', { annotations: { 'kcp.dev/member': 'east' } })).to.equal('a member makes it again')
    expect(of('Pod', { annotations: { 'kcp.dev/member': 'east', 'kcp.dev/placed-on': '{}' } })).to.equal(undefined)
    expect(of('Event', {})).to.match(/elsewhere/)
    expect(of('ConfigMap', { deletionTimestamp: '2026-01-01T00:00:00Z' })).to.equal('it was being deleted')
    expect(of('StorageClass', { annotations: { 'kcp.dev/projected-from': 'east' } })).to.match(/installation/)
    expect(of('ConfigMap', {})).to.equal(undefined)
  })

  it('goes back without what members and the installation write now, which stays', () => {
    const then = object(
      'Deployment',
      { name: 'web', uid: owner, annotations: { 'kcp.dev/placed-on': 'then', a: 'then' } },
      { spec: { replicas: 1 }, status: { replicas: 1 } },
    )
    const now = object(
      'Deployment',
      {
        name: 'web',
        uid: owner,
        annotations: { 'kcp.dev/placed-on': 'now', a: 'now', b: 'now' },
        finalizers: ['syncer.kcp.dev/west', 'example.com/later'],
      },
      { spec: { replicas: 2 }, status: { replicas: 2 } },
    )
    expect(forSameCluster(then, now)).to.deep.equal(
      object(
        'Deployment',
        {
          name: 'web',
          uid: owner,
          annotations: { 'kcp.dev/placed-on': 'now', a: 'then' },
          finalizers: ['syncer.kcp.dev/west'],
        },
        { spec: { replicas: 1 }, status: { replicas: 2 } },
      ),
    )
    expect(forSameCluster(then, undefined).metadata.annotations).to.deep.equal({ a: 'then' })
  })
})
