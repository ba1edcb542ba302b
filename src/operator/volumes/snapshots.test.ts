import { expect } from 'chai'
import { notFound, statusError } from '#apimachinery/status/index.ts'
import { clusterIdOf, type GroupVersionResource, type KubeObject } from '#apimachinery/meta/index.ts'
import type { KubeClient } from '#client/index.ts'
import {
  downstreamNamespace,
  memberAnnotation,
  volumeAnnotation,
  volumeSnapshotLabel,
  type LogicalClusterSnapshot,
  type SnapshotVolume,
} from '#crds/index.ts'
import { VolumeSnapshots } from './snapshots.ts'

const { signal } = new AbortController()
const id = clusterIdOf('u-acme')
const below = downstreamNamespace(id, 'shop')
const driver = 'csi.example.com'
const snapshot: LogicalClusterSnapshot = {
  ...{ apiVersion: 'kcp.dev/v1alpha1', kind: 'LogicalClusterSnapshot', metadata: { name: 'monday', uid: 'u-monday' } },
  spec: { logicalCluster: 'acme', store: 'main', volumes: 'Include' },
}

interface Content extends KubeObject {
  spec: { deletionPolicy: string; driver: string }
}

/** The API of a member with the controllers of snapshots: a VolumeSnapshot gets its content at once. */
class Member {
  readonly objects = new Map<string, KubeObject>()
  /** What the storage keeps. */
  readonly handles = new Set<string>()
  policy = 'Delete'
  driver = driver
  isReady = true
  error: string | undefined
  refuses: string | undefined
  /** What it says of its VolumeSnapshots. */
  readonly status: Record<string, string> = {}

  key({ resource }: GroupVersionResource, { namespace = '', name }: { namespace?: string; name: string }): string {
    return `${resource}/${namespace}/${name}`
  }

  put(resource: string, object: KubeObject): void {
    const { namespace = '', name = '' } = object.metadata
    this.objects.set(this.key({ group: '', version: 'v1', resource }, { namespace, name }), object)
  }

  has(resource: string): string[] {
    return [...this.objects.keys()].filter((key) => key.startsWith(`${resource}/`))
  }

  get client(): KubeClient {
    const tryGet = (gvr: GroupVersionResource, ref: { namespace?: string; name: string }) =>
      Promise.resolve(structuredClone(this.objects.get(this.key(gvr, ref))))
    return {
      tryGet,
      get: async (gvr: GroupVersionResource, ref: { name: string }) => {
        const found = await tryGet(gvr, ref)
        if (found === undefined) throw notFound(gvr, ref.name)
        return found
      },
      list: ({ resource }: GroupVersionResource) =>
        Promise.resolve({ items: this.has(resource).map((key) => this.objects.get(key)) }),
      create: ({ resource }: GroupVersionResource, object: KubeObject) => {
        if (this.refuses !== undefined) return Promise.reject(statusError(403, 'Forbidden', this.refuses))
        const { namespace = '', name = '' } = object.metadata
        if (this.objects.has(`${resource}/${namespace}/${name}`))
          return Promise.reject(statusError(409, 'AlreadyExists', 'there'))
        this.put(resource, object)
        const content = `snapcontent-${name}`
        object['status'] = {
          boundVolumeSnapshotContentName: content,
          readyToUse: this.isReady,
          ...(this.error !== undefined && { error: { message: this.error } }),
          ...{ restoreSize: '64Mi', creationTime: '2026-01-01T00:00:00Z' },
        }
        Object.assign(object['status'] as object, this.status)
        const handle = this.status['handle'] ?? `h-${name}`
        this.handles.add(handle)
        this.put('volumesnapshotcontents', {
          ...{ apiVersion: 'snapshot.storage.k8s.io/v1', kind: 'VolumeSnapshotContent', metadata: { name: content } },
          spec: { deletionPolicy: this.policy, driver: this.driver, volumeSnapshotRef: { namespace, name } },
          status: { snapshotHandle: handle },
        })
        return Promise.resolve(object)
      },
      patch: (gvr: GroupVersionResource, ref: { name: string }, _: string, patch: Record<string, object>) => {
        const found = this.objects.get(this.key(gvr, ref)) as Content
        Object.assign(found.metadata, patch['metadata'])
        Object.assign(found.spec, patch['spec'])
        return Promise.resolve(found)
      },
      delete: (gvr: GroupVersionResource, ref: { namespace?: string; name: string }) => {
        const key = this.key(gvr, ref)
        this.objects.delete(key)
        const content = `volumesnapshotcontents//snapcontent-${ref.name}`
        const { spec } = (this.objects.get(content) ?? {}) as Partial<Content>
        if (gvr.resource === 'volumesnapshots' && spec?.deletionPolicy === 'Delete') {
          this.objects.delete(content)
          this.handles.delete(`h-${ref.name}`)
        }
        if (gvr.resource === 'volumesnapshotcontents') this.handles.delete(ref.name.replace('snapcontent', 'h'))
        return Promise.resolve(undefined)
      },
    } as unknown as KubeClient
  }

