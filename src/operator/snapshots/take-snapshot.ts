// Takes one snapshot: the stream of a logical cluster, checked on its way, into a store.
import { Readable } from 'node:stream'
import type { DeepReadonly, KubeClient } from '#client/index.ts'
import {
  snapshotKeys,
  type LogicalClusterSnapshot,
  type LogicalClusterSnapshotStatus,
  type SnapshotStore,
} from '#crds/index.ts'
import {
  checkedBytes,
  compressed,
  encrypted,
  PassingSnapshot,
  snapshotPath,
  tarType,
  withVolumes,
} from '#snapshot/index.ts'
import { openStore, type StoreAccess } from '#operator/snapshot-stores/open-store.ts'

export interface Taking extends StoreAccess {
  readonly store: DeepReadonly<SnapshotStore>
  /** The API of the logical cluster. */
  readonly virtual: Pick<KubeClient, 'stream'>
  readonly signal: AbortSignal
}

export type Taken = Required<
  Pick<
    LogicalClusterSnapshotStatus,
    'logicalClusterId' | 'revision' | 'objects' | 'bytes' | 'checksum' | 'location' | 'encrypted' | 'claims'
  >
>

/**
 * Takes the snapshot and stores it, whole or not at all. What an attempt before has left is replaced. Rejects with
 * StoreProblem, SnapshotError or StatusError.
 */
export async function takeSnapshot(
  snapshot: DeepReadonly<LogicalClusterSnapshot>,
  { store, virtual, signal, ...access }: Taking,
): Promise<Taken> {
  await using storage = await openStore(store, access, signal)
  const keys = snapshotKeys(snapshot)
  const recipients = store.spec.encryption?.recipients ?? []
  const isEncrypted = recipients.length > 0
  const [key, other] = isEncrypted ? [keys.encrypted, keys.plain] : [keys.plain, keys.encrypted]
  const { volumes } = snapshot.status ?? {}
  const source =
    volumes === undefined
      ? await virtual.stream(snapshotPath, { signal })
      : compressed(withVolumes(await virtual.stream(snapshotPath, { accept: tarType, signal }), volumes))
  const passing = new PassingSnapshot(source)
  const bytes = isEncrypted ? await encrypted(Readable.from(passing, { objectMode: false }), recipients) : passing
  const stored = await storage.put(key, bytes, signal)
  if (store.spec.verify !== false)
    for await (const _ of checkedBytes(await storage.get(key, signal), stored.checksum)) signal.throwIfAborted()
  // Of an attempt before the store's encryption changed.
  await storage.delete(other, signal)
  const { logicalCluster, revision, objects, parts } = passing.manifest
  return {
    ...stored,
    logicalClusterId: logicalCluster.id,
    revision,
    objects,
    location: storage.location(key),
    encrypted: isEncrypted,
    claims: parts.find(({ resource }) => resource === 'persistentvolumeclaims')?.objects ?? 0,
  }
}

/** Removes what is stored of the snapshot, also what broken attempts have left. */
export async function deleteStored(
  snapshot: DeepReadonly<LogicalClusterSnapshot>,
  store: DeepReadonly<SnapshotStore>,
  access: StoreAccess,
  signal: AbortSignal,
): Promise<void> {
  await using storage = await openStore(store, access, signal)
  for (const key of Object.values(snapshotKeys(snapshot))) await storage.delete(key, signal)
}
