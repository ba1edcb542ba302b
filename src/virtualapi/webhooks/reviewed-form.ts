// The forms in which a webhook can be shown the object of a request: as the request's own version, or as another version of
// the same resource (matchPolicy Equivalent).
import { apiVersionOf, type GroupVersionKind, type JsonValue, type KubeObject } from '../../apimachinery/meta/index.ts'
import type { AdmissionRequest } from '../admission/admission.ts'
import type { Catalog } from '../catalog/catalog.ts'
import { objectOf } from '../codec/read-object.ts'
import { applyScale, scaleOf } from '../kinds/index.ts'
import type { ResourceDefinition } from '../resources/resource-definition.ts'

export interface ReviewedForm {
  readonly group: string
  readonly version: string
  readonly resource: string
  readonly kind: GroupVersionKind
  /** The stored form as this one. Does not change its argument. */
  show(object: KubeObject): KubeObject | Promise<KubeObject>
  /** The object in stored form after a webhook has changed what it was shown. Throws BadRequest for wrong types. */
  take(shown: KubeObject, object: KubeObject): KubeObject | Promise<KubeObject>
}

/** The request's own form. */
export function ownForm({ definition, subresource, kind }: AdmissionRequest): ReviewedForm {
  if (kind !== undefined) return { ...gvrOf(definition), kind, show: (object) => object, take: (shown) => shown }
  return subresource === 'scale' ? scaleForm(definition) : wholeForm(definition)
}

/** The other forms, by which webhooks with matchPolicy Equivalent match. */
export function equivalentForms(
  { definition, subresource, kind, context }: AdmissionRequest,
  catalog: Catalog,
): ReviewedForm[] {
  const others = catalog.equivalents(context.objects, definition)
  if (kind !== undefined)
    return others.map((other) => ({ ...gvrOf(other), kind, show: (object) => object, take: (shown) => shown }))
  return others.map((other) => (subresource === 'scale' ? scaleForm(other) : wholeForm(other)))
}

function gvrOf({ info: { group, version, resource } }: ResourceDefinition) {
  return { group, version, resource }
}

function wholeForm(definition: ResourceDefinition): ReviewedForm {
  const { info, storageApiVersion } = definition
  const { group, version, kind } = info
  const apiVersion = apiVersionOf(info)
  return {
    ...gvrOf(definition),
    kind: { group, version, kind },
    show(object) {
      const copy = structuredClone(object)
      return definition.fromStorage?.(copy) ?? { ...copy, apiVersion }
    },
    take(shown) {
      const decoded = { value: JSON.parse(JSON.stringify(shown)) as JsonValue, duplicates: [] }
      const object = objectOf(decoded, { definition, fieldValidation: 'Ignore', warnings: [] })
      return definition.toStorage?.(object) ?? { ...object, apiVersion: storageApiVersion }
    },
  }
}

function scaleForm(definition: ResourceDefinition): ReviewedForm {
  return {
    ...gvrOf(definition),
    kind: { group: 'autoscaling', version: 'v1', kind: 'Scale' },
    show: (object) => scaleOf(object, definition, { toWrite: true }),
    take: (shown, object) => applyScale(object, shown, definition),
  }
}
