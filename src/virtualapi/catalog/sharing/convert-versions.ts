// Conversion of APIExport and APIBinding between v1alpha1 and v1alpha2, the stored version. Fields that v1alpha1 lacks
// are kept in annotations, as in the kcp project, so that a client of v1alpha1 loses nothing.
import { isJsonObject, type JsonObject, type JsonValue, type KubeObject } from '#apimachinery/meta/index.ts'
import { parseJsonText } from '#apimachinery/json/index.ts'

export interface VersionConversion {
  readonly toStorage: (object: KubeObject) => KubeObject
  readonly fromStorage: (object: KubeObject) => KubeObject
}

const storageVersion = 'apis.kcp.io/v1alpha2'
const servedVersion = 'apis.kcp.io/v1alpha1'
const resourcesKept = 'apis.v1alpha2.kcp.io/resource-schemas'
const claimsKept = 'apis.v1alpha2.kcp.io/permission-claims'

/** The conversions of apis.kcp.io/v1alpha1, by resource. */
export const versionConversions: Readonly<Record<string, VersionConversion>> = {
  apiexports: { toStorage: exportToStorage, fromStorage: exportFromStorage },
  apibindings: { toStorage: bindingToStorage, fromStorage: bindingFromStorage },
}

function exportToStorage(object: KubeObject): KubeObject {
  const { spec, metadata } = taken(object)
  const kept = keptIn(metadata)
  const names = listOf(spec['latestResourceSchemas'])
  delete spec['latestResourceSchemas']
  const before = listOf(kept(resourcesKept)).filter(isJsonObject)
  const resources = [
    ...before.filter((resource) => typeof resource['schema'] !== 'string'),
    ...names.flatMap((schema) =>
      typeof schema === 'string'
        ? [before.find((resource) => resource['schema'] === schema) ?? resourceOfSchema(schema)]
        : [],
    ),
  ]
  if (resources.length > 0) spec['resources'] = resources
  convertClaims(spec, 'permissionClaims', newClaims(listOf(kept(claimsKept))))
  return rebuilt(object, storageVersion, { spec, metadata })
}

function exportFromStorage(object: KubeObject): KubeObject {
  const { spec, metadata } = taken(object)
  const resources = listOf(spec['resources']).filter(isJsonObject)
  delete spec['resources']
  const schemas = resources.flatMap(({ schema }) => (typeof schema === 'string' ? [schema] : []))
  if (schemas.length > 0) spec['latestResourceSchemas'] = schemas
  const isLossy = resources.some((resource) => {
    const { schema } = resource
    return (
      typeof schema !== 'string' ||
      text({ ...resourceOfSchema(schema), ...resource }) !== text(resourceOfSchema(schema))
    )
  })
  keepIn(metadata, resourcesKept, isLossy ? resources : undefined)
  keepClaims(spec, metadata)
  return rebuilt(object, servedVersion, { spec, metadata })
}

/** `v1.widgets.example.io` is the schema of resource widgets in group example.io. */
function resourceOfSchema(schema: string): JsonObject {
  const [, name = '', ...group] = schema.split('.')
  return { name, group: group.join('.'), schema, storage: { crd: {} } }
}

function bindingToStorage(object: KubeObject): KubeObject {
  const { spec, metadata, status } = taken(object)
  const kept = keptIn(metadata)
  const convert = newClaims(listOf(kept(claimsKept)))
  convertClaims(spec, 'permissionClaims', convert)
  for (const field of claimsOfStatus) if (status) convertClaims(status, field, convert)
  return rebuilt(object, storageVersion, { spec, metadata, status })
}

function bindingFromStorage(object: KubeObject): KubeObject {
  const { spec, metadata, status } = taken(object)
  keepClaims(spec, metadata)
  for (const field of claimsOfStatus) if (status) convertClaims(status, field, oldClaim)
  return rebuilt(object, servedVersion, { spec, metadata, status })
}

const claimsOfStatus = ['appliedPermissionClaims', 'exportPermissionClaims']

