import { expect } from 'chai'
import { statusError, type StatusError } from '#apimachinery/status/index.ts'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import {
  locatorAnnotation,
  memberAnnotation,
  volumeAnnotation,
  volumeConsentAnnotation,
  volumeMoveLabel,
  volumeSourceAnnotation,
  type VolumeMoveStatus,
} from '#crds/index.ts'
import { Obstacle, type VolumeParties } from './parties.ts'
import { advance, obstacleOf, type MoveContext } from './phases.ts'

describe('the obstacle in an error', () => {
  const status = (reason: string, message = 'no'): StatusError => statusError(403, reason, message)
  for (const { title, error, expected } of [
    {
      title: 'is that of a move',
      error: new Obstacle('StillAttached', 'a node has it', { againSeconds: 1 }),
      expected: { reason: 'StillAttached', message: 'a node has it', againSeconds: 1 },
    },
    {
      title: 'is the reason of a member',
      error: status('Forbidden'),
      expected: { reason: 'Forbidden', message: 'no', againSeconds: 5 },
    },
    {
      title: 'is no reason that a condition may not have',
      error: status('no reason!'),
      expected: { reason: 'Failed', message: 'no', againSeconds: 5 },
    },
    { title: 'is no empty reason', error: status(''), expected: { reason: 'Failed', message: 'no', againSeconds: 5 } },
    {
      title: 'has a bounded message',
      error: status('Forbidden', 'x'.repeat(100_000)),
      expected: { reason: 'Forbidden', message: 'x'.repeat(2048), againSeconds: 5 },
    },
    {
      title: 'is any other error',
      error: new Error('broken'),
      expected: { reason: 'Failed', message: 'Error: broken', againSeconds: 10 },
    },
  ])
    it(title, () => expect(obstacleOf(error)).to.deep.equal(expected))
})

describe('a claim that gets its volume from a snapshot', () => {
  const source = JSON.stringify({ snapshot: 'monday', uid: 'u-monday', claimUid: 'u-old' })
  interface Story {
    readonly annotations?: Record<string, string>
    readonly provisioner?: string
    readonly waits?: boolean
    /** The claim that the member has. */
    readonly below?: KubeObject
  }
  const step = async ({ annotations = {}, provisioner = 'csi.example.com', waits = false, below }: Story) => {
    const claim = {
      ...{ apiVersion: 'v1', kind: 'PersistentVolumeClaim', spec: { storageClassName: 'fast' } },
      metadata: {
        ...{ name: 'data', namespace: 'shop', uid: 'u' },
        annotations: { [volumeAnnotation]: 'east', [volumeSourceAnnotation]: source, ...annotations },
      },
    }
    const written: object[] = []
    const made: KubeObject[] = []
    const snapshot = { name: 'monday', driver: 'csi.example.com', handle: 'h-1', bytes: 1024 }
    const side = {
      name: 'east',
      namespace: 'below',
      client: {
        tryGet: ({ resource }: { resource: string }, { namespace }: { namespace?: string }) => {
          if (resource === 'persistentvolumeclaims' && namespace === 'below') return Promise.resolve(below)
          return Promise.resolve(
            resource === 'storageclasses' ? { metadata: { name: 'fast' }, provisioner } : undefined,
          )
        },
        list: () => Promise.resolve({ items: [] }),
        create: (_: object, object: KubeObject) => Promise.resolve(made.push(object)),
      },
    }
    const parties = {
      move: {
        metadata: { name: 'r-1', creationTimestamp: '2026-01-01T00:00:00Z' },
        spec: { from: 'east', to: 'east', way: 'Restore', claim: 'data', claimUid: 'u', namespace: 'shop', snapshot },
      },
      upstream: {
        tryGet: () => Promise.resolve(claim),
        patch: (...args: unknown[]) => Promise.resolve(written.push(args[3] as object)),
      },
      ...{ source: side, target: side },
    } as unknown as VolumeParties
    const context = {
      rounds: { stateOf: () => ({}), forget: () => undefined },
      places: { take: () => (waits ? { ahead: 3, sinceMs: 0, why: 'four are copied' } : undefined) },
    } as unknown as MoveContext
    const outcome = await advance(parties, context).catch((error: unknown) => obstacleOf(error))
    return { outcome, written: JSON.stringify(written), made }
  }

  it('is locked, and the member imports the handle of the record into the namespace of kcp', async () => {
    const { outcome, written, made } = await step({})
    expect(outcome).to.include({ reason: 'Working' })
    expect(written).to.contain('kcp.dev/volume-lock')
    expect(made.map(({ kind }) => kind)).to.deep.equal(['VolumeSnapshotContent', 'VolumeSnapshot'])
    const [content] = made
    expect(content?.['spec']).to.deep.equal({
      ...{ driver: 'csi.example.com', deletionPolicy: 'Retain', source: { snapshotHandle: 'h-1' } },
      volumeSnapshotRef: { namespace: 'kcp-system', name: 'kcp-r-1' },
    })
  })

  it('waits for a place, as a move does', async () => {
    const { outcome, made } = await step({ waits: true })
    expect(outcome).to.have.property('obstacle').that.includes({ reason: 'Queued' })
    expect(made).to.deep.equal([])
  })

  const locator = (uid: string): string =>
    JSON.stringify({ cluster: 'acme', clusterId: 'a1', namespace: 'shop', name: 'data', uid })
  const copyOf = (uid: string, metadata: object = {}): KubeObject => ({
    ...{ apiVersion: 'v1', kind: 'PersistentVolumeClaim', spec: { volumeName: 'pv-1' }, status: { phase: 'Bound' } },
    metadata: { name: 'data', namespace: 'below', annotations: { [locatorAnnotation]: locator(uid) }, ...metadata },
  })

  it('keeps the volume that its member still has of it', async () => {
    const { outcome, written, made } = await step({ below: copyOf('u') })
    expect(outcome).to.include({ isOver: true })
    expect(written).to.contain('"kcp.dev/volume-source":null').and.to.contain('"volumeName":"pv-1"')
    expect(made).to.deep.equal([])
  })

  it('waits while its member deletes that of before, and does not take one of another claim', async () => {
    const ending = await step({ below: copyOf('u', { deletionTimestamp: '2026-01-01T00:00:00Z' }) })
    expect(ending.outcome).to.include({ reason: 'Working', againSeconds: 1 })
    expect(ending.made).to.deep.equal([])
    expect((await step({ below: copyOf('u-before') })).made).to.have.length(2)
  })

  it('gets none of another driver', async () => {
    const { outcome, made } = await step({ provisioner: 'other.example.com' })
    expect(outcome).to.include({ reason: 'OtherDriver' })
    expect(made).to.deep.equal([])
  })

  it('gets none if its tenant lets it begin empty', async () => {
    const { outcome, made } = await step({ annotations: { [volumeConsentAnnotation]: 'empty' } })
    expect(outcome).to.include({ isOver: true })
    expect(made).to.deep.equal([])
  })
})

