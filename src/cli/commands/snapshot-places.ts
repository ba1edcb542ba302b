// Where snapshots are that commands name: files, objects of a bucket, LogicalClusterSnapshots in their stores.
import { createReadStream } from 'node:fs'
import { readFile, stat } from 'node:fs/promises'
import {
  logicalClusterSnapshots,
  snapshotKeys,
  snapshotStores,
  type LogicalClusterSnapshot,
  type SnapshotStore,
} from '#crds/index.ts'
import { openStore, StoreProblem } from '#operator/index.ts'
import { checkedBytes, decrypted, identitiesIn, s3Storage, type SnapshotStorage } from '#snapshot/index.ts'
import { ExitError, UsageError } from '#cli/process/exit-error.ts'
import { installationOf, openInstallation, type Installation } from './installation.ts'
import type { InstallationFlags } from './flags.ts'

export interface PlaceFlags extends InstallationFlags {
  /** The file with secret keys of age. */
  readonly identity?: string
}

/**
 * The bytes of a snapshot, decrypted with the keys in `identity`. `text`: a file, `s3://bucket/key`, or `NAME` or
 * `lcs/NAME` of a LogicalClusterSnapshot. Rejects with ExitError for one that is not there.
 */
export async function openSnapshot(
  text: string,
  { identity, ...flags }: PlaceFlags,
  signal: AbortSignal,
): Promise<AsyncIterable<Uint8Array>> {
  const keys = await identitiesOf({ ...(identity !== undefined && { identity }) })
  return await decrypted(await storedBytes(text, flags, signal), keys)
}

/** The LogicalClusterSnapshot that openSnapshot reads for this text; undefined if it reads a file or an object. */
export async function snapshotObject(
  text: string,
  flags: InstallationFlags,
  signal: AbortSignal,
): Promise<LogicalClusterSnapshot | undefined> {
  if (isBucketUrl(text) || (await stat(text).catch(() => undefined))?.isFile() === true) return undefined
  const name = objectNameIn(text)
  return name === undefined ? undefined : (await findSnapshot(name, flags, signal))?.snapshot
}

/** The secret keys in the file of `--identity`; none without one. */
export async function identitiesOf({ identity }: Pick<PlaceFlags, 'identity'>): Promise<readonly string[]> {
  return identity === undefined ? [] : identitiesIn(await textOf(identity))
}

async function storedBytes(
  text: string,
  flags: InstallationFlags,
  signal: AbortSignal,
): Promise<AsyncIterable<Uint8Array>> {
  if (isBucketUrl(text)) {
    const { storage, key } = await openBucket(text)
    if (key === '') throw new UsageError(`"${text}" names no object: s3://BUCKET/KEY`)
    return await storage.get(key, signal)
  }
  if ((await stat(text).catch(() => undefined))?.isFile() === true) return createReadStream(text)
  const name = objectNameIn(text)
  const found = name === undefined ? undefined : await findSnapshot(name, flags, signal)
  if (found === undefined)
    throw new ExitError(`there is no file "${text}"${name === undefined ? '' : ', and no LogicalClusterSnapshot'}`)
  return await bytesOfSnapshot(found.snapshot, found.installation, signal)
}

/** The name of a LogicalClusterSnapshot in `NAME` or `lcs/NAME`; undefined for a text that can only be a file. */
function objectNameIn(text: string): string | undefined {
  const name = text.startsWith('lcs/') ? text.slice('lcs/'.length) : text
  return /^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/.test(name) && !/\.(tar|zst|age)$/.test(name) ? name : undefined
}

/** The LogicalClusterSnapshot of this name; undefined if no installation is named, or if it has none. */
async function findSnapshot(
  name: string,
  flags: InstallationFlags,
  signal: AbortSignal,
): Promise<{ snapshot: LogicalClusterSnapshot; installation: Installation } | undefined> {
  const installation = await tryInstallation(flags, signal)
  const snapshot = await installation?.clusters.tryGet<LogicalClusterSnapshot>(
    logicalClusterSnapshots,
    { name },
    { signal },
  )
  return installation === undefined || snapshot === undefined ? undefined : { snapshot, installation }
}

