// `kcp restore PLACE`: everything of a backup in an installation that has no logical clusters of these names. A restore
// that was broken off goes on when the same command runs again.
import { sleep } from '#async/index.ts'
import { clusterIdOf, rootClusterName } from '#apimachinery/meta/index.ts'
import { isStatusError, tolerate } from '#apimachinery/status/index.ts'
import { createClient, type KubeClient, type Transport } from '#client/index.ts'
import {
  filledAnnotation,
  logicalClusters,
  placements,
  restoringAnnotation,
  transferAnnotation,
  type LogicalCluster,
} from '#crds/index.ts'
import {
  decrypted,
  readWhole,
  restoreSnapshot,
  SnapshotError,
  snapshotPath,
  type ObjectsToPut,
} from '#snapshot/index.ts'
import { ExitError } from '#cli/process/exit-error.ts'
import { processSignal } from '#cli/process/process-signal.ts'
import { idOf, readIndex, type BackupIndex } from './backup.ts'
import { openBackup } from './backup-place.ts'
import type { InstallationFlags } from './flags.ts'
import { openDirect, openInstallation, type Installation } from './installation.ts'
import { identitiesOf } from './snapshot-places.ts'

interface Flags extends InstallationFlags {
  readonly identity?: string
}

/** Logical clusters that are restored at the same time. */
const parallel = 4
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
  const keepsIds = index.kind === 'start' && installation.found.rootDir !== undefined
  const began = Date.now()
  const restoring: Restoring = { open, index, installation, transport, keepsIds, signal }
  await requireFree(restoring)
  const count = await restoreAll(restoring)
  if (keepsIds && index.root !== undefined) await restoreRoot(restoring, index.root)
  else await restorePlacements(restoring)
  const seconds = ((Date.now() - began) / 1000).toFixed(1)
  console.log(`${count} logical clusters of ${index.takenAt} are there, in ${seconds} s`)
  if (!keepsIds) {
    console.log(
      'they have new ids: hand out new kubeconfigs (kcp kubeconfig NAME), and join the members again (kcp join)',
    )
  }
}

interface Restoring {
  /** Opens a file of the backup, decrypted. */
  readonly open: (file: string) => Promise<AsyncIterable<Uint8Array>>
  readonly index: BackupIndex
  readonly installation: Installation
  readonly transport: Transport
  /** True: LogicalClusters keep their uids, and with them ids, certificates and what runs in members. */
  readonly keepsIds: boolean
  readonly signal: AbortSignal
}

function describe({ takenAt }: BackupIndex): string {
  return `backup of ${takenAt}`
}

/** Rejects with ExitError if a LogicalCluster has a name of the backup and does not come from it. */
async function requireFree({ installation, index, signal }: Restoring): Promise<void> {
  const text = describe(index)
  const ours = new Set(index.logicalClusters.map(({ object }) => object.metadata.name))
  const { items } = await installation.clusters.list<LogicalCluster>(logicalClusters, { signal })
  const taken = items.filter(({ metadata: { name, annotations = {} } }) => {
    const from = [annotations[restoringAnnotation], annotations[filledAnnotation]]
    return ours.has(name) && !from.includes(text)
  })
  if (taken.length > 0)
    throw new ExitError(
      `${taken.length} logical clusters of the backup exist already, such as "${taken[0]?.metadata.name ?? ''}"; restore one alone with kcp snapshot restore`,
    )
}

async function restoreAll(restoring: Restoring): Promise<number> {
  const { index, installation, signal } = restoring
  const waiting = [...index.logicalClusters].reverse()
  const all = waiting.length
  let done = 0
  let toldAt = Date.now()
  const restoreNext = async (): Promise<void> => {
    for (let saved = waiting.pop(); saved !== undefined; saved = waiting.pop()) {
      const { file } = saved
      const { name } = saved.object.metadata
      const present = await installation.clusters.tryGet<LogicalCluster>(logicalClusters, { name }, { signal })
      if (present?.metadata.annotations?.[filledAnnotation] !== describe(index))
        await restoreOne(saved, present, restoring).catch((error: unknown) => {
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
  const { clusters } = installation
  await readWhole(await open(saved.file))
  const made = present ?? (await makeCluster(saved.object, restoring))
  const { name, uid = '' } = made.metadata
  const client = createClient(transport, { basePath: `/clusters/${name}` })
  const id = keepsIds ? idOf(saved) : clusterIdOf(uid)
  await whenServed(client, signal)
  await restoreSnapshot(await open(saved.file), { client, id, validate: false, signal })
  const annotations = { [restoringAnnotation]: null, [filledAnnotation]: describe(index) }
  await clusters.patch(logicalClusters, { name }, 'merge', { metadata: { uid, annotations } }, { signal })
}

/** Makes the LogicalCluster, whose users wait until its objects are there. */
async function makeCluster(saved: LogicalCluster, { index, installation, transport, keepsIds, signal }: Restoring) {
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
  const { clusters } = installation
  if (!keepsIds) return await clusters.create<LogicalCluster>(logicalClusters, object, { signal })
  const body: ObjectsToPut = {
    objects: [
      {
        resource: 'logicalclusters.kcp.dev',
        object: { ...object, metadata: { ...object.metadata, uid, creationTimestamp, generation: 1 } },
      },
    ],
    validate: true,
  }
  await createClient(transport, { basePath: `/clusters/${rootClusterName}` }).raw(snapshotPath, {
    method: 'POST',
    body,
    signal,
  })
  return await clusters.get<LogicalCluster>(logicalClusters, { name }, { signal })
}

/** Waits until the server knows the logical cluster. */
export async function whenServed(client: KubeClient, signal: AbortSignal): Promise<void> {
  for (let attempt = 0; ; attempt++) {
    const found = await client.raw('/api/v1/namespaces/default', { signal }).catch((error: unknown) => {
      if (isStatusError(error, 'NotFound') && attempt < 200) return undefined
      throw error
    })
    if (found !== undefined) return
    await sleep(25, signal)
  }
}

/** The rest of root, members among it: last, because a syncer that sees no objects would delete their copies. */
async function restoreRoot({ open, transport, signal }: Restoring, file: string): Promise<void> {
  const client = createClient(transport, { basePath: `/clusters/${rootClusterName}` })
  await restoreSnapshot(await open(file), {
    client,
    id: 'root',
    validate: false,
    keepsUids: true,
    without: ['logicalclusters.kcp.dev'],
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
