// `kcp snapshot create NAME`: all objects of a logical cluster at one moment, in a file, a bucket or a SnapshotStore.
import { stat } from 'node:fs/promises'
import { pipeline } from 'node:stream/promises'
import { sleep } from '#async/index.ts'
import { isStatusError } from '#apimachinery/status/index.ts'
import { createClient, type KubeClient } from '#client/index.ts'
import { logicalClusterSnapshots, snapshotStores, type LogicalClusterSnapshot } from '#crds/index.ts'
import { PassingSnapshot, SnapshotError, type SnapshotManifest } from '#snapshot/index.ts'
import { ExitError, UsageError } from '#cli/process/exit-error.ts'
import { processSignal } from '#cli/process/process-signal.ts'
import { logicalClusterOf, nameOfLogicalCluster } from './credentials.ts'
import type { InstallationFlags } from './flags.ts'
import { openDirect, openInstallation } from './installation.ts'
import { encryptedFor, sizeText, snapshotNow, writeNewFile } from './snapshot-file.ts'
import { isBucketUrl, openBucket } from './snapshot-places.ts'

interface Flags extends InstallationFlags {
  /** `-`: standard output. */
  readonly output?: string
  readonly recipient: readonly string[]
  /** The name of a SnapshotStore. */
  readonly store?: string
  readonly volumes?: boolean
  readonly name?: string
  readonly wait: boolean
  readonly timeout: number
}

/** Runs the command. */
export async function run(text: string, flags: Flags): Promise<void> {
  const logicalCluster = nameOfLogicalCluster(text)
  if (flags.volumes === true && flags.store === undefined)
    throw new UsageError(
      '--volumes needs --store: data of volumes stay in the storage of member clusters, where a LogicalClusterSnapshot keeps them until it is deleted',
    )
  const signal = processSignal()
  await using installation = await openInstallation(flags, signal)
  await logicalClusterOf(installation, logicalCluster, signal)
  if (flags.store !== undefined) {
    const name = flags.name ?? `${logicalCluster}-${stamp(Date.now()).toLowerCase()}`
    const { store, volumes = false } = flags
    await createObject(installation.clusters, { logicalCluster, store, volumes, name }, signal)
    console.log(`logicalclustersnapshot.kcp.dev/${name} created`)
    if (flags.wait) await tellComplete(installation.clusters, name, flags.timeout, signal)
    return
  }
  await using transport = await openDirect(installation)
  await save(createClient(transport, { basePath: `/clusters/${logicalCluster}` }), { ...flags, logicalCluster }, signal)
}

type Saving = Flags & { readonly logicalCluster: string }

async function save(
  client: KubeClient,
  { logicalCluster, output, recipient }: Saving,
  signal: AbortSignal,
): Promise<void> {
  const began = Date.now()
  if (output === '-') {
    await pipeline(await snapshotNow(client, recipient, signal), process.stdout, { signal })
    return
  }
  const passing = new PassingSnapshot(await snapshotNow(client, [], signal))
  const bytes = await encryptedFor(passing, recipient)
  const place = output ?? `${logicalCluster}-${stamp(began)}.kcp.tar.zst${recipient.length === 0 ? '' : '.age'}`
  let size: number
  if (isBucketUrl(place)) {
    const { storage, key } = await openBucket(place)
    const isThere = (await storage.size(key, signal).catch(asExit(place))) !== undefined
    if (isThere) throw new ExitError(`"${place}" exists already; -o names another object`)
    size = (await storage.put(key, bytes, signal).catch(asExit(place))).bytes
  } else {
    await writeNewFile(place, bytes, signal)
    size = (await stat(place)).size
  }
  const seconds = ((Date.now() - began) / 1000).toFixed(1)
  const { manifest } = passing
  const sealed = recipient.length === 0 ? '' : `, encrypted for ${recipient.length}`
  console.log(
    `${place}: ${manifest.objects} objects at revision ${manifest.revision}, ${sizeText(size)}${sealed}, in ${seconds} s`,
  )
  const secrets = secretsOf(manifest)
  if (secrets > 0 && recipient.length === 0)
    console.error(`it has ${secrets} Secrets in plain text; --recipient age1... encrypts the file`)
}

