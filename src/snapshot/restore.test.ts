import { expect } from 'chai'
import { Readable } from 'node:stream'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { statusError } from '#apimachinery/status/index.ts'
import type { KubeClient } from '#client/index.ts'
import {
  memberAnnotation,
  volumeAnnotation,
  volumeSourceAnnotation,
  type LogicalClusterSnapshot,
  type SnapshotVolume,
  type VolumeSource,
} from '#crds/index.ts'
import { keptVolumes, type KeptVolume } from './for-another-cluster.ts'
import { tarOf, withVolumes, type WrittenPart } from './format.ts'
import { batchBytes, openSnapshotToPut, type ObjectsToPut, type SnapshotSource } from './restore.ts'

const { signal } = new AbortController()

describe('a restore of a snapshot', () => {
  const uidOf = (n: number): string => `00000000-0000-4000-8000-${String(n).padStart(12, '0')}`
  /** ConfigMap 0 is owned by 1, which is owned by 2, and so on: the last one has to be put first. */
  const count = 40
  const object = (n: number): KubeObject => ({
    kind: 'ConfigMap',
    apiVersion: 'v1',
    metadata: {
      name: `c-${n}`,
      namespace: 'a',
      uid: uidOf(n),
      ...(n + 1 < count && {
        ownerReferences: [{ apiVersion: 'v1', kind: 'ConfigMap', name: `c-${n + 1}`, uid: uidOf(n + 1) }],
      }),
    },
    data: { text: 'x'.repeat(100 + n) },
  })
  const about = {
    takenAt: '2026-01-02T03:04:05Z',
    program: '1.2.3',
    logicalCluster: { name: 'acme', id: 'a123456789', uid: 'u1' },
    revision: '42',
    initial: [],
    deleted: [],
  }
  const tar = (objects: readonly KubeObject[], { revision } = about): Promise<Uint8Array[]> => {
    const lines = objects.map((one) => Buffer.from(JSON.stringify(one)))
    const bytes = lines.reduce((sum, { length }) => sum + length, 0)
    const part: WrittenPart = { resource: 'configmaps', count: lines.length, bytes, objects: lines }
    return tarOf({ ...about, revision }, [part], () => undefined).toArray() as Promise<Uint8Array[]>
  }
  const all = Array.from({ length: count }, (_, n) => object(n))

  async function putAll(source: SnapshotSource, atOnce: number, sizes: number[] = []): Promise<KubeObject[]> {
    const put: KubeObject[] = []
    const client = {
      raw(_path: string, { body }: { body: ObjectsToPut }) {
        put.push(...(body.objects ?? []).map(({ object: one }) => one))
        sizes.push(JSON.stringify(body).length)
        return Promise.resolve({ created: body.objects?.length ?? 0, updated: 0, unchanged: 0, deleted: 0 })
      },
    } as unknown as KubeClient
    const snapshot = await openSnapshotToPut(source, { signal, atOnce })
    const { created } = await snapshot.put({
      client,
      id: about.logicalCluster.id,
      validate: false,
      beginning: { initial: [] },
      signal,
    })
    expect(created).to.equal(put.length)
    return put
  }

  it('puts owners first, with memory for all objects, for some, or for one', async () => {
    const chunks = await tar(all)
    const expected = [...all].reverse()
    for (const atOnce of [Infinity, 1500, 1]) {
      let opened = 0
      const source = (): Promise<AsyncIterable<Uint8Array>> => {
        opened++
        return Promise.resolve(Readable.from(chunks, { objectMode: false }))
      }
      expect(await putAll(source, atOnce)).to.deep.equal(expected)
      if (atOnce === Infinity) expect(opened).to.equal(1)
      if (atOnce === 1500) expect(opened).to.be.within(3, 15)
      // Memory is taken for a sixteenth of it, so that it is not read for each object.
      if (atOnce === 1) expect(opened).to.be.within(16, 25)
    }
    expect(await putAll(Readable.from(chunks, { objectMode: false }), 1)).to.deep.equal(expected)
  })

  it('ends with an error if the bytes are others when they are read again', async () => {
    const others = all.map((one) => ({ ...one, data: { text: 'y' } }))
    const ofTheSameLength = all.map((one, n) => ({ ...one, data: { text: 'y'.repeat(100 + n) } }))
    const first = await tar(all)
    for (const later of [await tar(others), await tar(ofTheSameLength, { ...about, revision: '43' })]) {
      let opened = 0
      const source = (): Promise<AsyncIterable<Uint8Array>> =>
        Promise.resolve(Readable.from(opened++ === 0 ? first : later, { objectMode: false }))
      const error = await putAll(source, 1500).catch((reason: unknown) => reason)
      expect(String(error)).to.contain('it was changed while it was restored')
    }
  })

  describe('with claims', () => {
    const claim = (name: string, annotations: Record<string, string> = {}): KubeObject => ({
      ...{ kind: 'PersistentVolumeClaim', apiVersion: 'v1' },
      metadata: { name, namespace: 'a', uid: `uid-${name}`, annotations },
      ...{ spec: { volumeName: 'pv', storageClassName: 'fast' }, status: { phase: 'Bound' } },
    })
    const source = (name: string): VolumeSource => ({
      ...{ snapshot: 'monday', uid: 'u-monday', claimUid: `uid-${name}` },
    })
    const put = async (claims: readonly KubeObject[], volumes?: Map<string, KeptVolume>) => {
      const lines = claims.map((one) => Buffer.from(JSON.stringify(one)))
      const bytes = lines.reduce((sum, { length }) => sum + length, 0)
      const part: WrittenPart = { resource: 'persistentvolumeclaims', count: lines.length, bytes, objects: lines }
      const forged = [{ namespace: 'a', claim: 'data', claimUid: 'uid-data', state: 'Included', handle: 'of-another' }]
      const tarBytes = withVolumes(
        tarOf(about, [part], () => undefined),
        forged as SnapshotVolume[],
      )
      const done: KubeObject[] = []
      const client = {
        raw(_path: string, { body }: { body: ObjectsToPut }) {
          done.push(...(body.objects ?? []).map(({ object: one }) => one))
          return Promise.resolve({ created: 0, updated: 0, unchanged: 0, deleted: 0 })
        },
      } as unknown as KubeClient
      const options = { client, id: 'b123456789', validate: false, beginning: { initial: [] }, signal }
      const snapshot = await openSnapshotToPut(tarBytes, { signal })
      const restored = await snapshot.put({ ...options, ...(volumes && { volumes }) })
      return { restored, put: new Map(done.map((one) => [one.metadata.name, one])) }
    }

    it('gives those their volumes that the record names, also those that a member had made', async () => {
      const facts = { 'pv.kubernetes.io/bind-completed': 'yes', 'volume.kubernetes.io/selected-node': 'n', own: 'x' }
      const claims = [claim('data', facts), claim('made', { [memberAnnotation]: 'east' }), claim('other')]
      const volumes = new Map(
        ['data', 'made', 'gone'].map((name) => [`uid-${name}`, { member: 'east', source: source(name) }]),
      )
      const { restored, put: found } = await put(claims, volumes)
      expect(restored).to.deep.include({ volumes: 2 })
      for (const name of ['data', 'made']) {
        const { metadata, ...rest } = found.get(name) as KubeObject
        expect(metadata.annotations).to.deep.equal({
          ...(name === 'data' && { own: 'x' }),
          [volumeAnnotation]: 'east',
          [volumeSourceAnnotation]: JSON.stringify(source(name)),
        })
        expect(rest).to.deep.include({ spec: { storageClassName: 'fast' }, status: { phase: 'Pending' } })
      }
      expect(found.get('other')?.metadata).to.not.have.property('annotations')
    })

    /** Puts the claim of `then` into its own logical cluster, which has that of `now`. */
    const putBack = async (then: KubeObject, now: KubeObject): Promise<KubeObject | undefined> => {
      const tar = (one: KubeObject): AsyncIterable<Uint8Array> => {
        const bytes = Buffer.from(JSON.stringify(one))
        const part: WrittenPart = {
          ...{ resource: 'persistentvolumeclaims', count: 1, bytes: bytes.length, objects: [bytes] },
        }
        return tarOf(about, [part], () => undefined)
      }
      const there = new Set([now.metadata.uid])
      const put: KubeObject[] = []
      const client = {
        stream: () => Promise.resolve(tar(now)),
        delete: (_gvr: object, _ref: object, { uid }: { uid: string }) => Promise.resolve(there.delete(uid)),
        get: () => (there.size > 0 ? Promise.resolve(now) : Promise.reject(statusError(404, 'NotFound', 'gone'))),
        raw(_path: string, { body }: { body: ObjectsToPut }) {
          put.push(...(body.objects ?? []).map(({ object: one }) => one))
          return Promise.resolve({ created: 0, updated: 0, unchanged: 0, deleted: 0 })
        },
      } as unknown as KubeClient
      const snapshot = await openSnapshotToPut(tar(then), { signal })
      const volumes = new Map([[then.metadata.uid ?? '', { member: 'east', source: source('data') }]])
      await snapshot.put({ client, id: about.logicalCluster.id, validate: false, volumes, signal })
      expect(there.has(now.metadata.uid)).to.equal(put[0]?.metadata.uid === now.metadata.uid)
      return put[0]
    }

    it('gives its volume back to one that was made again since, and not to one that has it', async () => {
      const then = claim('data')
      const other = { ...then, metadata: { ...then.metadata, uid: 'uid-later' } }
      const made = await putBack(then, other)
      expect(made?.metadata.annotations).to.have.property(volumeSourceAnnotation, JSON.stringify(source('data')))
      expect(await putBack(then, then))
        .to.have.property('metadata')
        .that.does.not.have.property('annotations')
    })

    it('believes neither a manifest nor annotations of a file that name the volumes of others', async () => {
      const stolen = { [volumeAnnotation]: 'east', [volumeSourceAnnotation]: JSON.stringify(source('victim')) }
      const { restored, put: found } = await put([claim('data', stolen), claim('made', { [memberAnnotation]: 'east' })])
      expect(restored.manifest.volumes).to.have.length(1)
      expect(restored).to.deep.include({ volumes: 0 })
      expect([...found.keys()]).to.deep.equal(['data'])
      expect(found.get('data')?.metadata).to.not.have.property('annotations')
    })

    it('takes from a record only what its storage keeps', () => {
      const volumes: SnapshotVolume[] = (['Included', 'LeftOut', 'Pending'] as const).map((state) => ({
        ...{ namespace: 'a', claim: state, claimUid: `uid-${state}`, state, member: 'east' },
      }))
      const record: LogicalClusterSnapshot = {
        ...{ apiVersion: 'kcp.dev/v1alpha1', kind: 'LogicalClusterSnapshot' },
        metadata: { name: 'monday', uid: 'u-monday' },
        ...{ spec: { logicalCluster: 'acme', store: 'main' }, status: { volumes } },
      }
      expect([...keptVolumes(record)]).to.deep.equal([['uid-Included', { member: 'east', source: source('Included') }]])
    })
  })

  it('puts a large object in a request of its own', async () => {
    const large = { ...object(count - 1), data: { text: 'x'.repeat(2 * batchBytes) } }
    const sizes: number[] = []
    const chunks = await tar([object(0), object(1), large])
    expect(await putAll(Readable.from(chunks, { objectMode: false }), Infinity, sizes)).to.have.length(3)
    expect(sizes.filter((size) => size > 2 * batchBytes)).to.have.length(1)
    expect(Math.max(...sizes)).to.be.below(2 * batchBytes + 600)
  })
})