/** Puts claims into the form of v1alpha1, and keeps their former form in an annotation if that says more. */
function keepClaims(spec: JsonObject, metadata: JsonObject): void {
  const before = listOf(spec['permissionClaims']).filter(isJsonObject)
  convertClaims(spec, 'permissionClaims', oldClaim)
  const again = listOf(spec['permissionClaims']).filter(isJsonObject).map(newClaims([]))
  keepIn(metadata, claimsKept, text(again) === text(before) ? undefined : before)
}

function convertClaims(of: JsonObject, field: string, convert: (claim: JsonObject) => JsonObject): void {
  if (Array.isArray(of[field]))
    of[field] = listOf(of[field]).map((claim) => (isJsonObject(claim) ? convert(claim) : claim))
}

/** A claim of v1alpha1 from one of v1alpha2. */
function oldClaim({ group = '', resource = '', identityHash, objects, state }: JsonObject): JsonObject {
  return {
    group,
    resource,
    ...(objects === undefined ? { all: true } : { resourceSelector: objects }),
    ...(identityHash === undefined ? {} : { identityHash }),
    ...(state === undefined ? {} : { state }),
  }
}

/** Makes claims of v1alpha2; `before`: their former forms, which keep what v1alpha1 cannot say. */
function newClaims(before: readonly JsonValue[]): (claim: JsonObject) => JsonObject {
  const formerOf = ({ group = '', resource }: JsonObject): JsonObject =>
    before
      .filter(isJsonObject)
      .find((former) => (former['group'] ?? '') === group && former['resource'] === resource) ?? {}
  return (claim) => {
    const { all: _all, resourceSelector, ...rest } = claim
    const { objects: _objects, ...former } = formerOf(claim)
    const verbs = former['verbs'] ?? ['*']
    const state = rest['state']
    const selector = state === undefined ? {} : { selector: { matchAll: true } }
    return {
      ...selector,
      ...former,
      ...rest,
      verbs,
      ...(resourceSelector === undefined ? {} : { objects: resourceSelector }),
    }
  }
}

interface Parts {
  readonly spec: JsonObject
  readonly metadata: JsonObject
  readonly status?: JsonObject | undefined
}

function taken(object: KubeObject): Parts {
  const { spec, metadata, status } = object as unknown as JsonObject
  return {
    spec: isJsonObject(spec) ? { ...spec } : {},
    metadata: isJsonObject(metadata) ? { ...metadata } : {},
    ...(isJsonObject(status) && { status: { ...status } }),
  }
}

function rebuilt(object: KubeObject, apiVersion: string, { spec, metadata, status }: Parts): KubeObject {
  const hasSpec = object['spec'] !== undefined || Object.keys(spec).length > 0
  const parts = { ...object, apiVersion, metadata, ...(hasSpec && { spec }), ...(status && { status }) }
  return parts
}

/** Takes values out of the annotations of `metadata`; an annotation that is no JSON is left out. */
function keptIn(metadata: JsonObject): (annotation: string) => JsonValue | undefined {
  const annotations = isJsonObject(metadata['annotations']) ? { ...metadata['annotations'] } : undefined
  if (annotations === undefined) return () => undefined
  metadata['annotations'] = annotations
  return (annotation) => {
    const value = annotations[annotation]
    if (typeof value !== 'string') return undefined
    Reflect.deleteProperty(annotations, annotation)
    if (Object.keys(annotations).length === 0) delete metadata['annotations']
    try {
      return parseJsonText(value)
    } catch {
      return undefined
    }
  }
}

function keepIn(metadata: JsonObject, annotation: string, value: JsonValue[] | undefined): void {
  if (value === undefined) return
  const annotations = isJsonObject(metadata['annotations']) ? metadata['annotations'] : {}
  metadata['annotations'] = { ...annotations, [annotation]: text(value) }
}

const listOf = (value: JsonValue | undefined): JsonValue[] => (Array.isArray(value) ? value : [])

/** JSON with sorted keys. */
function text(value: JsonValue): string {
  return JSON.stringify(value, (_key, part: JsonValue) =>
    isJsonObject(part) ? Object.fromEntries(Object.entries(part).sort(([a], [b]) => (a < b ? -1 : 1))) : part,
  )
}
