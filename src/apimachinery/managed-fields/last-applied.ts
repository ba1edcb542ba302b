// The annotation of `kubectl apply` without --server-side: the fields that its writer still owns by it, and its update
// by a server-side apply of kubectl (KEP-2155).
import { parseJsonText } from '#apimachinery/json/index.ts'
import { goJson } from '#apimachinery/text/index.ts'
import { isJsonObject, type JsonObject, type JsonValue, type KubeObject } from '#apimachinery/meta/index.ts'
import { compareTyped } from './compare-typed.ts'
import { difference, hasPath, type FieldSet } from './field-set.ts'
import { fieldsOf } from './fields-of.ts'
import type { OwnershipConflict } from './managers.ts'
import type { TypedObject } from './ownership-rules.ts'
import { requireTyped } from './validate-typed.ts'

const annotation = 'kubectl.kubernetes.io/last-applied-configuration'
const maxAnnotationsBytes = 256 * 1024

/** The conflicts without those on fields that kubectl itself applied on the client. */
export function conflictsBesidesLastApplied(
  conflicts: readonly OwnershipConflict[],
  live: TypedObject,
  apiVersion: string,
): readonly OwnershipConflict[] {
  const allowed = lastAppliedFields(live, apiVersion)
  return allowed === undefined ? conflicts : conflicts.filter(({ path }) => !hasPath(allowed, path))
}

/** The fields that were applied on the client and are unchanged since; undefined if that is unknown. */
function lastAppliedFields({ value, type }: TypedObject, apiVersion: string): FieldSet | undefined {
  const text = annotationOf(value)
  if (text === undefined) return undefined
  try {
    const applied = parseJsonText(text)
    if (!isJsonObject(applied) || applied['apiVersion'] !== apiVersion) return undefined
    requireTyped(applied, type, { allowDuplicates: false })
    const { modified, added, removed } = compareTyped(applied, value, type)
    return difference(difference(difference(fieldsOf(applied, type), modified), added), removed)
  } catch {
    // A malformed annotation is ignored, as upstream does.
    return undefined
  }
}

/** Sets the annotation to the applied configuration, if the object has the annotation. Mutates `object`. */
export function updateLastApplied(object: KubeObject, config: JsonObject): void {
  if (annotationOf(object as unknown as JsonValue) === undefined) return
  const annotations: Record<string, string> = { ...object.metadata.annotations, [annotation]: lastAppliedOf(config) }
  const bytes = Object.entries(annotations).reduce(
    (sum, [key, value]) => sum + Buffer.byteLength(key) + Buffer.byteLength(value),
    0,
  )
  if (bytes > maxAnnotationsBytes) Reflect.deleteProperty(annotations, annotation)
  object.metadata.annotations = annotations
}

function lastAppliedOf(config: JsonObject): string {
  const { metadata } = config
  const { [annotation]: _, ...annotations } =
    isJsonObject(metadata) && isJsonObject(metadata['annotations']) ? metadata['annotations'] : {}
  const meta: JsonObject = isJsonObject(metadata) ? { ...metadata, annotations } : {}
  if (Object.keys(annotations).length === 0) Reflect.deleteProperty(meta, 'annotations')
  return `${goJson({ ...config, metadata: meta })}\n`
}

function annotationOf(object: JsonValue): string | undefined {
  const metadata = isJsonObject(object) ? object['metadata'] : undefined
  const annotations = isJsonObject(metadata) ? metadata['annotations'] : undefined
  const text = isJsonObject(annotations) ? annotations[annotation] : undefined
  return typeof text === 'string' && text !== '' ? text : undefined
}
