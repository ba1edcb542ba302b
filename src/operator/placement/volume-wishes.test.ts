import { expect } from 'chai'
import type { Condition, GroupVersionResource, KubeObject } from '#apimachinery/meta/index.ts'
import {
  volumeAnnotation,
  volumeConsentAnnotation,
  volumeSourceAnnotation,
  type LogicalClusterSnapshot,
  type SnapshotVolume,
  type VolumeMove,
} from '#crds/index.ts'
import { reconcileVolumeWish, type VolumeWishContext } from './volume-wishes.ts'

const { signal } = new AbortController()
const volume: SnapshotVolume = {
  ...{ namespace: 'shop', claim: 'data', claimUid: 'u-old', state: 'Included', member: 'east', storageClass: 'fast' },
  ...{ driver: 'csi.example.com', handle: 'h-1', bytes: 1024 },
}
const snapshot: LogicalClusterSnapshot = {
  ...{ apiVersion: 'kcp.dev/v1alpha1', kind: 'LogicalClusterSnapshot', metadata: { name: 'monday', uid: 'u-monday' } },
  ...{ spec: { logicalCluster: 'acme', store: 'main' }, status: { volumes: [volume] } },
}

describe('a claim that waits for its volume from a snapshot', () => {
  interface Story {
    readonly record?: LogicalClusterSnapshot | undefined
    readonly source?: string
    readonly annotations?: Record<string, string>
    readonly members?: readonly string[]
    readonly known?: readonly Partial<VolumeMove>[]
  }
  /** The VolumeMoves and Events that are made, and the annotations that are written. */
  const reconcile = async ({
    source = JSON.stringify({ snapshot: 'monday', uid: 'u-monday', claimUid: 'u-old' }),
    annotations = {},
    members = ['east'],
    known = [],
    ...story
  }: Story) => {
    const record = 'record' in story ? story.record : snapshot
    const claim: KubeObject = {
      ...{ apiVersion: 'v1', kind: 'PersistentVolumeClaim' },
      metadata: {
        ...{ namespace: 'shop', name: 'data', uid: 'u-new', resourceVersion: '7' },
        annotations: { [volumeAnnotation]: 'east', [volumeSourceAnnotation]: source, ...annotations },
      },
    }
    const made: KubeObject[] = []
    const written: object[] = []
    const create = (_: GroupVersionResource, object: KubeObject) => Promise.resolve(made.push(object))
    const context = {
      inputs: {
        claims: { store: { get: () => claim } },
        members: { store: { get: (name: string) => (members.includes(name) ? {} : undefined) } },
        movesOfClaim: () => known,
      },
      clusters: {
        tryGet: (_: GroupVersionResource, { name }: { name: string }) =>
          Promise.resolve(name === record?.metadata.name ? record : undefined),
        create,
      },
      virtual: () => ({
        tryGet: () => Promise.resolve(claim),
        patch: (...args: unknown[]) => Promise.resolve(written.push(args[3] as object)),
        create,
      }),
    } as unknown as VolumeWishContext
    await reconcileVolumeWish('acme-2|shop/data', context, signal)
    return { made, written }
  }

  it('gets it from the handle of the record', async () => {
    const { made } = await reconcile({})
    expect(made.map(({ kind, spec }) => ({ kind, spec }))).to.deep.equal([
      {
        kind: 'VolumeMove',
        spec: {
          ...{
            logicalCluster: 'acme-2',
            namespace: 'shop',
            claim: 'data',
            claimUid: 'u-new',
            from: 'east',
            to: 'east',
          },
          ...{ way: 'Restore', storageClass: 'fast', retainSeconds: 0 },
          snapshot: { name: 'monday', driver: 'csi.example.com', handle: 'h-1', bytes: 1024 },
        },
      },
    ])
    expect((await reconcile({ known: [{ ...(made[0] as VolumeMove) }] })).made).to.deep.equal([])
  })

  const deletionTimestamp = '2026-01-01T00:00:00Z'
  const ending: LogicalClusterSnapshot = { ...snapshot, metadata: { ...snapshot.metadata, deletionTimestamp } }
  const begun: Condition = {
    ...{ type: 'VolumesIncluded', status: 'False', reason: 'DeletingVolumes', message: '' },
    lastTransitionTime: deletionTimestamp,
  }

  it('gets it from a snapshot whose deletion waits for that', async () => {
    expect((await reconcile({ record: ending })).made.map(({ kind }) => kind)).to.deep.equal(['VolumeMove'])
  })

  const named = (fields: object): string =>
    JSON.stringify({ snapshot: 'monday', uid: 'u-monday', claimUid: 'u-old', ...fields })
  for (const { title, story, message } of [
    { title: 'the snapshot is gone', story: { record: undefined }, message: 'is not there any more' },
    {
      title: 'another snapshot has its name',
      story: { source: named({ uid: 'u-before' }) },
      message: 'is not there any more',
    },
    {
      title: 'the snapshot is of other claims',
      story: { source: named({ claimUid: 'u-victim' }) },
      message: 'has no volume of this claim',
    },
    {
      title: 'the volume was left out',
      story: { record: { ...snapshot, status: { volumes: [{ ...volume, state: 'LeftOut' }] } } },
      message: 'has no volume of this claim',
    },
    {
      title: 'the volume is in another member than the claim',
      story: { record: { ...snapshot, status: { volumes: [{ ...volume, member: 'west' }] } } },
      message: 'in member cluster "west", not in "east"',
    },
    { title: 'the member is not registered', story: { members: [] }, message: 'is not registered' },
    { title: 'the annotation is broken', story: { source: 'broken' }, message: 'is not there any more' },
    {
      title: 'the volumes of the snapshot are being deleted',
      story: { record: { ...ending, status: { volumes: [volume], conditions: [begun] } } },
      message: 'is being deleted',
    },
  ] as readonly { title: string; story: Story; message: string }[])
    it(`gets none, and its tenant learns why, if ${title}`, async () => {
      const { made, written } = await reconcile(story)
      expect(made.map(({ kind, reason }) => ({ kind, reason }))).to.deep.equal([
        { kind: 'Event', reason: 'SnapshotGone' },
      ])
      expect(made[0]?.['message']).to.contain(message).and.to.contain('kcp.dev/volume-consent=empty')
      expect(written).to.deep.equal([])
    })

  it('begins empty if its tenant agrees', async () => {
    const { made, written } = await reconcile({ annotations: { [volumeConsentAnnotation]: 'empty' } })
    expect(made).to.deep.equal([])
    const names = [volumeSourceAnnotation, volumeAnnotation, volumeConsentAnnotation]
    const annotations = Object.fromEntries(names.map((name) => [name, null]))
    expect(written).to.deep.equal([{ metadata: { uid: 'u-new', resourceVersion: '7', annotations } }])
  })
})
