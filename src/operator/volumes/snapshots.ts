// The volumes in LogicalClusterSnapshots. The storage of a member takes a snapshot of each volume, by a VolumeSnapshot
// beside the claim. Its VolumeSnapshotContent is then kept without it, so that nothing that happens to the namespace of
// the tenant deletes the data, and is deleted with the LogicalClusterSnapshot.
import { quantityOf } from '#apimachinery/quantity/index.ts'
import { clusterIdOf, type KubeObject } from '#apimachinery/meta/index.ts'
import { isStatusError, tolerate } from '#apimachinery/status/index.ts'
import { timestamp } from '#async/index.ts'
import type { DeepReadonly, KubeClient } from '#client/index.ts'
import {
  adoptedNamespace,
  contentHash,
  downstreamNamespace,
  keptVolumeAnnotation,
  logicalClusters,
  maxSnapshotVolumes,
  memberClusters,
  volumeSnapshotLabel,
  type LogicalCluster,
  type LogicalClusterSnapshot,
  type MemberCluster,
  type SnapshotVolume,
} from '#crds/index.ts'
import type { OperatorContext } from '#operator/framework/operator-context.ts'
import { endsWithPod, memberOfClaim } from '#placement/index.ts'
import type { Claim } from './claim.ts'
import { missingRight } from './new-volume.ts'
import { gvrs, Obstacle, type MemberAccess } from './parties.ts'
import { snapshotClassFor, snapshotGvrs, type Snapshot, type SnapshotContent, type Volume } from './shared-backend.ts'

/** VolumeSnapshots that are made, looked at or deleted at the same time. */
const parallel = 8
/** Milliseconds until a snapshot has to be ready, and with an error of its driver. */
const [readyMs, errorMs] = [300_000, 60_000]
/** The most characters of a handle, a message and a name. Members and drivers choose them. */
const [maxHandle, maxMessage, maxName] = [512, 512, 253]

type Taken = DeepReadonly<LogicalClusterSnapshot>

export interface VolumeSnapshotsDeps {
  /** The members whose syncers run. */
  readonly accessOf: (member: string) => Pick<MemberAccess, 'client'> | undefined
  /** Milliseconds until a snapshot has to be ready. */
  readonly readyWithinMs?: number
}

/** Since when volumes are taken, on a monotonic clock in milliseconds. */
interface Since {
  readonly began: number
  /** Since when the driver of a claim, by its uid, tells an error. */
  readonly failing: Map<string, number>
}

/** Takes, keeps and deletes the volumes of LogicalClusterSnapshots in members. Each method may run twice. */
export class VolumeSnapshots {
  readonly #deps: VolumeSnapshotsDeps
  /** By the uid of the LogicalClusterSnapshot. */
  readonly #since = new Map<string, Since>()

  constructor(deps: VolumeSnapshotsDeps) {
    this.#deps = deps
  }

  /** The volumes of all claims, before anything is made in a member: Pending, or LeftOut. */
  async plan(
    { metadata: { uid = '' }, spec: { logicalCluster } }: Taken,
    { informers, virtual }: Pick<OperatorContext, 'informers' | 'virtual'>,
    signal: AbortSignal,
  ): Promise<SnapshotVolume[]> {
    const owner = informers.of<LogicalCluster>(logicalClusters).store.get(logicalCluster)
    const id = clusterIdOf(owner?.metadata.uid ?? '')
    const client = virtual(`/clusters/${logicalCluster}`)
    const { items } = await client.list<Claim>(gvrs.claims, { signal })
    const spaces = await client.list<KubeObject>(gvrs.namespaces, { signal })
    const adopted = new Map(spaces.items.map((one) => [one.metadata.name ?? '', adoptedNamespace(one)]))
    return items
      .filter(({ metadata }) => metadata.deletionTimestamp === undefined)
      .slice(0, maxSnapshotVolumes)
      .map((claim) => {
        const { namespace = '', name = '', uid: claimUid = '' } = claim.metadata
        const about = { namespace, claim: name, claimUid }
        const member = memberOfClaim(claim)
        if (endsWithPod(claim)) return leftOut(about, 'Ephemeral', 'its volume ends with its pod')
        if (member === undefined) return leftOut(about, 'NotBound', 'it has no volume in a member cluster')
        const known = adopted.get(namespace)
        const { storageClassName, volumeMode = 'Filesystem' } = claim.spec ?? {}
        return {
          ...about,
          state: 'Pending',
          member,
          memberNamespace: known?.member === member ? known.namespace : downstreamNamespace(id, namespace),
          name: `kcp-${contentHash([uid, claimUid])}`,
          ...(storageClassName !== undefined && { storageClass: storageClassName }),
          volumeMode,
        }
      })
  }

