// The Strategy of CustomResourceDefinitions: names accepted and conditions set within the write itself, so that a resource
// is served as soon as its definition is acknowledged.
import { timestamp } from '../../async/index.ts'
import type { KubeObject } from '../../apimachinery/meta/index.ts'
import { crdStatus, defaultCrd, validateCrd, validateCrdUpdate, type CustomResourceDefinition } from './crds/index.ts'
import { decodeObject } from './object-bytes.ts'
import type { RequestContext, Strategy } from './resource-definition.ts'

export const crdStorageKey = 'customresourcedefinitions.apiextensions.k8s.io'
/** Holds a definition until the objects of its kind are gone. */
export const crdFinalizer = 'customresourcecleanup.apiextensions.k8s.io'

/** `base`: what all built-in kinds have. */
export function crdStrategy(base: Strategy): Strategy {
  return {
    ...base,
    allowUnconditionalUpdate: false,
    applyDefaults(object, context) {
      base.applyDefaults?.(object, context)
      if (isWellFormed(object)) defaultCrd(asCrd(object))
    },
    prepareForCreate(object, context) {
      const finalizers = object.metadata.finalizers ?? []
      if (!finalizers.includes(crdFinalizer)) object.metadata.finalizers = [...finalizers, crdFinalizer]
      settle(object, context)
    },
    prepareForUpdate: (object, _old, context) => settle(object, context),
    validateCreate: (object) => (isWellFormed(object) ? validateCrd(asCrd(object)) : missingSpec),
    validateUpdate: (object, old) =>
      isWellFormed(object) ? validateCrdUpdate(asCrd(object), asCrd(old)) : missingSpec,
  }
}

const missingSpec = [{ reason: 'FieldValueRequired', message: 'Required value', field: 'spec' }]

/** The rules assume that names and versions are there at all; the schema has checked their types. */
function isWellFormed(object: KubeObject): boolean {
  const spec = object['spec'] as Partial<CustomResourceDefinition['spec']> | undefined
  return spec?.names !== undefined && Array.isArray(spec.versions)
}

function asCrd(object: KubeObject): CustomResourceDefinition {
  return object as unknown as CustomResourceDefinition
}

function settle(object: KubeObject, { objects, now }: Pick<RequestContext, 'objects' | 'now'>): void {
  if (!isWellFormed(object)) return
  const others = objects
    .list({ resource: crdStorageKey })
    .filter(({ key }) => key.name !== object.metadata.name)
    .map(({ bytes }) => asCrd(decodeObject(bytes)))
  const crd = asCrd(object)
  crd.status = crdStatus(crd, others, timestamp(now))
}