  /** A claim as the member has it, with its volume. */
  bind(name: string, csi: object = { driver }): void {
    this.put('persistentvolumeclaims', {
      ...{ apiVersion: 'v1', kind: 'PersistentVolumeClaim', metadata: { namespace: below, name } },
      ...{ spec: { volumeName: `pv-${name}` }, status: { phase: 'Bound' } },
    })
    this.put('persistentvolumes', {
      ...{ apiVersion: 'v1', kind: 'PersistentVolume', metadata: { name: `pv-${name}` } },
      spec: { csi },
    })
  }
}

function claim(name: string, annotations: Record<string, string>, metadata: object = {}): KubeObject {
  return {
    ...{ apiVersion: 'v1', kind: 'PersistentVolumeClaim' },
    metadata: { namespace: 'shop', name, uid: `u-${name}`, annotations, ...metadata },
    spec: { storageClassName: 'fast' },
  }
}

describe('the volumes in a LogicalClusterSnapshot', () => {
  let east: Member
  beforeEach(() => {
    east = new Member()
    for (const name of ['data', 'made']) east.bind(name)
    east.put('volumesnapshotclasses', {
      ...{ apiVersion: 'snapshot.storage.k8s.io/v1', kind: 'VolumeSnapshotClass', metadata: { name: 'csi' }, driver },
    })
  })

  const taker = (readyWithinMs = -1): VolumeSnapshots =>
    new VolumeSnapshots({ readyWithinMs, accessOf: (member) => (member === 'east' ? east : undefined) })
  const members = { get: (name: string) => (['east', 'west'].includes(name) ? {} : undefined) }
  const informers = {
    of: ({ resource }: { resource: string }) => ({
      store: resource === 'memberclusters' ? members : { get: () => ({ metadata: { uid: 'u-acme' } }) },
    }),
  }
  const plan = async (claims: readonly KubeObject[]): Promise<SnapshotVolume[]> => {
    const list = ({ resource }: GroupVersionResource) =>
      Promise.resolve({ items: resource === 'persistentvolumeclaims' ? claims : [] })
    const context = { informers, virtual: () => ({ list }) } as unknown as Parameters<VolumeSnapshots['plan']>[1]
    return await taker().plan(snapshot, context, signal)
  }
  const both = [claim('data', { [volumeAnnotation]: 'east' }), claim('made', { [memberAnnotation]: 'east' })]
  const taken = async (): Promise<SnapshotVolume[]> => await taker().take(snapshot, await plan(both), signal)
  const remove = (volumes: readonly SnapshotVolume[], of = snapshot) =>
    taker().delete(of, volumes, { informers } as unknown as Parameters<VolumeSnapshots['delete']>[2], signal)

  it('are kept by the storage when their VolumeSnapshots and namespaces are gone, and deleted in the end', async () => {
    const volumes = await taken()
    for (const one of volumes)
      expect(one).to.include({
        state: 'Included',
        member: 'east',
        memberNamespace: below,
        driver,
        bytes: 64 * 1024 ** 2,
      })
    await taker().tidy(snapshot, volumes, signal)
    expect(east.has('volumesnapshots')).to.deep.equal([])
    expect([...east.handles].sort()).to.deep.equal(volumes.map(({ handle }) => handle).sort())
    expect(await taker().missing(volumes, signal)).to.deep.equal([])
    expect(await remove(volumes)).to.include({ reason: 'DeletingVolumes' })
    expect(await remove(volumes)).to.equal(undefined)
    expect([...east.handles]).to.deep.equal([])
    expect(await taker().missing(volumes, signal)).to.have.length(2)
  })

  it('are taken once by an attempt after one that was killed', async () => {
    await taken()
    const volumes = await taken()
    expect(volumes.map(({ state }) => state)).to.deep.equal(['Included', 'Included'])
    expect(east.handles.size).to.equal(2)
  })

  it('that were being taken when everything ended are deleted by their names', async () => {
    east.policy = 'Retain'
    const planned = await plan(both)
    await taker().take(snapshot, planned, signal)
    expect(await remove(planned)).to.include({ reason: 'DeletingVolumes' })
    expect(await remove(planned)).to.equal(undefined)
    expect([...east.handles]).to.deep.equal([])
  })

  it('of others are not deleted, and an object that somebody has put in the place of one stays', async () => {
    const volumes = await taken()
    await taker().tidy(snapshot, volumes, signal)
    const forger = { ...snapshot, metadata: { name: 'forged', uid: 'u-forged' } }
    expect(await remove(volumes, forger)).to.equal(undefined)
    expect(east.handles.size).to.equal(2)
    const [first] = volumes
    const { [`volumesnapshotcontents//${first?.content ?? ''}`]: content } = Object.fromEntries(east.objects)
    Object.assign(content ?? {}, { status: { snapshotHandle: 'another' } })
    expect(await taker().missing(volumes, signal)).to.have.length(1)
    await remove(volumes)
    expect(await remove(volumes)).to.equal(undefined)
    expect(east.has('volumesnapshotcontents')).to.have.length(1)
  })

  it('wait for a member that is not connected, and not for one that is not registered any more', async () => {
    const [first] = await taken()
    expect(await remove([{ ...(first as SnapshotVolume), member: 'west' }])).to.include({ reason: 'Unreachable' })
    expect(await remove([{ ...(first as SnapshotVolume), member: 'gone' }])).to.equal(undefined)
  })

  for (const { title, reason, of, arrange } of [
    { title: 'no member has made its volume', reason: 'NotBound', of: claim('data', {}) },
    {
      title: 'its volume ends with its pod',
      reason: 'Ephemeral',
      of: claim('data', { [memberAnnotation]: 'east' }, { ownerReferences: [{ kind: 'Pod', controller: true }] }),
    },
    { title: 'its member is not connected', reason: 'Unreachable', of: claim('data', { [volumeAnnotation]: 'west' }) },
    { title: 'its member has lost it', reason: 'NotBound', of: claim('lost', { [volumeAnnotation]: 'east' }) },
    { title: 'its volume has no CSI driver', reason: 'NotCSI', arrange: () => east.bind('data', {}) },
    {
      title: 'its driver has no class',
      reason: 'NoSnapshotClass',
      arrange: () => east.objects.delete('volumesnapshotclasses//csi'),
    },
    { title: 'the member refuses', reason: 'JoinAgain', arrange: () => (east.refuses = 'no right') },
    { title: 'it is not ready in time', reason: 'NotReady', arrange: () => (east.isReady = false) },
    { title: 'its content is of another driver', reason: 'NotReady', arrange: () => (east.driver = 'other') },
  ] as readonly { title: string; reason: string; of?: KubeObject; arrange?: () => unknown }[])
    it(`leave a claim out with a reason if ${title}`, async () => {
      arrange?.()
      const planned = await plan([of ?? claim('data', { [volumeAnnotation]: 'east' })])
      const volumes = await taker().take(snapshot, planned, signal)
      expect(volumes[0]).to.include({ state: 'LeftOut', reason })
      expect(volumes[0]?.message).to.be.a('string').and.not.equal('')
      expect(volumes[0]).to.not.have.any.keys('handle', 'content')
      await taker().tidy(snapshot, volumes, signal)
      expect(east.has('volumesnapshots')).to.deep.equal([])
    })

  it('are Pending while their storage takes its time', async () => {
    east.isReady = false
    const patient = taker(60_000)
    const planned = await plan(both)
    const waiting = await patient.take(snapshot, planned, signal)
    expect(waiting.map(({ state }) => state)).to.deep.equal(['Pending', 'Pending'])
    for (const key of east.has('volumesnapshots'))
      Object.assign(east.objects.get(key)?.['status'] as object, { readyToUse: true })
    const volumes = await patient.take(snapshot, waiting, signal)
    expect(volumes.map(({ state }) => state)).to.deep.equal(['Included', 'Included'])
  })

  it('are Pending while their member is not connected or does not answer, and left out when it is too late', async () => {
    const planned = await plan(both)
    for (const problem of [undefined, statusError(503, 'ServiceUnavailable', 'later'), new Error('reset')]) {
      let isBroken = true
      const { client } = east
      const broken = { ...client, tryGet: () => Promise.reject(problem ?? new Error()) } as unknown as KubeClient
      const access = { client: broken }
      const accessOf = () => (isBroken ? problem && access : east)
      const patient = new VolumeSnapshots({ readyWithinMs: 60_000, accessOf })
      const waiting = await patient.take(snapshot, planned, signal)
      expect(waiting).to.deep.equal(planned)
      const late = await new VolumeSnapshots({ readyWithinMs: -1, accessOf }).take(snapshot, planned, signal)
      expect(late.map(({ state }) => state)).to.deep.equal(['LeftOut', 'LeftOut'])
      isBroken = false
      const volumes = await patient.take(snapshot, waiting, signal)
      expect(volumes.map(({ state }) => state)).to.deep.equal(['Included', 'Included'])
    }
  })

  it('leave nothing in the storage if a member loses a claim whose snapshot it has taken', async () => {
    east.policy = 'Retain'
    const planned = await plan(both)
    east.isReady = false
    await taker(60_000).take(snapshot, planned, signal)
    for (const name of ['data', 'made']) east.objects.delete(`persistentvolumeclaims/${below}/${name}`)
    const volumes = await taker(60_000).take(snapshot, planned, signal)
    expect(volumes.map(({ reason }) => reason)).to.deep.equal(['NotBound', 'NotBound'])
    expect(east.handles.size).to.equal(2)
    await taker().tidy(snapshot, volumes, signal)
    expect([...east.handles]).to.deep.equal([])
  })

  for (const { title, status } of [
    { title: 'a size', status: { restoreSize: '-1' } },
    { title: 'a size', status: { restoreSize: '9999999999Pi' } },
    { title: 'a time', status: { creationTime: 'yesterday' } },
    { title: 'a handle', status: { handle: 'h'.repeat(513) } },
    { title: 'a name', status: { boundVolumeSnapshotContentName: 'n'.repeat(254) } },
  ] as readonly { title: string; status: Record<string, string> }[])
    it(`have nothing of a member that names ${title} which a status cannot have`, async () => {
      Object.assign(east.status, status)
      const [volume] = await taker().take(snapshot, await plan(both), signal)
      expect(volume).to.not.have.any.keys(...(status['restoreSize'] === undefined ? ['time'] : ['bytes']))
      if (title === 'a handle' || title === 'a name') expect(volume).to.include({ state: 'LeftOut' })
    })

  it('give no more of the storage back than theirs when one was not ready in time, whatever its class says', async () => {
    east.policy = 'Retain'
    east.isReady = false
    east.error = 'the storage is full'
    const volumes = await taken()
    expect(volumes[0]).to.include({ reason: 'NotReady', message: 'the storage is full' })
    await taker().tidy(snapshot, volumes, signal)
    expect([...east.handles]).to.deep.equal([])
  })

  it('have the label of their snapshot, by which the policy in members lets kcp keep and delete them', async () => {
    for (const { content = '' } of await taken()) {
      const found = east.objects.get(`volumesnapshotcontents//${content}`) as Content
      expect(found.metadata.labels).to.deep.equal({ [volumeSnapshotLabel]: 'u-monday' })
      expect(found.spec.deletionPolicy).to.equal('Retain')
    }
  })
})