  /**
   * Begins those that are Pending, and looks at each once. Resolves with all: those that are not ready are Pending, until
   * it is too late for them.
   */
  async take(
    { metadata: { uid = '' } }: Taken,
    volumes: readonly SnapshotVolume[],
    signal: AbortSignal,
  ): Promise<SnapshotVolume[]> {
    const label = { [volumeSnapshotLabel]: uid }
    const classes = new Map<string, Promise<string | undefined>>()
    const since = this.#since.get(uid) ?? { began: performance.now(), failing: new Map() }
    // All are begun before the first one is looked at, so that they are as near to each other as the storage allows.
    const begun = await inParallel(volumes, (one) =>
      one.driver === undefined
        ? this.#safely(one, { since, signal }, (client) => begin(client, one, { label, classes, signal }))
        : Promise.resolve(one),
    )
    const looked = await inParallel(begun, (one) =>
      this.#safely(one, { since, signal }, async (client) => {
        // Its member did not answer.
        if (one.driver === undefined) return one
        const found = await look(client, one, { label, signal })
        if ('volume' in found) return found.volume
        if (!this.#isTooLate(one, found, since)) return one
        await letGo(client, one, { label, signal })
        return leftOut(one, 'NotReady', found.error ?? 'the storage has not taken its snapshot in time')
      }),
    )
    if (looked.some(({ state }) => state === 'Pending')) this.#since.set(uid, since)
    else this.#since.delete(uid)
    return looked
  }

  #isTooLate({ claimUid }: SnapshotVolume, { error }: { readonly error: string | undefined }, since: Since): boolean {
    if (this.#isOver(since)) return true
    const now = performance.now()
    if (error === undefined) {
      since.failing.delete(claimUid)
      return false
    }
    const failing = since.failing.get(claimUid) ?? now
    since.failing.set(claimUid, failing)
    return now - failing > errorMs
  }

  #isOver({ began }: Since): boolean {
    return performance.now() - began > (this.#deps.readyWithinMs ?? readyMs)
  }

  /**
   * Deletes the VolumeSnapshots whose contents are kept, or that were not ready in time. One that a member does not delete
   * now goes with the LogicalClusterSnapshot.
   */
  async tidy(
    { metadata: { uid = '' } }: Taken,
    volumes: readonly SnapshotVolume[],
    signal: AbortSignal,
  ): Promise<void> {
    const label = { [volumeSnapshotLabel]: uid }
    await inParallel(
      volumes.filter(({ name }) => name !== undefined),
      async (one) => {
        const client = this.#deps.accessOf(one.member ?? '')?.client
        if (client === undefined) return
        try {
          if (one.state !== 'Included') await letGo(client, one, { label, signal })
          await removeSnapshot(client, one, { uid, signal })
        } catch {
          signal.throwIfAborted()
        }
      },
    )
    signal.throwIfAborted()
  }

  /** Deletes what the storages keep. Resolves with what is waited for; undefined: nothing is left. */
  async delete(
    { metadata: { uid = '' } }: Taken,
    volumes: readonly SnapshotVolume[],
    { informers }: Pick<OperatorContext, 'informers'>,
    signal: AbortSignal,
  ): Promise<{ readonly reason: string; readonly message: string } | undefined> {
    this.#since.delete(uid)
    const members = informers.of<MemberCluster>(memberClusters).store
    const label = { [volumeSnapshotLabel]: uid }
    const waits = await inParallel(volumes, async (one) => {
      const { member = '' } = one
      // With the MemberCluster, the way to the storage is gone.
      if (one.name === undefined || members.get(member) === undefined) return undefined
      const client = this.#deps.accessOf(member)?.client
      if (client === undefined) return { reason: 'Unreachable', message: `member cluster "${member}" is not connected` }
      const where = `snapshots of volumes are deleted in member cluster "${member}"`
      try {
        if (one.state !== 'Included') await letGo(client, one, { label, signal })
        const own = { uid, signal }
        const areGone = [await removeSnapshot(client, one, own), await removeContent(client, one, own)]
        return areGone.includes(false) ? { reason: 'DeletingVolumes', message: where } : undefined
      } catch (error) {
        signal.throwIfAborted()
        const { reason, message } = reasonOf(error)
        return { reason, message: `${where}: ${message}` }
      }
    })
    return waits.find((one) => one !== undefined)
  }

  /** Those of the kept volumes that their members do not have any more. Members that do not answer are not counted. */
  async missing(volumes: readonly DeepReadonly<SnapshotVolume>[], signal: AbortSignal): Promise<SnapshotVolume[]> {
    const found = await inParallel(
      volumes.filter(({ state }) => state === 'Included'),
      async (one) => {
        const client = this.#deps.accessOf(one.member ?? '')?.client
        const content = await client
          ?.tryGet<SnapshotContent>(snapshotGvrs.contents, { name: one.content ?? '' }, { signal })
          .catch(() => ({ status: { snapshotHandle: one.handle } }))
        return client === undefined || content?.status?.snapshotHandle === one.handle ? [] : [{ ...one }]
      },
    )
    return found.flat()
  }

  /**
   * What a member refuses is the reason why a volume is left out, and that it does not answer once it is too late; the
   * others go on.
   */
  async #safely(
    one: SnapshotVolume,
    { since, signal }: { readonly since: Since; readonly signal: AbortSignal },
    step: (client: KubeClient) => Promise<SnapshotVolume>,
  ): Promise<SnapshotVolume> {
    if (one.state !== 'Pending') return one
    const client = this.#deps.accessOf(one.member ?? '')?.client
    try {
      // The syncers of all members start with the operator, and after it.
      if (client === undefined) throw new Error(`member cluster "${one.member ?? ''}" is not connected`)
      return await step(client)
    } catch (error) {
      signal.throwIfAborted()
      if (mayPass(error) && !this.#isOver(since)) return one
      const { reason, message } = reasonOf(error)
      return leftOut(one, reason, message)
    }
  }
}

