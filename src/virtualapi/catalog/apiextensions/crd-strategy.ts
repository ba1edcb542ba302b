// The Strategy of CustomResourceDefinitions. It accepts names and sets conditions within the write itself, so that a
// resource is served as soon as the write of its definition is acknowledged.
import { timestamp } from '#async/index.ts'
import { goQuote } from '#apimachinery/text/index.ts'
import type { GroupResource, KubeObject } from '#apimachinery/meta/index.ts'
import type { ClusterObjects, Entry } from '#store/watch-cache/index.ts'
import {
  crdStatus,
  defaultCrd,
  markTerminating,
  unrecognizedFormats,
  validateCrd,
  validateCrdUpdate,
  type CrdInUse,
  type CustomResourceDefinition,
} from './index.ts'
import { decodeMetadata, decodeObject } from '#virtualapi/kinds/resources/object-bytes.ts'
import type { RequestContext, Strategy } from '#virtualapi/kinds/resources/resource-definition.ts'

/** Resource of CustomResourceDefinitions in store keys. */
export const crdStorageKey = 'customresourcedefinitions.apiextensions.k8s.io'
/** The finalizer that keeps a definition until the objects of its kind are gone. */
export const crdFinalizer = 'customresourcecleanup.apiextensions.k8s.io'

/** The strategy of CustomResourceDefinitions. `base`: the strategy that all built-in kinds share. */
export function crdStrategy(base: Strategy): Strategy {
  return {
    ...base,
    allowUnconditionalUpdate: false,
    deletedByController: true,
    // A controller of upstream's API server writes these conditions.
    statusManager: 'kube-apiserver',
    applyDefaults(object, context) {
      base.applyDefaults?.(object, context)
      ensureVersions(object)
      defaultCrd(asCrd(object))
    },
    prepareForCreate: (object, context) => setStatus(object, context),
    prepareForUpdate(object, old, context, subresource) {
      if (subresource !== 'status') setStatus(object, context)
    },
    prepareForDelete(object, { now }) {
      const { finalizers = [] } = object.metadata
      if (!finalizers.includes(crdFinalizer)) object.metadata.finalizers = [...finalizers, crdFinalizer]
      markTerminating(asCrd(object), timestamp(now))
    },
    validateCreate: (object) => validateCrd(asCrd(object)),
    validateUpdate: (object, old, _context, subresource) =>
      subresource === 'status' ? [] : validateCrdUpdate(asCrd(object), asCrd(old)),
    warningsOf(object, old, _context, subresource) {
      if (subresource === 'status') return []
      const before = new Set(old === undefined ? [] : unrecognizedFormats(asCrd(old)))
      return unrecognizedFormats(asCrd(object))
        .filter((format) => !before.has(format))
        .map(formatWarning)
    },
  }
}

const formatWarning = (format: string): string => `unrecognized format ${goQuote(format)}`

/** Adds an empty list of versions if there is none, so that validation reports it. */
function ensureVersions(object: KubeObject): void {
  const spec = object['spec'] as Partial<CustomResourceDefinition['spec']>
  spec.versions ??= []
}
function asCrd(object: KubeObject): CustomResourceDefinition {
  return object as unknown as CustomResourceDefinition
}

function setStatus(object: KubeObject, { objects, now }: Pick<RequestContext, 'objects' | 'now'>): void {
  const crd = asCrd(object)
  const others = objects
    .list({ resource: crdStorageKey })
    .filter(({ key }) => key.name !== object.metadata.name && groupOf(key.name) === crd.spec.group)
    .map(namesOf)
  crd.status = crdStatus(crd, others, timestamp(now))
}

/** The group of the definition `PLURAL.GROUP`: validation refuses every other name. */
const groupOf = (name: string): string => name.slice(name.indexOf('.') + 1)

const inUseBy = new WeakMap<Entry, CrdInUse>()

/**
 * The names that a definition uses, cached while the definition does not change, because every write of a definition
 * needs the names of all other definitions of its group.
 */
function namesOf(entry: Entry): CrdInUse {
  const known = inUseBy.get(entry)
  if (known !== undefined) return known
  const { metadata, spec, status } = asCrd(decodeObject(entry.bytes))
  const { acceptedNames } = status ?? {}
  const inUse: CrdInUse = {
    metadata: { ...(metadata.name === undefined ? {} : { name: metadata.name }) },
    spec: { group: spec.group },
    ...(acceptedNames === undefined ? {} : { status: { acceptedNames } }),
  }
  inUseBy.set(entry, inUse)
  return inUse
}

const terminating = new WeakMap<Entry, boolean>()

/**
 * True while the definition of a custom resource is being deleted: its objects are deleted, and none may be created. A
 * definition that is not stored here is shared, and the catalog decides.
 */
export function isTerminatingCrd(objects: ClusterObjects, { group, resource }: GroupResource): boolean {
  const entry = objects.get(crdStorageKey, '', `${resource}.${group}`)
  if (entry === undefined) return true
  const known = terminating.get(entry)
  if (known !== undefined) return known
  const response = decodeMetadata(entry.bytes).deletionTimestamp !== undefined
  terminating.set(entry, response)
  return response
}
