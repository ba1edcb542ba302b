// Cells of volumes, their classes and their drivers.
import type { JsonObject, JsonValue } from '#apimachinery/meta/index.ts'
import { ageOf, isDeleting, nameOf } from '#virtualapi/codec/table/cells/format-cells.ts'
import { objectsAt, scalarText, textAt, textsAt, valueAt } from '#virtualapi/codec/table/cells/read-fields.ts'

const classAnnotation = 'volume.beta.kubernetes.io/storage-class'
const defaultAnnotations = [
  'storageclass.kubernetes.io/is-default-class',
  'storageclass.beta.kubernetes.io/is-default-class',
]
const shortModes: Readonly<Record<string, string>> = {
  ReadWriteOnce: 'RWO',
  ReadOnlyMany: 'ROX',
  ReadWriteMany: 'RWX',
  ReadWriteOncePod: 'RWOP',
}

export function volumeCells(object: JsonObject, nowMs: number): JsonValue[] {
  const claimed = valueAt(object, 'spec', 'claimRef') !== undefined
  return [
    nameOf(object),
    scalarText(valueAt(object, 'spec', 'capacity', 'storage'), '0'),
    accessModes(textsAt(object, 'spec', 'accessModes')),
    textAt(object, 'spec', 'persistentVolumeReclaimPolicy'),
    isDeleting(object) ? 'Terminating' : textAt(object, 'status', 'phase'),
    claimed ? `${textAt(object, 'spec', 'claimRef', 'namespace')}/${textAt(object, 'spec', 'claimRef', 'name')}` : '',
    storageClass(object),
    scalarText(valueAt(object, 'spec', 'volumeAttributesClassName'), '<unset>'),
    textAt(object, 'status', 'reason'),
    ageOf(object, nowMs),
    scalarText(valueAt(object, 'spec', 'volumeMode'), '<unset>'),
  ]
}

export function volumeClaimCells(object: JsonObject, nowMs: number): JsonValue[] {
  const volume = textAt(object, 'spec', 'volumeName')
  const bound = volume !== ''
  return [
    nameOf(object),
    isDeleting(object) ? 'Terminating' : textAt(object, 'status', 'phase'),
    volume,
    bound ? scalarText(valueAt(object, 'status', 'capacity', 'storage'), '0') : '',
    bound ? accessModes(textsAt(object, 'status', 'accessModes')) : '',
    storageClass(object),
    scalarText(valueAt(object, 'spec', 'volumeAttributesClassName'), '<unset>'),
    ageOf(object, nowMs),
    scalarText(valueAt(object, 'spec', 'volumeMode'), '<unset>'),
  ]
}

/** The short names of the access modes, each once, in the order of `shortModes`. */
function accessModes(modes: readonly string[]): string {
  return Object.entries(shortModes)
    .filter(([mode]) => modes.includes(mode))
    .map(([, short]) => short)
    .join(',')
}

/** The storage class; the old annotation takes precedence over the field. */
function storageClass(object: JsonObject): string {
  const annotated = valueAt(object, 'metadata', 'annotations', classAnnotation)
  return typeof annotated === 'string' ? annotated : textAt(object, 'spec', 'storageClassName')
}

export function storageClassCells(object: JsonObject, nowMs: number): JsonValue[] {
  const isDefault = defaultAnnotations.some((name) => valueAt(object, 'metadata', 'annotations', name) === 'true')
  return [
    nameOf(object) + (isDefault ? ' (default)' : ''),
    textAt(object, 'provisioner'),
    scalarText(valueAt(object, 'reclaimPolicy'), 'Delete'),
    scalarText(valueAt(object, 'volumeBindingMode'), 'Immediate'),
    valueAt(object, 'allowVolumeExpansion') === true,
    ageOf(object, nowMs),
  ]
}

export function volumeAttributesClassCells(object: JsonObject, nowMs: number): JsonValue[] {
  return [nameOf(object), textAt(object, 'driverName'), ageOf(object, nowMs)]
}

export function volumeAttachmentCells(object: JsonObject, nowMs: number): JsonValue[] {
  return [
    nameOf(object),
    textAt(object, 'spec', 'attacher'),
    textAt(object, 'spec', 'source', 'persistentVolumeName'),
    textAt(object, 'spec', 'nodeName'),
    valueAt(object, 'status', 'attached') === true,
    ageOf(object, nowMs),
  ]
}

export function csiNodeCells(object: JsonObject, nowMs: number): JsonValue[] {
  return [nameOf(object), objectsAt(object, 'spec', 'drivers').length, ageOf(object, nowMs)]
}

export function csiDriverCells(object: JsonObject, nowMs: number): JsonValue[] {
  const requests = valueAt(object, 'spec', 'tokenRequests')
  const audiences = objectsAt(object, 'spec', 'tokenRequests').map((request) => textAt(request, 'audience'))
  return [
    nameOf(object),
    valueAt(object, 'spec', 'attachRequired') !== false,
    valueAt(object, 'spec', 'podInfoOnMount') === true,
    valueAt(object, 'spec', 'storageCapacity') === true,
    requests === undefined ? '<unset>' : audiences.join(','),
    valueAt(object, 'spec', 'requiresRepublish') === true,
    textsAt(object, 'spec', 'volumeLifecycleModes').join(',') || '<none>',
    ageOf(object, nowMs),
  ]
}