interface Beginning {
  readonly label: Readonly<Record<string, string>>
  /** The class for each driver of each member. */
  readonly classes: Map<string, Promise<string | undefined>>
  readonly signal: AbortSignal
}

/** Makes the VolumeSnapshot, if it is not there. */
async function begin(
  client: KubeClient,
  one: SnapshotVolume,
  { label, classes, signal }: Beginning,
): Promise<SnapshotVolume> {
  const { memberNamespace: namespace = '', name = '', claim, member = '' } = one
  const found = await client.tryGet<Claim>(gvrs.claims, { namespace, name: claim }, { signal })
  const isKept = found?.metadata.annotations?.[keptVolumeAnnotation] !== undefined
  if (found?.status?.phase !== 'Bound' || isKept)
    return leftOut(one, 'NotBound', `member cluster "${member}" has bound no volume for it`)
  const { volumeName: volume = '' } = found.spec ?? {}
  const { driver } =
    (await client.get<Volume>(gvrs.volumes, { name: volume }, { signal }).catch(missingRight)).spec?.csi ?? {}
  if (!driver || driver.length > maxName) return leftOut(one, 'NotCSI', 'its volume is not of a CSI driver')
  const key = `${member}/${driver}`
  const known = classes.get(key) ?? snapshotClassFor(client, driver, signal)
  classes.set(key, known)
  const volumeSnapshotClassName = await known
  if (volumeSnapshotClassName === undefined)
    return leftOut(
      one,
      'NoSnapshotClass',
      `member cluster "${member}" has no VolumeSnapshotClass of driver "${driver}"`,
    )
  const snapshot: KubeObject = {
    ...{ apiVersion: 'snapshot.storage.k8s.io/v1', kind: 'VolumeSnapshot' },
    metadata: { name, namespace, labels: { ...label } },
    spec: { volumeSnapshotClassName, source: { persistentVolumeClaimName: claim } },
  }
  await client.create(snapshotGvrs.snapshots, snapshot, { signal }).catch(tolerate('AlreadyExists')).catch(missingRight)
  return { ...one, driver }
}

interface Look {
  readonly label: Readonly<Record<string, string>>
  readonly signal: AbortSignal
}

/** The volume once its snapshot is ready and its content is kept; until then, the error of its driver. */
async function look(
  client: KubeClient,
  one: SnapshotVolume,
  { label, signal }: Look,
): Promise<{ readonly volume: SnapshotVolume } | { readonly error: string | undefined }> {
  const { memberNamespace: namespace = '', name = '', driver } = one
  const found = await client.tryGet<Snapshot>(snapshotGvrs.snapshots, { namespace, name }, { signal })
  if (found === undefined) return { volume: leftOut(one, 'SnapshotLost', 'its VolumeSnapshot was deleted') }
  const {
    readyToUse,
    boundVolumeSnapshotContentName: content = '',
    restoreSize,
    creationTime,
    error,
  } = found.status ?? {}
  if (readyToUse !== true || content === '') return { error: error?.message?.slice(0, maxMessage) }
  const { spec, status } = await client.get<SnapshotContent>(snapshotGvrs.contents, { name: content }, { signal })
  const handle = status?.snapshotHandle ?? ''
  if (spec?.driver !== driver || handle === '' || handle.length > maxHandle || content.length > maxName) {
    await letGo(client, one, { label, signal })
    return { volume: leftOut(one, 'NotReady', `its content names driver "${spec?.driver ?? ''}" and no usable handle`) }
  }
  await setPolicy(client, content, 'Retain', { label, signal })
  const bytes = restoreSize === undefined ? undefined : Number(quantityOf(restoreSize).nanos / 1_000_000_000n)
  const takenMs = Date.parse(creationTime ?? '')
  return {
    volume: {
      ...{ ...one, state: 'Included', content, handle },
      ...(bytes !== undefined && Number.isSafeInteger(bytes) && bytes >= 0 && { bytes }),
      ...(!Number.isNaN(takenMs) && { time: timestamp(takenMs) }),
    },
  }
}

