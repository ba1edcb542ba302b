// Writes a copy that server-side apply refuses, because a list of it repeats a key: two variables of one name, for
// example. Create and update accept such lists.
import { parseJsonText } from '#apimachinery/json/index.ts'
import { isJsonObject, type KubeObject } from '#apimachinery/meta/index.ts'
import { replacingPatch } from '#apimachinery/patch/index.ts'
import { isStatusError, serviceUnavailable } from '#apimachinery/status/index.ts'
import type { KubeClient } from '#client/index.ts'
import { replacedAnnotation, syncerFieldManager } from '#crds/index.ts'
import { gvrs, type CachedObject, type ResourceName } from '#syncer/context/resources.ts'

/** True for the error of a server-side apply of an object in which a list repeats a key. */
export function isRepeatedKey(error: unknown): boolean {
  return isStatusError(error) && error.message.includes('duplicate entries for key')
}

/**
 * True for a copy that was written by replaceCopy. Such a copy is always written by replaceCopy from then on: apply
 * would not remove the fields that the syncer set by an update.
 */
export function wasReplaced(copy: CachedObject | undefined): boolean {
  return copy?.metadata.annotations?.[replacedAnnotation] !== undefined
}

/** Creates or changes the copy. Fields that others own in it stay. Rejects with the member's StatusError. */
export async function replaceCopy(
  downstream: KubeClient,
  resource: ResourceName,
  { desired, uid }: { readonly desired: KubeObject; readonly uid: string | undefined },
  signal: AbortSignal,
): Promise<void> {
  const { metadata } = desired
  const { namespace = '', name = '' } = metadata
  const ref = { namespace, name }
  const marked = { ...desired, metadata: { ...metadata, annotations: { ...metadata.annotations, ...marker } } }
  const options = { fieldManager: syncerFieldManager, signal }
  if (uid === undefined) {
    await downstream.create(gvrs[resource], marked, options)
    return
  }
  const live = await downstream.get<KubeObject>(gvrs[resource], ref, { signal })
  // Our cache was behind: the reconcile is repeated before the tenant is told of a failure.
  if (live.metadata.uid !== uid) throw serviceUnavailable(`"${name}" was created again in the member`)
  await downstream.patch(gvrs[resource], ref, 'merge', replacement(live, marked), options)
}

const marker = { [replacedAnnotation]: 'true' }

/**
 * The merge patch that sets the desired fields, removes fields that the syncer set before and does not want any more,
 * and keeps all others.
 */
function replacement(live: KubeObject, desired: KubeObject): Record<string, unknown> {
  const own = ownFields(live)
  const { metadata, apiVersion: _, kind: _kind, status: _status, ...content } = desired
  const { resourceVersion, uid, labels = {}, annotations = {} } = live.metadata
  const parts = Object.keys(content).map((field) => {
    const merged = merge(live[field], content[field], fieldsIn(own, field))
    return [field, patchFor(live[field], merged)] as const
  })
  const ofMetadata = fieldsIn(own, 'metadata')
  return {
    ...Object.fromEntries(parts),
    metadata: {
      resourceVersion,
      uid,
      labels: patchFor(labels, merge(labels, metadata.labels ?? {}, fieldsIn(ofMetadata, 'labels'))),
      annotations: patchFor(
        annotations,
        merge(annotations, metadata.annotations ?? {}, fieldsIn(ofMetadata, 'annotations')),
      ),
    },
  }
}

function patchFor(live: unknown, wanted: unknown): unknown {
  return isJsonObject(live) && isJsonObject(wanted) ? replacingPatch(live, wanted) : wanted
}

/** Sets of fields as managedFields has them (FieldsV1). */
type Fields = Readonly<Record<string, unknown>>

/** The fields that the syncer has applied or set. */
function ownFields({ metadata: { managedFields = [] } }: KubeObject): readonly Fields[] {
  return (managedFields as readonly { manager?: string; subresource?: string; fieldsV1?: Fields }[]).flatMap(
    ({ manager, subresource, fieldsV1 }) =>
      manager === syncerFieldManager && !subresource && fieldsV1 !== undefined ? [fieldsV1] : [],
  )
}

const fieldsIn = (own: readonly Fields[], field: string): readonly Fields[] => within(own, `f:${field}`)

function within(own: readonly Fields[], path: string): readonly Fields[] {
  return own.map((fields) => fields[path]).filter(isJsonObject)
}

/** The API server of the member generates the selector of a Job, for which an update makes the syncer the owner. */
const generated: ReadonlySet<string> = new Set(['selector'])

function merge(live: unknown, desired: unknown, own: readonly Fields[]): unknown {
  if (Array.isArray(live) && Array.isArray(desired)) return mergeLists(live, desired, own)
  if (!isJsonObject(live) || !isJsonObject(desired)) return desired
  const kept = Object.keys(live).filter(
    (field) => !(field in desired) && (generated.has(field) || !own.some((fields) => `f:${field}` in fields)),
  )
  return Object.fromEntries([
    ...kept.map((field) => [field, live[field]]),
    ...Object.entries(desired).map(([field, value]) => [field, merge(live[field], value, fieldsIn(own, field))]),
  ])
}

/** Lists whose items have distinct names are merged by them; in any other list, the desired items replace all. */
function mergeLists(live: readonly unknown[], desired: readonly unknown[], own: readonly Fields[]): readonly unknown[] {
  const [known, wanted] = [byName(live), byName(desired)]
  if (known === undefined || wanted === undefined) return desired
  const others = [...known].filter(([name]) => !wanted.has(name) && ownItem(own, name).length === 0)
  return [
    ...[...wanted].map(([name, item]) => merge(known.get(name), item, ownItem(own, name))),
    ...others.map(([, item]) => item),
  ]
}

function byName(list: readonly unknown[]): ReadonlyMap<string, unknown> | undefined {
  const named = list.map((item) => [isJsonObject(item) ? item['name'] : undefined, item] as const)
  if (!named.every((pair): pair is readonly [string, unknown] => typeof pair[0] === 'string')) return undefined
  const byKey = new Map(named)
  return byKey.size === list.length ? byKey : undefined
}

function ownItem(own: readonly Fields[], name: string): readonly Fields[] {
  return own.flatMap((fields) =>
    Object.entries(fields).flatMap(([path, below]) =>
      path.startsWith('k:') && isJsonObject(below) && keyName(path.slice(2)) === name ? [below] : [],
    ),
  )
}

function keyName(text: string): unknown {
  const key: unknown = parseJsonText(text)
  return isJsonObject(key) && Object.keys(key).length === 1 ? key['name'] : undefined
}
