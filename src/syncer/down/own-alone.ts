// The syncer as the only owner of what it applies in an adopted copy, from its first change there: a field that the
// tenant removes would stay as long as its former manager in the member owns it, too.
import type { GroupVersionResource, KubeObject } from '#apimachinery/meta/index.ts'
import { difference, emptySet, isEmptySet, parseFieldsV1, type FieldSet } from '#apimachinery/managed-fields/index.ts'
import type { KubeClient } from '#client/index.ts'
import { syncerFieldManager } from '#crds/index.ts'

interface ManagedFields {
  readonly manager?: string
  readonly subresource?: string
  readonly fieldsV1?: unknown
}

/** Removes the fields that the syncer owns, too, from all other managers of an object, except those of subresources. */
export async function ownAlone(
  downstream: KubeClient,
  gvr: GroupVersionResource,
  { live, signal }: { readonly live: KubeObject; readonly signal: AbortSignal },
): Promise<void> {
  const { managedFields = [], uid, resourceVersion, namespace, name = '' } = live.metadata
  const entries = managedFields as readonly ManagedFields[]
  const own = entries.find(({ manager, subresource }) => manager === syncerFieldManager && !subresource)
  if (own === undefined) return
  const owned = fieldsIn(own)
  const kept = entries.flatMap((entry) => {
    if (entry === own || entry.subresource) return [entry]
    const fields = fieldsIn(entry)
    const rest = difference(fields, owned)
    return rest === fields ? [entry] : isEmptySet(rest) ? [] : [{ ...entry, fieldsV1: rest }]
  })
  if (kept.length === entries.length && kept.every((entry, index) => entry === entries[index])) return
  const ref = { ...(namespace !== undefined && { namespace }), name }
  await downstream.patch(gvr, ref, 'merge', { metadata: { uid, resourceVersion, managedFields: kept } }, { signal })
}

/** The fields of a manager; none for what is no set of fields. */
function fieldsIn({ fieldsV1 }: ManagedFields): FieldSet {
  try {
    return parseFieldsV1(fieldsV1)
  } catch {
    return emptySet
  }
}