async function setPolicy(
  client: KubeClient,
  name: string,
  deletionPolicy: 'Retain' | 'Delete',
  { label: labels, signal }: Look,
): Promise<void> {
  const patch = { metadata: { labels }, spec: { deletionPolicy } }
  await client.patch(snapshotGvrs.contents, { name }, 'merge', patch, { signal }).catch(missingRight)
}

/** Lets the storage delete the snapshot with its VolumeSnapshot, whatever the class says. */
async function letGo(client: KubeClient, one: SnapshotVolume, look: Look): Promise<void> {
  const { memberNamespace: namespace = '', name = '' } = one
  const found = await client.tryGet<Snapshot>(snapshotGvrs.snapshots, { namespace, name }, look)
  const { boundVolumeSnapshotContentName: content } = found?.status ?? {}
  if (content !== undefined) await setPolicy(client, content, 'Delete', look).catch(tolerate('NotFound'))
}

/** Deletes the VolumeSnapshot, if it is that of the LogicalClusterSnapshot; true once it is gone. */
async function removeSnapshot(
  client: KubeClient,
  { memberNamespace: namespace = '', name = '' }: SnapshotVolume,
  { uid, signal }: { readonly uid: string; readonly signal: AbortSignal },
): Promise<boolean> {
  const found = await client.tryGet<Snapshot>(snapshotGvrs.snapshots, { namespace, name }, { signal })
  if (found?.metadata.labels?.[volumeSnapshotLabel] !== uid) return true
  await client.delete(snapshotGvrs.snapshots, { namespace, name }, { signal }).catch(tolerate('NotFound'))
  return false
}

/** Deletes the content, and with it the snapshot of the storage; true once it is gone. The VolumeSnapshot must be gone. */
async function removeContent(
  client: KubeClient,
  one: SnapshotVolume,
  { uid, signal }: { readonly uid: string; readonly signal: AbortSignal },
): Promise<boolean> {
  const { content: name, memberNamespace: namespace = '', name: snapshot = '' } = one
  if (name === undefined) return true
  const found = await client.tryGet<SnapshotContent>(snapshotGvrs.contents, { name }, { signal })
  // An admin of the member may have put another one in its place, or have taken it over.
  if (found?.metadata.labels?.[volumeSnapshotLabel] !== uid || found.status?.snapshotHandle !== one.handle) return true
  if (found.metadata.deletionTimestamp !== undefined) return false
  // The controller of the member marks the content when its VolumeSnapshot goes; without the mark, the data would stay.
  if ((await client.tryGet(snapshotGvrs.snapshots, { namespace, name: snapshot }, { signal })) !== undefined)
    return false
  await setPolicy(client, name, 'Delete', { label: { [volumeSnapshotLabel]: uid }, signal })
  await client.delete(snapshotGvrs.contents, { name }, { signal }).catch(tolerate('NotFound'))
  return false
}

function leftOut(
  { namespace, claim, claimUid, member, memberNamespace, name }: Omit<SnapshotVolume, 'state'>,
  reason: string,
  message: string,
): SnapshotVolume {
  return {
    ...{ namespace, claim, claimUid, state: 'LeftOut', reason, message: message.slice(0, maxMessage) },
    ...(member !== undefined && { member }),
    ...(memberNamespace !== undefined && { memberNamespace }),
    ...(name !== undefined && { name }),
  }
}

function reasonOf(error: unknown): { readonly reason: string; readonly message: string } {
  const message = error instanceof Error ? error.message : String(error)
  if (error instanceof Obstacle) return { reason: error.reason, message }
  return { reason: isStatusError(error) ? 'Refused' : 'Unreachable', message }
}

/** Whether a member may soon answer otherwise: it was not reached, it is busy, or its server is broken. */
function mayPass(error: unknown): boolean {
  if (error instanceof Obstacle) return false
  return !isStatusError(error) || error.code === 429 || error.code >= 500
}

async function inParallel<T, R>(items: readonly T[], step: (item: T) => Promise<R>): Promise<R[]> {
  const results: R[] = []
  const waiting = items.entries()
  const next = async (): Promise<void> => {
    for (const [index, item] of waiting) results[index] = await step(item)
  }
  await Promise.all(Array.from({ length: parallel }, next))
  return results
}
