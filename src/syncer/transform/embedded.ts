// The objects inside of an object: templates from which controllers of a member make pods, Jobs and claims. They are
// found by their structure, wherever they are, and pass the same filters as objects of their kinds.
import { isJsonObject, type JsonObject } from '#apimachinery/meta/index.ts'
import { isAnnotationForMembers } from '#crds/index.ts'

/** The kind of an embedded object by the name of its field; in any other field, its kind is unknown. */
const kindsByField: Readonly<Record<string, EmbeddedKind>> = {
  template: 'Pod',
  jobTemplate: 'Job',
  volumeClaimTemplate: 'PersistentVolumeClaim',
  volumeClaimTemplates: 'PersistentVolumeClaim',
}

export type EmbeddedKind = 'Pod' | 'Job' | 'PersistentVolumeClaim' | 'unknown'

export interface Embedded {
  readonly kind: EmbeddedKind
  readonly object: JsonObject
  /** From the value where the search began. An item of a list is known by its name, or by its index if it has none. */
  readonly path: EmbeddedPath
}
export type EmbeddedPath = readonly (string | number)[]

/** What a member does not get of an embedded object. Absent parts: everything goes down. */
export interface Withheld {
  readonly metadata?: JsonObject
  readonly annotations?: Readonly<Record<string, string>>
  readonly spec?: JsonObject
}

/**
 * The embedded objects of a spec, outer ones first. The objects inside of a pod template are not among them:
 * podTemplateDown finds these, because it records its changes in the pod.
 */
export function embeddedIn(value: unknown, path: EmbeddedPath = [], kind: EmbeddedKind = 'unknown'): Embedded[] {
  if (Array.isArray(value))
    return value.flatMap((item: unknown, index) => embeddedIn(item, [...path, nameIn(item) ?? index], kind))
  if (!isJsonObject(value)) return []
  const isEmbedded =
    path.length > 0 && (isJsonObject(value['metadata']) || (kind !== 'unknown' && isJsonObject(value['spec'])))
  const found: Embedded[] = isEmbedded ? [{ kind, object: value, path }] : []
  if (isEmbedded && kind === 'Pod') return found
  const inside = Object.entries(value).flatMap(([field, one]) =>
    isEmbedded && field === 'metadata' ? [] : embeddedIn(one, [...path, field], kindsByField[field] ?? 'unknown'),
  )
  return [...found, ...inside]
}

function nameIn(item: unknown): string | undefined {
  return isJsonObject(item) && typeof item['name'] === 'string' ? item['name'] : undefined
}

/** The object or list at a path of embeddedIn; undefined if there is none. */
function valueAtPath(value: unknown, path: EmbeddedPath): unknown {
  return path.reduce<unknown>((at, step) => {
    if (Array.isArray(at)) return typeof step === 'number' ? at[step] : at.find((item) => nameIn(item) === step)
    return isJsonObject(at) ? at[step] : undefined
  }, value)
}

/** The metadata that goes down, besides the annotations for members. */
const metadataForMembers: ReadonlySet<string> = new Set(['name', 'labels', 'annotations'])

/** Removes in place what a member does not get of an object of this kind. Undefined: it gets all. */
export function withhold(
  { kind, object }: Pick<Embedded, 'kind' | 'object'>,
  annotationPrefixes: readonly string[] = [],
): Withheld | undefined {
  const { metadata, spec } = object
  const withheld: Withheld = {
    ...(isJsonObject(metadata) && withholdMetadata(metadata, annotationPrefixes)),
    ...(kind === 'PersistentVolumeClaim' && isJsonObject(spec) && someOf('spec', withholdOfClaim(spec))),
  }
  return Object.keys(withheld).length === 0 ? undefined : withheld
}

function withholdMetadata(metadata: JsonObject, annotationPrefixes: readonly string[]): Withheld {
  // kubectl and Go clients write the time of creation as null, which says nothing.
  const other = take(metadata, (field, value) => !metadataForMembers.has(field) && value !== null)
  const { annotations } = metadata
  if (!isJsonObject(annotations)) return someOf('metadata', other)
  const kept = take(annotations, (name) => !isAnnotationForMembers(name, annotationPrefixes))
  if (Object.keys(annotations).length === 0 && Object.keys(kept).length > 0) delete metadata['annotations']
  return { ...someOf('metadata', other), ...someOf('annotations', kept) }
}

/**
 * Removes from the spec of a claim, in place, the name of a volume, which could be any volume of the member, and a data
 * source in another namespace, as Kubernetes does by default. Returns the removed fields.
 */
export function withholdOfClaim(spec: JsonObject): JsonObject {
  return take(
    spec,
    (field, value) =>
      field === 'volumeName' || (field === 'dataSourceRef' && isJsonObject(value) && value['namespace'] !== undefined),
  )
}

/** Gives an object back what was withheld, in place. */
function giveBack(object: JsonObject, { metadata, annotations, spec }: Withheld): void {
  if (metadata !== undefined) object['metadata'] = { ...(object['metadata'] as JsonObject | undefined), ...metadata }
  if (annotations !== undefined) {
    const known = (object['metadata'] ?? {}) as JsonObject
    object['metadata'] = {
      ...known,
      annotations: { ...(known['annotations'] as JsonObject | undefined), ...annotations },
    }
  }
  if (spec !== undefined) object['spec'] = { ...(object['spec'] as JsonObject | undefined), ...spec }
}

/** Gives the embedded objects of a value back what was withheld of them, in place. */
export function giveBackAll(
  value: unknown,
  records: readonly { readonly path: EmbeddedPath; readonly withheld: Withheld }[],
): void {
  for (const { path, withheld } of records) {
    const object = valueAtPath(value, path)
    if (isJsonObject(object)) giveBack(object, withheld)
  }
}

function take(object: JsonObject, isTaken: (field: string, value: unknown) => boolean): JsonObject {
  const taken = Object.entries(object).filter(([field, value]) => isTaken(field, value))
  for (const [field] of taken) Reflect.deleteProperty(object, field)
  return Object.fromEntries(taken)
}

function someOf(part: keyof Withheld, fields: JsonObject): Withheld {
  return Object.keys(fields).length === 0 ? {} : { [part]: fields }
}
