// `kcp snapshot restore FILE`: the objects of a snapshot in a new logical cluster, or back in the one it was taken of.
import { clusterIdOf, type ClusterName } from '#apimachinery/meta/index.ts'
import { isStatusError } from '#apimachinery/status/index.ts'
import { createClient, type KubeClient } from '#client/index.ts'
import {
  areVolumesEnding,
  filledAnnotation,
  logicalClusters,
  restoredFromAnnotation,
  restoringAnnotation,
  type LogicalCluster,
  type Subject,
} from '#crds/index.ts'
import {
  keptVolumes,
  readWhole,
  restoreSnapshot,
  SnapshotError,
  type Restored,
  type SnapshotManifest,
} from '#snapshot/index.ts'
import { ExitError, UsageError } from '#cli/process/exit-error.ts'
import { processSignal } from '#cli/process/process-signal.ts'
import { subjectOf, untilReady } from './create.ts'
import { logicalClusterOf, nameOfLogicalCluster } from './credentials.ts'
import { rootDirFlag, type InstallationFlags } from './flags.ts'
import { openDirect, openInstallation, type Installation } from './installation.ts'
import { openSnapshot, snapshotObject } from './snapshot-places.ts'

interface Flags extends InstallationFlags {
  readonly as?: string
  readonly into?: string
  readonly identity?: string
  readonly owner: readonly string[]
  readonly parent?: string
  readonly yes?: boolean
  readonly validate: boolean
}

/** Runs the command. */
export async function run(file: string, flags: Flags): Promise<void> {
  const { as, into, yes = false } = flags
  if ((as === undefined) === (into === undefined))
    throw new UsageError('restore it where? --as NAME makes a new logical cluster, --into NAME puts it back')
  const owners = flags.owner.map(subjectOf)
  const name = nameOfLogicalCluster(as ?? into ?? '')
  const signal = processSignal()
  try {
    const manifest = await readWhole(await openSnapshot(file, flags, signal))
    await using installation = await openInstallation(flags, signal)
    const restoring = { file, flags, name, manifest, installation, signal }
    if (as !== undefined) await restoreAs(restoring, owners)
    else await restoreInto(restoring, yes)
  } catch (error) {
    if (error instanceof SnapshotError) throw new ExitError(`"${file}": ${error.message}`, { cause: error })
    throw error
  }
}

interface Restoring {
  readonly file: string
  readonly flags: Flags
  readonly name: ClusterName
  readonly manifest: SnapshotManifest
  readonly installation: Installation
  readonly signal: AbortSignal
}

async function restoreAs(restoring: Restoring, owners: readonly Subject[]): Promise<void> {
  const { flags, name, manifest, installation, signal } = restoring
  const { clusters } = installation
  const { parent } = flags
  const description = describe(manifest)
  const spec = {
    source: { upload: { description } },
    ...(owners.length > 0 && { owners: [...owners] }),
    ...(parent !== undefined && { parentRef: { name: parent } }),
  }
  const object: LogicalCluster = { apiVersion: 'kcp.dev/v1alpha1', kind: 'LogicalCluster', metadata: { name }, spec }
  const made = await clusters
    .create<LogicalCluster>(logicalClusters, object, { signal })
    .catch(async (error: unknown) => {
      if (!isStatusError(error, 'AlreadyExists')) throw error
      // A restore that was broken off goes on.
      const there = await logicalClusterOf(installation, name, signal)
      const isWaiting =
        there.spec?.source?.upload?.description === description &&
        there.metadata.annotations?.[filledAnnotation] === undefined
      if (!isWaiting)
        throw new ExitError(`LogicalCluster "${name}" exists already; --into ${name} puts a snapshot of it back`)
      return there
    })
  const restored = await put(restoring, made)
  await annotate(clusters, made, { [filledAnnotation]: description, [restoredFromAnnotation]: null }, signal)
  await untilReady(clusters, name, { signal, timeoutMs: 60_000 })
  tell(name, restored, 'is there')
  console.log(`try:  kcp connect ${name}${rootDirFlag(flags)} -- kubectl get namespaces`)
}