function asExit(place: string): (error: unknown) => never {
  return (error) => {
    if (error instanceof SnapshotError) throw new ExitError(`"${place}": ${error.message}`, { cause: error })
    throw error
  }
}

function secretsOf({ parts }: SnapshotManifest): number {
  return parts.find(({ resource }) => resource === 'secrets')?.objects ?? 0
}

/** A time for file names, such as `20260102T030405Z`. */
function stamp(ms: number): string {
  return new Date(ms).toISOString().replace(/[-:]|\.[0-9]+/g, '')
}

interface Wish {
  readonly logicalCluster: string
  readonly store: string
  readonly volumes: boolean
  readonly name: string
  readonly ttlSecondsAfterFinished?: number
}

/** Seconds for which the snapshot of a copy stays after it is complete, unless a claim still gets its volume from it. */
const copySeconds = 3600

/**
 * Takes a snapshot with the volumes of the logical cluster, of which `copy` is made. Resolves with its name when it is
 * complete. Tells of volumes that are missing in it.
 */
export async function snapshotForCopy(
  clusters: KubeClient,
  { from, copy, store, timeout }: { from: string; copy: string; store: string; timeout: number },
  signal: AbortSignal,
): Promise<string> {
  const name = `${from}-for-${copy}-${stamp(Date.now()).toLowerCase()}`
  const wish = { logicalCluster: from, store, volumes: true, name, ttlSecondsAfterFinished: copySeconds }
  await createObject(clusters, wish, signal)
  const { status } = await untilComplete(clusters, name, timeout * 1000, signal)
  const about = status?.conditions?.find(({ type }) => type === 'VolumesIncluded')
  if (about?.status === 'False') console.error(about.message)
  return name
}

async function createObject(
  clusters: KubeClient,
  { store, volumes, name, ...spec }: Wish,
  signal: AbortSignal,
): Promise<void> {
  if ((await clusters.tryGet(snapshotStores, { name: store }, { signal })) === undefined)
    throw new ExitError(`there is no SnapshotStore "${store}"; kubectl get snapshotstores lists them`)
  const object: LogicalClusterSnapshot = {
    apiVersion: 'kcp.dev/v1alpha1',
    kind: 'LogicalClusterSnapshot',
    metadata: { name },
    spec: { ...spec, store, ...(volumes && { volumes: 'Include' }) },
  }
  await clusters.create(logicalClusterSnapshots, object, { signal }).catch((error: unknown) => {
    if (isStatusError(error, 'AlreadyExists')) throw new ExitError(`LogicalClusterSnapshot "${name}" exists already`)
    throw error
  })
}

async function tellComplete(clusters: KubeClient, name: string, timeout: number, signal: AbortSignal): Promise<void> {
  const { status = {} } = await untilComplete(clusters, name, timeout * 1000, signal)
  console.log(
    `${status.location ?? ''}: ${status.objects ?? 0} objects at revision ${status.revision ?? ''}, ${sizeText(status.bytes ?? 0)}`,
  )
  const about = status.conditions?.find(({ type }) => type === 'VolumesIncluded')
  if (about !== undefined) console.log(about.message)
}

const [lookMs, tellMs] = [200, 2000]

async function untilComplete(
  clusters: KubeClient,
  name: string,
  timeoutMs: number,
  signal: AbortSignal,
): Promise<LogicalClusterSnapshot> {
  const began = Date.now()
  let toldAt = began
  for (;;) {
    const found = await clusters.get<LogicalClusterSnapshot>(logicalClusterSnapshots, { name }, { signal })
    const { phase = 'Waiting', conditions = [] } = found.status ?? {}
    const why = conditions.find(({ type }) => type === 'Complete')?.message ?? 'no operator has looked at it yet'
    if (phase === 'Completed') return found
    if (phase === 'Failed') throw new ExitError(`LogicalClusterSnapshot "${name}" has failed: ${why}`)
    if (Date.now() - began > timeoutMs)
      throw new ExitError(
        `LogicalClusterSnapshot "${name}" is not complete yet: ${why}; it goes on without this command`,
      )
    if (Date.now() - toldAt >= tellMs) {
      console.error(`waiting for LogicalClusterSnapshot "${name}": ${why}`)
      toldAt = Date.now()
    }
    await sleep(lookMs, signal)
  }
}