describe('a move whose data was compared', () => {
  const lastRound = { completionTime: '2026-01-01T00:00:00Z', seconds: 1, changedBytes: 0 }
  const named = (name: string, rest: object = {}): KubeObject => ({
    ...{ apiVersion: 'v1', kind: 'PersistentVolumeClaim', metadata: { name } },
    ...rest,
  })
  const bound = async (
    status: VolumeMoveStatus,
    {
      isSourceLost = false,
      pods = [],
      way = 'Copy',
    }: { isSourceLost?: boolean; pods?: readonly KubeObject[]; way?: string } = {},
  ): Promise<VolumeMoveStatus> => {
    const claim = named('data', { metadata: { name: 'data', uid: 'u', annotations: { [memberAnnotation]: 'east' } } })
    const fresh = named('kcp-v-1', { metadata: { labels: { [volumeMoveLabel]: 'v-1' } }, spec: { volumeName: 'pv-1' } })
    const spec = { from: 'east', to: 'west', way, claim: 'data', claimUid: 'u', namespace: 'shop' }
    const parties = {
      move: { metadata: { name: 'v-1' }, spec, status: { phase: 'Binding', ...status } },
      upstream: { tryGet: () => Promise.resolve(claim) },
      source: { client: { list: () => (isSourceLost ? Promise.reject(new Error('asked')) : { items: pods }) } },
      target: { client: { tryGet: () => Promise.resolve(fresh) } },
    } as unknown as VolumeParties
    const context = { rounds: { forget: () => undefined }, isSourceLost } as unknown as MoveContext
    return (await advance(parties, context)).status
  }

  it('goes on without the old member if that is lost', async () => {
    const status = await bound({ lastRound, digest: 'abc' }, { isSourceLost: true })
    expect(status).to.deep.equal({ phase: 'Binding', lastRound, digest: 'abc', lostAfter: lastRound.completionTime })
    const { volumeName } = await bound(status, { isSourceLost: true })
    expect(volumeName).to.equal('pv-1')
  })

  for (const way of ['Snapshot', 'Shared'])
    it(`goes on without it if the storage has the data: ${way}`, async () => {
      const stoppedTime = '2026-01-01T00:00:07Z'
      const status = await bound({ stoppedTime }, { isSourceLost: true, way })
      expect(status).to.deep.equal({ phase: 'Binding', stoppedTime, lostAfter: stoppedTime })
      expect(await bound(status, { isSourceLost: true, way })).to.have.property('volumeName')
    })

  const volumes = [{ persistentVolumeClaim: { claimName: 'data' } }]
  const pods = [named('db-0', { spec: { volumes } })]

  it('is compared again if a pod uses the old volume', async () => {
    expect(await bound({ lastRound, digest: 'abc' }, { pods })).to.deep.equal({ phase: 'Finishing', lastRound })
    expect(await bound({ lastRound, digest: 'abc' })).to.have.property('volumeName', 'pv-1')
  })

  it('waits if a pod uses the old volume when it is too late for that', async () => {
    const error = await bound({ digest: 'abc', volumeName: 'pv-1' }, { pods }).catch((one: unknown) => one)
    expect(obstacleOf(error)).to.include({ reason: 'StillAttached', againSeconds: 1 })
  })
})