/** The installation that the flags or the environment name; undefined if they name none. */
export async function tryInstallation(
  flags: InstallationFlags,
  signal: AbortSignal,
): Promise<Installation | undefined> {
  const named = await installationOf(flags).catch((error: unknown) => {
    if (error instanceof UsageError) return undefined
    throw error
  })
  return named === undefined ? undefined : await openInstallation(named, signal)
}

async function bytesOfSnapshot(
  snapshot: LogicalClusterSnapshot,
  { clusters }: Installation,
  signal: AbortSignal,
): Promise<AsyncIterable<Uint8Array>> {
  const { metadata, spec, status = {} } = snapshot
  const { name } = metadata
  if (status.phase !== 'Completed' || status.checksum === undefined)
    throw new ExitError(`LogicalClusterSnapshot "${name}" is not complete: kubectl describe lcs ${name}`)
  const store = await clusters.get<SnapshotStore>(snapshotStores, { name: spec.store }, { signal })
  if (store.spec.file !== undefined) {
    const { location = '' } = status
    if ((await stat(location).catch(() => undefined))?.isFile() !== true)
      throw new ExitError(
        `LogicalClusterSnapshot "${name}" is a file of the operator (${location}), which is not on this machine; kcp create NAME --snapshot ${name} makes a logical cluster of it there`,
      )
    return checkedBytes(createReadStream(location), status.checksum)
  }
  try {
    const { plain, encrypted } = snapshotKeys(snapshot)
    const storage = await openStore(store, { clusters }, signal)
    return checkedBytes(await storage.get(status.encrypted === true ? encrypted : plain, signal), status.checksum)
  } catch (error) {
    if (error instanceof StoreProblem) throw new ExitError(`store "${spec.store}": ${error.message}`, { cause: error })
    throw error
  }
}

/** True for `s3://...`. */
export function isBucketUrl(text: string): boolean {
  return text.startsWith('s3://')
}

/**
 * The bucket of `s3://BUCKET/KEY`, with the credentials and endpoint in the variables that AWS' own tools read. Rejects
 * with UsageError if one is missing.
 */
export async function openBucket(text: string): Promise<{ readonly storage: SnapshotStorage; readonly key: string }> {
  const [, bucket = '', key = ''] = /^s3:\/\/([^/]+)\/?(.*?)\/?$/.exec(text) ?? []
  const env = (...names: readonly string[]): string | undefined =>
    names.map((name) => process.env[name]).find((value) => value !== undefined && value !== '')
  const [accessKeyId, secretAccessKey] = [env('AWS_ACCESS_KEY_ID'), env('AWS_SECRET_ACCESS_KEY')]
  if (bucket === '') throw new UsageError(`"${text}" names no bucket: s3://BUCKET/KEY`)
  if (accessKeyId === undefined || secretAccessKey === undefined)
    throw new UsageError(
      's3:// needs AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, and if it is not that of AWS, AWS_ENDPOINT_URL',
    )
  const sessionToken = env('AWS_SESSION_TOKEN')
  const endpoint = env('AWS_ENDPOINT_URL_S3', 'AWS_ENDPOINT_URL')
  const region = env('AWS_REGION', 'AWS_DEFAULT_REGION')
  const authority = env('AWS_CA_BUNDLE')
  const storage = s3Storage({
    bucket,
    prefix: '',
    credentials: { accessKeyId, secretAccessKey, ...(sessionToken !== undefined && { sessionToken }) },
    ...(endpoint !== undefined && { endpoint }),
    ...(region !== undefined && { region }),
    ...(authority !== undefined && { certificateAuthority: await textOf(authority) }),
  })
  return { storage, key }
}

async function textOf(file: string): Promise<string> {
  return await readFile(file, 'utf8').catch((error: unknown) => {
    throw new ExitError(`cannot read "${file}": ${String(error)}`)
  })
}
