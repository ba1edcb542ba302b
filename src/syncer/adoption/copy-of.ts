// The copy that the syncer would write for an adopted object, and whether writing it would change anything.
import { jsonEqual } from '#apimachinery/json/index.ts'
import { cloneJson, isJsonObject, type KubeObject } from '#apimachinery/meta/index.ts'
import { isStatusError } from '#apimachinery/status/index.ts'
import {
  adoptedAnnotation,
  adoptedContentOf,
  adoptedObject,
  appliedAnnotation,
  contentHash,
  managedLabel,
  ownAnnotationPrefix,
  servingLabel,
  syncerFieldManager,
  withRenewal,
} from '#crds/index.ts'
import { syncedKindOf } from '#syncer/rules/synced-kinds.ts'
import { contentDown } from '#syncer/transform/down.ts'
import type { AdoptableKind } from './adoptable-kinds.ts'
import { ownerOf, type AdoptionRequest } from './request.ts'

/** The upstream object with the record that its copy stays as it is. */
export function withContent(object: KubeObject): KubeObject {
  const [record, content] = [adoptedObject(object), adoptedContentOf(object)]
  if (record === undefined || content === undefined) return object
  const annotations = { ...object.metadata.annotations, [adoptedAnnotation]: JSON.stringify({ ...record, content }) }
  return { ...object, metadata: { ...object.metadata, annotations } }
}

/** The copy for the member. `object`: from the logical cluster, withContent; `live`: the object in the member. */
export function copyOf(
  request: AdoptionRequest,
  { resource }: AdoptableKind,
  { object, live }: { readonly object: KubeObject; readonly live: KubeObject },
): KubeObject {
  const row = resource && syncedKindOf(resource)
  const { namespace, clusterId } = request
  // Templates stay as they are, so nothing of this is written into one.
  const pods = { namespace, audience: `${clusterId}.`, apiAddress: { host: '', port: 0 } }
  const copy =
    row === undefined
      ? contentDown(object, ownerOf(request))
      : row.down(object, ownerOf(request), pods, { copy: live, isLeaving: false, isScaled: false })
  copy.metadata.annotations = { ...copy.metadata.annotations, [appliedAnnotation]: contentHash(copy) }
  return copy
}

/** What writing the copy would change of the object besides our marks, found by a dry run in the member. */
export async function differencesOf(
  { downstream, member, memberNamespace, signal }: AdoptionRequest,
  { gvr }: AdoptableKind,
  { copy, live }: { readonly copy: KubeObject; readonly live: KubeObject },
): Promise<string[]> {
  const ref = { namespace: memberNamespace, name: copy.metadata.name ?? '' }
  const options = { fieldManager: syncerFieldManager, dryRun: true, signal }
  try {
    const written = await downstream.patch<KubeObject>(gvr, ref, 'apply', copy, options)
    return [...differingPaths(withoutMarks(live), withoutMarks(written), '')].slice(0, maxPaths)
  } catch (error) {
    if (!isStatusError(error) || error.code >= 500 || error.code === 429) throw error
    return [withRenewal(error.message, member.name)]
  }
}

const maxPaths = 5

/** The object without what kcp writes on it, and without what each write changes. */
export function withoutMarks(object: KubeObject): KubeObject {
  const { metadata, ...content } = cloneJson(object)
  const { managedFields: _fields, resourceVersion: _version, generation: _generation, ...rest } = metadata
  const { labels, annotations } = metadata
  const keptLabels = Object.entries(labels ?? {}).filter(([name]) => name !== managedLabel && name !== servingLabel)
  const keptAnnotations = Object.entries(annotations ?? {}).filter(([name]) => !name.startsWith(ownAnnotationPrefix))
  return {
    ...content,
    metadata: {
      ...rest,
      labels: Object.fromEntries(keptLabels),
      annotations: Object.fromEntries(keptAnnotations),
    },
  }
}

/** The paths of values that differ. */
export function* differingPaths(before: unknown, after: unknown, path: string): Generator<string> {
  if (jsonEqual(before, after)) return
  if (isJsonObject(before) && isJsonObject(after)) {
    for (const name of new Set([...Object.keys(before), ...Object.keys(after)]))
      yield* differingPaths(before[name], after[name], path === '' ? name : `${path}.${name}`)
  } else if (Array.isArray(before) && Array.isArray(after) && before.length === after.length) {
    for (const [index, item] of before.entries()) yield* differingPaths(item, after[index], `${path}[${index}]`)
  } else yield path
}
