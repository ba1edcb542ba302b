// Opens the place that a SnapshotStore names, with its credentials.
import { isStatusError } from '#apimachinery/status/index.ts'
import type { DeepReadonly, KubeClient } from '#client/index.ts'
import { identitySecretKey, s3SecretKeys, systemNamespace, type SnapshotStore } from '#crds/index.ts'
import { fileStorage, identitiesIn, s3Storage, StorageError, type SnapshotStorage } from '#snapshot/index.ts'

/** Why a store cannot be opened, in the words of a condition. */
export class StoreProblem extends Error {
  override readonly name = 'StoreProblem'
  readonly reason: 'DirectoryMissing' | 'SecretMissing' | 'SecretInvalid' | 'StoreInvalid'

  constructor(reason: StoreProblem['reason'], message: string, options?: ErrorOptions) {
    super(message, options)
    this.reason = reason
  }
}

export interface StoreAccess {
  /** Reads Secrets of the installation's namespace, and of no other. */
  readonly clusters: Pick<KubeClient, 'get'>
  /** The operator's --snapshot-directory. */
  readonly directory?: string
}

const secrets = { group: '', version: 'v1', resource: 'secrets' } as const

/** Opens the store. Rejects with StoreProblem for one that cannot be opened, with StatusError if the host fails. */
export async function openStore(
  { metadata, spec }: DeepReadonly<SnapshotStore>,
  { clusters, directory }: StoreAccess,
  signal: AbortSignal,
): Promise<SnapshotStorage> {
  try {
    if (spec.file !== undefined) {
      if (directory === undefined)
        throw new StoreProblem(
          'DirectoryMissing',
          'the operator has no directory for snapshots: start it with --snapshot-directory (chart: snapshots.directory)',
        )
      return fileStorage(directory, spec.file.path)
    }
    if (spec.s3 === undefined) throw new StoreProblem('StoreInvalid', `"${metadata.name}" has neither file nor s3`)
    const { credentialsSecretRef, prefix = '', ...place } = spec.s3
    const data = await secretData(credentialsSecretRef.name, clusters, signal)
    const textOf = (key: string): string =>
      Buffer.from(data[key] ?? '', 'base64')
        .toString()
        .trim()
    const [accessKeyId, secretAccessKey, sessionToken] = [
      textOf(s3SecretKeys.accessKeyId),
      textOf(s3SecretKeys.secretAccessKey),
      textOf(s3SecretKeys.sessionToken),
    ]
    if (accessKeyId === '' || secretAccessKey === '')
      throw new StoreProblem(
        'SecretInvalid',
        `Secret ${systemNamespace}/${credentialsSecretRef.name} needs keys ${s3SecretKeys.accessKeyId} and ${s3SecretKeys.secretAccessKey}`,
      )
    return s3Storage({
      ...place,
      prefix,
      credentials: { accessKeyId, secretAccessKey, ...(sessionToken !== '' && { sessionToken }) },
    })
  } catch (error) {
    if (error instanceof StorageError) throw new StoreProblem('StoreInvalid', error.message, { cause: error })
    throw error
  }
}

/** The keys with which the operator decrypts snapshots of the store; none if it has none. Rejects as openStore. */
export async function identitiesOf(
  { spec }: DeepReadonly<SnapshotStore>,
  { clusters }: StoreAccess,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const ref = spec.encryption?.identitySecretRef
  if (ref === undefined) return []
  const data = await secretData(ref.name, clusters, signal)
  const text = data[identitySecretKey]
  if (text === undefined)
    throw new StoreProblem('SecretInvalid', `Secret ${systemNamespace}/${ref.name} needs key ${identitySecretKey}`)
  return identitiesIn(Buffer.from(text, 'base64').toString())
}

async function secretData(
  name: string,
  clusters: Pick<KubeClient, 'get'>,
  signal: AbortSignal,
): Promise<Readonly<Record<string, string>>> {
  const secret = await clusters
    .get(secrets, { namespace: systemNamespace, name }, { signal })
    .catch((error: unknown) => {
      if (!isStatusError(error, 'NotFound')) throw error
      throw new StoreProblem('SecretMissing', `there is no Secret ${systemNamespace}/${name}`, { cause: error })
    })
  return (secret['data'] ?? {}) as Record<string, string>
}
