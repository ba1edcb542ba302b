// The forms of a request's object for webhooks and policies: the version of the request, or another version of the same
// resource (matchPolicy Equivalent).
import { parseJsonText } from '#apimachinery/json/index.ts'
import { apiVersionOf, cloneJson, type GroupVersionKind, type KubeObject } from '#apimachinery/meta/index.ts'
import type { AdmissionRequest } from './admission.ts'
import type { Catalog } from '#virtualapi/catalog/catalog.ts'
import { isConverted, type Conversions } from '#virtualapi/write/conversion/conversions.ts'
import { objectOf } from '#virtualapi/codec/read-object.ts'
import { applyScale, scaleOf } from '#virtualapi/kinds/index.ts'
import type { ResourceDefinition } from '#virtualapi/kinds/resources/resource-definition.ts'

interface TakeOptions {
  readonly isStrict?: boolean
}

export interface ReviewedForm {
  readonly group: string
  readonly version: string
  readonly resource: string
  readonly kind: GroupVersionKind
  /** Converts the stored form to this form. Do not change the result, which may be the argument itself. */
  show(object: KubeObject): KubeObject | Promise<KubeObject>
  /**
   * Converts `shown`, an object in this form that a webhook or a policy has changed, back to the stored form. Throws
   * BadRequest for wrong types, and for unknown fields if `isStrict`.
   */
  take(shown: KubeObject, object: KubeObject, options?: TakeOptions): KubeObject | Promise<KubeObject>
}

export interface FormDependencies {
  readonly catalog: Catalog
  readonly conversions: Conversions
}

/** The request's own form. */
export function ownForm({ definition, subresource, kind }: AdmissionRequest): ReviewedForm {
  if (kind !== undefined) return { ...gvrOf(definition), kind, show: (object) => object, take: (shown) => shown }
  return subresource === 'scale' ? scaleForm(definition) : wholeForm(definition)
}

/** The other forms, by which webhooks and policies with matchPolicy Equivalent match. */
export function equivalentForms(request: AdmissionRequest, { catalog, conversions }: FormDependencies): ReviewedForm[] {
  const { definition, subresource, kind, context } = request
  const others = catalog.equivalents(context.objects, definition)
  if (kind !== undefined)
    return others.map((other) => ({ ...gvrOf(other), kind, show: (object) => object, take: (shown) => shown }))
  if (subresource === 'scale') return others.map(scaleForm)
  if (isConverted(definition)) return others.map((other) => formByWebhook(other, request, conversions))
  return others.map(wholeForm)
}

/** The form of another version of a custom resource, which its conversion webhook makes. */
function formByWebhook(
  other: ResourceDefinition,
  { definition, context, signal }: AdmissionRequest,
  conversions: Conversions,
): ReviewedForm {
  const form = wholeForm(other)
  const call = { cluster: context.cluster.id, signal }
  const inVersion = async (object: KubeObject, { info }: ResourceDefinition): Promise<KubeObject> =>
    isConverted(definition)
      ? await conversions.inVersion(definition, cloneJson(object), apiVersionOf(info), call)
      : object
  return {
    ...form,
    show: (object) => inVersion(object, other),
    take: async (shown, object, options) => await inVersion(await form.take(shown, object, options), definition),
  }
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
      if (definition.fromStorage !== undefined) return definition.fromStorage(cloneJson(object))
      return object.apiVersion === apiVersion ? object : { ...object, apiVersion }
    },
    take(shown, _object, { isStrict = false } = {}) {
      const decoded = { value: parseJsonText(JSON.stringify(shown)), duplicates: [] }
      const fieldValidation = isStrict ? 'Strict' : 'Ignore'
      const object = objectOf(decoded, { definition, fieldValidation, warnings: [] })
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
