// A Record that is written only for the revision that the host gives to the write. Each bucket that needs such a Record
// has its own, which only the owner of the bucket writes.
import type { Revision } from '#apimachinery/meta/index.ts'
import { isStatusError } from '#apimachinery/status/index.ts'
import type { KubeClient } from '#client/index.ts'
import { records as recordsGvr, type StorageRecord } from '#crds/index.ts'

/** Name of this Record. No object's Record has this name, because their names are hashes. */
const revisionRecordName = 'revisions'

/** True for the Record of this file, which holds no object. */
export function isRevisionRecord({ metadata }: StorageRecord): boolean {
  return metadata.name === revisionRecordName
}

/**
 * Takes the next revision of the host. The watch on Records reports this revision with the text, possibly before the
 * promise resolves.
 */
export async function takeRevision(
  client: KubeClient,
  { namespace, text }: { readonly namespace: string; readonly text: string },
  signal: AbortSignal,
): Promise<Revision> {
  const place = { namespace, name: revisionRecordName }
  try {
    return revisionOf(await client.patch<StorageRecord>(recordsGvr, place, 'merge', { data: text }, { signal }))
  } catch (error) {
    if (!isStatusError(error, 'NotFound')) throw error
    const record: StorageRecord = {
      apiVersion: 'storage.kcp.dev/v1',
      kind: 'Record',
      metadata: place,
      cluster: '',
      resource: '',
      name: revisionRecordName,
      data: text,
    }
    return revisionOf(await client.create(recordsGvr, record, { signal }))
  }
}

function revisionOf({ metadata }: StorageRecord): Revision {
  return Number(metadata.resourceVersion) as Revision
}
