// Reads a complete LogicalClusterSnapshot from its store, for a logical cluster that begins with its objects.
import type { DeepReadonly } from '#client/index.ts'
import { snapshotKeys, type LogicalClusterSnapshot, type SnapshotStore } from '#crds/index.ts'
import { checkedBytes, decrypted, SnapshotError } from '#snapshot/index.ts'
import { identitiesOf, openStore, type StoreAccess } from './open-store.ts'

/**
 * Passes a function to `use` that opens the decrypted bytes, each time anew. Rejects with SnapshotError if the stored bytes are not those that the operator
 * has stored, else as openStore.
 */
export async function withSnapshot<T>(
  snapshot: DeepReadonly<LogicalClusterSnapshot>,
  store: DeepReadonly<SnapshotStore>,
  access: StoreAccess,
  {
    use,
    signal,
  }: {
    readonly use: (open: () => Promise<AsyncIterable<Uint8Array>>) => Promise<T>
    readonly signal: AbortSignal
  },
): Promise<T> {
  const { status = {}, metadata } = snapshot
  if (status.phase !== 'Completed' || status.checksum === undefined)
    throw new SnapshotError(`snapshot "${metadata.name}" is not complete: kubectl describe lcs ${metadata.name}`)
  const identities = await identitiesOf(store, access, signal)
  if (status.encrypted === true && identities.length === 0)
    throw new SnapshotError(
      `snapshot "${metadata.name}" is encrypted, and store "${store.metadata.name}" names no encryption.identitySecretRef: restore it with kcp snapshot restore ${metadata.name} --identity FILE`,
    )
  await using storage = await openStore(store, access, signal)
  const { checksum } = status
  const { plain, encrypted } = snapshotKeys(snapshot)
  const key = status.encrypted === true ? encrypted : plain
  return await use(async () => await decrypted(checkedBytes(await storage.get(key, signal), checksum), identities))
}