async function restoreInto(restoring: Restoring, yes: boolean): Promise<void> {
  const { name, manifest, installation, signal, file } = restoring
  const object = await logicalClusterOf(installation, name, signal)
  const uid = object.metadata.uid ?? ''
  const { logicalCluster } = manifest
  if (logicalCluster.id !== clusterIdOf(uid))
    throw new ExitError(
      `"${file}" is a snapshot of another logical cluster (${logicalCluster.name}, id ${logicalCluster.id}), not of "${name}" (id ${clusterIdOf(uid)}): restore it with --as, under a new name`,
    )
  if (!yes) {
    console.log(
      `"${name}" would become as it was at ${manifest.takenAt} (${manifest.objects} objects); what was made since would be deleted. Its users wait meanwhile.`,
    )
    console.log(`see what differs:  kcp snapshot diff ${file} ${name}${rootDirFlag(restoring.flags)}`)
    console.log('do it:  the same command with --yes')
    return
  }
  await annotate(installation.clusters, object, { [restoringAnnotation]: describe(manifest) }, signal)
  const restored = await put(restoring, object)
  const ended = { [restoringAnnotation]: null, [restoredFromAnnotation]: null }
  await annotate(installation.clusters, object, ended, signal)
  tell(name, restored, 'is as it was')
}

/** Names a snapshot, for people and for a restore that goes on. */
function describe({ logicalCluster, revision, takenAt }: SnapshotManifest): string {
  return `${logicalCluster.name} (${logicalCluster.id}) at revision ${revision}, ${takenAt}`
}

async function annotate(
  clusters: KubeClient,
  { metadata: { name, uid } }: LogicalCluster,
  annotations: Readonly<Record<string, string | null>>,
  signal: AbortSignal,
): Promise<void> {
  await clusters.patch(logicalClusters, { name }, 'merge', { metadata: { uid, annotations } }, { signal })
}

async function put({ file, flags, name, installation, signal }: Restoring, cluster: LogicalCluster): Promise<Restored> {
  await using transport = await openDirect(installation)
  const client = createClient(transport, { basePath: `/clusters/${name}` })
  // Only the record of the installation says which data are whose; a file could name those of others.
  const object = await snapshotObject(file, flags, signal)
  if (object !== undefined) {
    // Its deletion waits for the end of this.
    const held = `${object.metadata.name}/${object.metadata.uid ?? ''}`
    await annotate(installation.clusters, cluster, { [restoredFromAnnotation]: held }, signal)
    const now = await snapshotObject(file, flags, signal)
    if (now === undefined || areVolumesEnding(now)) {
      const kept = { [restoringAnnotation]: null, [restoredFromAnnotation]: null }
      await annotate(installation.clusters, cluster, kept, signal)
      throw new ExitError(
        `members delete the snapshots of volumes of "${object.metadata.name}" already: nothing was restored; choose another snapshot`,
      )
    }
  }
  let toldAt = Date.now()
  return await restoreSnapshot(() => openSnapshot(file, flags, signal), {
    client,
    id: clusterIdOf(cluster.metadata.uid ?? ''),
    validate: flags.validate,
    ...(object !== undefined && { volumes: keptVolumes(object) }),
    progress: (done, all) => {
      if (Date.now() - toldAt < 2000) return
      toldAt = Date.now()
      console.error(`${done} of ${all} objects`)
    },
    signal,
  })
}

function tell(name: string, restored: Restored, what: string): void {
  const { manifest, created, updated, unchanged, deleted, leftOut, volumes } = restored
  console.log(
    `"${name}" ${what}: ${manifest.objects} objects of ${manifest.takenAt}; ${created} created, ${updated} changed, ${unchanged} as they were, ${deleted} deleted`,
  )
  for (const [reason, count] of leftOut) console.log(`${count} left out: ${reason}`)
  if (volumes > 0) console.log(`${volumes} claims get their volumes from snapshots in member clusters: kcp volumes`)
  const known = (manifest.volumes ?? []).filter(({ state }) => state === 'Included').length
  if (known > 0 && volumes === 0)
    console.error(
      `it names ${known} snapshots of volumes, which were not used: claims get such volumes only from the LogicalClusterSnapshot, by its name`,
    )
}
