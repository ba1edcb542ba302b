// `kcp restore PLACE`: everything of a backup in an installation that has no logical clusters of these names. A restore
// that was broken off goes on when the same command runs again.
import { randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import { childSignal, sleep } from '#async/index.ts'
import { clusterIdOf, rootClusterName } from '#apimachinery/meta/index.ts'
import { isStatusError, tolerate } from '#apimachinery/status/index.ts'
import { createClient, type KubeClient, type Transport } from '#client/index.ts'
import {
  contentFinalizer,
  filledAnnotation,
  logicalClusters,
  placements,
  restoringAnnotation,
  transferAnnotation,
  type LogicalCluster,
} from '#crds/index.ts'
import {
  batchBytes,
  decrypted,
  initialObjects,
  openSnapshotToPut,
  restoreSnapshot,
  SnapshotError,
  snapshotPath,
  type InitialObjects,
  type ObjectsToPut,
} from '#snapshot/index.ts'
import { ExitError } from '#cli/process/exit-error.ts'
import { processSignal } from '#cli/process/process-signal.ts'
import { installationNamespace } from '#cli/roles/host-installation.ts'
import { runAsLeader, type LeaderElectionOptions } from '#reconcile/index.ts'
import { createLogger } from '#telemetry/index.ts'
import { idOf, readIndex, type BackupIndex } from './backup.ts'
import { openBackup } from './backup-place.ts'
import type { InstallationFlags } from './flags.ts'
import { openDirect, openInstallation, type Installation } from './installation.ts'
import { identitiesOf } from './snapshot-places.ts'

interface Flags extends InstallationFlags {
  readonly identity?: string
}

/** Logical clusters that are restored at the same time: enough that one flush of the disk serves several. */
const parallel = 12
const tellMs = 5000

/** Runs the command. */
export async function run(folder: string, flags: Flags): Promise<void> {
  const signal = processSignal()
  const source = await openBackup(folder)
  const index = await readIndex(folder, source, signal)
  const identities = await identitiesOf(flags)
  const open = async (file: string): Promise<AsyncIterable<Uint8Array>> =>
    decrypted(await source.open(file, signal), identities)
  await using installation = await openInstallation(flags, signal)
  await using transport = await openDirect(installation)
  const began = Date.now()
  const count = await alone(installation, signal, (term) => restore({ open, index, installation, transport }, term))
  const seconds = ((Date.now() - began) / 1000).toFixed(1)
  console.log(`${count} logical clusters of ${index.takenAt} are there, in ${seconds} s`)
  if (!keepsIdsOf(index, installation)) {
    console.log(
      'they have new ids: hand out new kubeconfigs (kcp kubeconfig NAME), and join the members again (kcp join)',
    )
  }
}

/**
 * Runs `work` while no other restore runs in this installation. Rejects with ExitError if one does. After one that ended
 * without a word, it waits until its Lease is over.
 */
async function alone<T>(
  { clusters, found }: Installation,
  signal: AbortSignal,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  using life = childSignal(signal)
  const restored = Promise.withResolvers<T>()
  const lead = async (term: AbortSignal): Promise<void> => {
    restored.resolve(await work(term))
    life.abort(new DOMException('the restore is over', 'AbortError'))
  }
  let hasTold = false
  const onTaken: LeaderElectionOptions['onTaken'] = ({ identity, isAlive }) => {
    if (isAlive)
      life.abort(new ExitError(`another kcp restore runs (${identity}): wait for its end, then run this one again`))
    else if (!hasTold) console.error(`waiting until the Lease of another kcp restore is over (${identity})`)
    hasTold = true
  }
  const namespace = found.rootDir === undefined ? installationNamespace : 'default'
  const identity = `process ${process.pid} on ${hostname()}, ${randomUUID()}`
  const log = createLogger({ level: 'error' })
  const election = { client: clusters, namespace, name: 'kcp-restore', identity, log, signal: life.signal }
  await runAsLeader({ ...election, lead, onTaken, onError: (error) => life.abort(error) })
  // Without effect once it is resolved.
  restored.reject(life.signal.reason)
  return await restored.promise
}

const leases = 'leases.coordination.k8s.io'

function keepsIdsOf({ kind }: BackupIndex, { found }: Installation): boolean {
  return kind === 'start' && found.rootDir !== undefined
}

/** Resolves with the number of logical clusters of the backup. */
async function restore(
  { open, index, installation, transport }: Pick<Restoring, 'open' | 'index' | 'installation' | 'transport'>,
  signal: AbortSignal,
): Promise<number> {
  const keepsIds = keepsIdsOf(index, installation)
  const root = createClient(transport, { basePath: `/clusters/${rootClusterName}` })
  const restoring: Restoring = {
    open,
    index,
    installation,
    transport,
    keepsIds,
    putInRoot: together(async (objects) => {
      const body: ObjectsToPut = { objects, validate: true, onlyNew: true }
      await root.raw(snapshotPath, { method: 'POST', body, signal })
    }),
    signal,
  }
  const count = await restoreAll(restoring, await presentOf(restoring))
  if (keepsIds && index.root !== undefined) await restoreRoot(restoring, index.root)
  else await restorePlacements(restoring)
  return count
}

interface Restoring {
  /** Opens a file of the backup, decrypted. */
  readonly open: (file: string) => Promise<AsyncIterable<Uint8Array>>
  readonly index: BackupIndex
  readonly installation: Installation
  readonly transport: Transport
  /** True: LogicalClusters keep their uids, and with them ids, certificates and what runs in members. */
  readonly keepsIds: boolean
  /** Puts an object into logical cluster `root`, in one request with those of others that wait. */
  readonly putInRoot: (item: NonNullable<ObjectsToPut['objects']>[number]) => Promise<void>
  /** What every new logical cluster begins with, if they keep their ids; absent until the first one was asked. */
  beginning?: Promise<InitialObjects>
  readonly signal: AbortSignal
}

/** A function that sends items; those that arrive while it sends go together, in requests of bounded size. */
function together<T>(send: (items: readonly T[]) => Promise<void>): (item: T) => Promise<void> {
  const waiting: { readonly item: T; readonly bytes: number; readonly sent: PromiseWithResolvers<undefined> }[] = []
  let isSending = false
  const sendAll = async (): Promise<void> => {
    isSending = true
    while (waiting.length > 0) {
      let [count, bytes] = [1, waiting[0]?.bytes ?? 0]
      while (count < waiting.length && bytes + (waiting[count]?.bytes ?? 0) <= batchBytes)
        bytes += waiting[count++]?.bytes ?? 0
      const batch = waiting.splice(0, count)
      const outcome = send(batch.map(({ item }) => item)).then(() => undefined)
      await outcome.catch(() => undefined)
      for (const { sent } of batch) sent.resolve(outcome)
    }
    isSending = false
  }
  return (item) => {
    const sent = Promise.withResolvers<undefined>()
    waiting.push({ item, bytes: JSON.stringify(item).length, sent })
    if (!isSending) void sendAll()
    return sent.promise
  }
}

function describe({ takenAt }: BackupIndex): string {
  return `backup of ${takenAt}`
}

/**
 * The LogicalClusters with names of the backup that are there, by name. Rejects with ExitError if one does not come from
 * it.
 */
async function presentOf({ installation, index, signal }: Restoring): Promise<Map<string, LogicalCluster>> {
  const text = describe(index)
  const ours = new Set(index.logicalClusters.map(({ object }) => object.metadata.name))
  const { items } = await installation.clusters.list<LogicalCluster>(logicalClusters, { signal })
  const present = items.filter(({ metadata: { name } }) => ours.has(name))
  const taken = present.filter(({ metadata: { annotations = {} } }) => {
    const from = [annotations[restoringAnnotation], annotations[filledAnnotation]]
    return !from.includes(text)
  })
  if (taken.length > 0)
    throw new ExitError(
      `${taken.length} logical clusters of the backup exist already, such as "${taken[0]?.metadata.name ?? ''}"; restore one alone with kcp snapshot restore`,
    )
  return new Map(present.map((object) => [object.metadata.name, object]))
}

async function restoreAll(restoring: Restoring, present: ReadonlyMap<string, LogicalCluster>): Promise<number> {
  const { index } = restoring
  const waiting = [...index.logicalClusters].reverse()
  const all = waiting.length
  let done = 0
  let toldAt = Date.now()
  const restoreNext = async (): Promise<void> => {
    for (let saved = waiting.pop(); saved !== undefined; saved = waiting.pop()) {
      const { file } = saved
      const there = present.get(saved.object.metadata.name)
      if (there?.metadata.annotations?.[filledAnnotation] !== describe(index))
        await restoreOne(saved, there, restoring).catch((error: unknown) => {
          if (error instanceof SnapshotError) throw new ExitError(`"${file}": ${error.message}`, { cause: error })
          throw error
        })
      done++
      if (Date.now() - toldAt < tellMs) continue
      toldAt = Date.now()
      console.error(`${done} of ${all} logical clusters`)
    }
  }
  await Promise.all(Array.from({ length: parallel }, restoreNext))
  return done
}

type Saved = BackupIndex['logicalClusters'][number]

async function restoreOne(saved: Saved, present: LogicalCluster | undefined, restoring: Restoring): Promise<void> {
  const { open, index, installation, transport, keepsIds, signal } = restoring
  // Nothing is made for a file that is not whole.
  const snapshot = await openSnapshotToPut(() => open(saved.file), { signal })
  const { name } = saved.object.metadata
  if (present !== undefined) await requireSame(present, restoring)
  const uid = present?.metadata.uid ?? (await makeCluster(saved.object, restoring))
  const client = createClient(transport, { basePath: `/clusters/${name}` })
  const id = keepsIds ? idOf(saved) : clusterIdOf(uid)
  const put = async (): Promise<void> => {
    // Where a logical cluster was made anew during the backup, the objects may be those of the next one with its name.
    const isNew = present === undefined && keepsIds && snapshot.manifest.logicalCluster.id === id
    const beginning = isNew ? { beginning: await beginningOf(client, restoring) } : {}
    await snapshot.put({ client, id, validate: false, whileFilling: true, ...beginning, signal })
  }
  await onceServed(put, signal)
  const annotations = { [restoringAnnotation]: null, [filledAnnotation]: describe(index) }
  await installation.clusters.patch(logicalClusters, { name }, 'merge', { metadata: { uid, annotations } }, { signal })
}

/** What a new logical cluster begins with. Only uids differ from one to another, and they are not read if ids are kept. */
async function beginningOf(client: KubeClient, restoring: Restoring): Promise<InitialObjects> {
  const { signal } = restoring
  restoring.beginning ??= onceServed(() => initialObjects(client, signal), signal)
  return await restoring.beginning
}

/** Makes the LogicalCluster, whose users wait until its objects are there; resolves with its uid. */
async function makeCluster(
  saved: LogicalCluster,
  { index, installation, keepsIds, putInRoot, signal }: Restoring,
): Promise<string> {
  const { apiVersion, kind, metadata, spec } = saved
  const { name, uid = '', creationTimestamp = '', labels } = metadata
  // A move to or from another installation is not taken up again.
  const { [transferAnnotation]: _move, ...others } = metadata.annotations ?? {}
  const annotations = { ...others, [restoringAnnotation]: describe(index) }
  // It would be filled from its source again.
  const { source: _source, ...rest } = spec ?? {}
  const object: LogicalCluster = {
    apiVersion,
    kind,
    metadata: { name, annotations, ...(labels !== undefined && { labels }) },
    spec: rest,
  }
  if (!keepsIds) {
    const made = await installation.clusters.create<LogicalCluster>(logicalClusters, object, { signal })
    return made.metadata.uid ?? ''
  }
  // The finalizer is that of the operator, which has one write less.
  const kept = { uid, creationTimestamp, generation: 1, finalizers: [contentFinalizer] }
  const whole = { ...object, metadata: { ...object.metadata, ...kept } }
  await putInRoot({ resource: 'logicalclusters.kcp.dev', object: whole }).catch((error: unknown) => {
    if (isStatusError(error, 'AlreadyExists')) throw new ExitError(`${error.message}: ${meanwhileText}`)
    throw error
  })
  return uid
}

const meanwhileText = 'it was made while the backup was restored; delete it, or keep it, and run the same command again'

/** Rejects with ExitError if the LogicalCluster of a restore that was broken off is not the one that was there before. */
async function requireSame({ metadata }: LogicalCluster, { installation, signal }: Restoring): Promise<void> {
  const { name, uid } = metadata
  const now = await installation.clusters.tryGet<LogicalCluster>(logicalClusters, { name }, { signal })
  if (now?.metadata.uid !== uid) throw new ExitError(`logical cluster "${name}": ${meanwhileText}`)
}

/** Waits until the server knows the logical cluster. */
export async function whenServed(client: KubeClient, signal: AbortSignal): Promise<void> {
  await onceServed(() => client.raw('/api/v1/namespaces/default', { signal }), signal)
}

/** Does it again until the server knows the logical cluster: it learns of a new one a moment later. */
async function onceServed<T>(use: () => Promise<T>, signal: AbortSignal): Promise<T> {
  for (let attempt = 0; ; attempt++) {
    try {
      return await use()
    } catch (error) {
      if (!isStatusError(error, 'NotFound') || attempt >= 200) throw error
    }
    await sleep(Math.min(25, 2 ** attempt), signal)
  }
}

/** The rest of root, members among it: last, because a syncer that sees no objects would delete their copies. */
async function restoreRoot({ open, transport, signal }: Restoring, file: string): Promise<void> {
  const client = createClient(transport, { basePath: `/clusters/${rootClusterName}` })
  await restoreSnapshot(() => open(file), {
    client,
    id: 'root',
    validate: false,
    keepsUids: true,
    without: ['logicalclusters.kcp.dev', leases],
    signal,
  })
}

async function restorePlacements({ index, installation, signal }: Restoring): Promise<void> {
  for (const { apiVersion, kind, metadata, spec } of index.placements) {
    const { name, labels } = metadata
    const object = { apiVersion, kind, metadata: { name, ...(labels !== undefined && { labels }) }, spec }
    await installation.clusters
      .create(placements, object as (typeof index.placements)[number], { signal })
      .catch(tolerate('AlreadyExists'))
  }
}
