// What expressions of admission policies see of a request.
import {
  authorizerValue,
  type CelAuthorizer,
  dynamicValue,
  requestResourceValue,
  type Value,
} from '../../apimachinery/cel/index.ts'
import type { JsonObject, JsonValue, KubeObject } from '../../apimachinery/meta/index.ts'
import type { AdmissionRequest } from '../admission/admission.ts'
import type { ResourceDefinition } from '../resources/resource-definition.ts'

export interface ReviewedObjects {
  readonly object: KubeObject | undefined
  readonly old: KubeObject | undefined
}

export interface PolicyInput {
  readonly request: AdmissionRequest
  /** The form in which the policy sees the object. */
  readonly form: ResourceDefinition
  readonly objects: ReviewedObjects
  readonly namespace: KubeObject | undefined
  readonly authorizer: CelAuthorizer
}

/** The variables that all expressions of a policy share. */
export function sharedVariables(input: PolicyInput): ReadonlyMap<string, Value> {
  const { request, form, objects, namespace, authorizer } = input
  const { definition, subresource, name } = request
  return new Map<string, Value>([
    ['object', dynamicValue(inForm(objects.object, definition, form))],
    ['oldObject', dynamicValue(inForm(objects.old, definition, form))],
    ['namespaceObject', dynamicValue(shownNamespace(namespace))],
    ['request', dynamicValue(shownRequest(request, form))],
    ['authorizer', authorizerValue(authorizer)],
    [
      'authorizer.requestResource',
      requestResourceValue(authorizer, {
        ...{ group: definition.info.group, resource: definition.info.resource },
        ...{ subresource, namespace: request.namespace, name },
      }),
    ],
  ])
}

/** The object as another version of its resource shows it. */
function inForm(object: KubeObject | undefined, own: ResourceDefinition, form: ResourceDefinition): JsonValue {
  if (object === undefined) return null
  const asJson = (one: KubeObject): JsonObject => one as unknown as JsonObject
  if (own === form) return asJson(object)
  const copy = structuredClone(object)
  const stored = own.toStorage?.(copy) ?? copy
  const shown = form.fromStorage?.(stored) ?? stored
  const { group, version, kind } = form.info
  return asJson({ ...shown, apiVersion: group === '' ? version : `${group}/${version}`, kind })
}

const omitted = new Set(['managedFields', 'ownerReferences', 'selfLink'])

function shownNamespace(namespace: KubeObject | undefined): JsonValue {
  if (namespace === undefined) return null
  const { metadata, spec, status } = namespace as unknown as Record<string, JsonObject>
  const kept = Object.entries(metadata ?? {}).filter(([name]) => !omitted.has(name))
  return { metadata: Object.fromEntries(kept), spec: spec ?? {}, status: status ?? {} }
}

function shownRequest(request: AdmissionRequest, form: ResourceDefinition): JsonObject {
  const { operation, definition, subresource, namespace, name, context } = request
  const { user, dryRun } = context
  const kindOf = ({ info }: ResourceDefinition): JsonObject => {
    const below = info.subresources.find((one) => one.name === subresource)
    const { group, version, kind } = below ?? info
    return { group, version, kind }
  }
  const resourceOf = ({ info }: ResourceDefinition): JsonObject => {
    const { group, version, resource } = info
    return { group, version, resource }
  }
  const sub = subresource === '' ? {} : { subResource: subresource, requestSubResource: subresource }
  const options: JsonValue | undefined = 'options' in context ? context.options : undefined
  return {
    uid: '',
    kind: kindOf(form),
    resource: resourceOf(form),
    ...sub,
    requestKind: kindOf(definition),
    requestResource: resourceOf(definition),
    name,
    ...(namespace === '' ? {} : { namespace }),
    operation,
    userInfo: {
      username: user.name,
      ...(user.uid === undefined ? {} : { uid: user.uid }),
      groups: [...user.groups],
      extra: Object.fromEntries(Object.entries(user.extra).map(([key, values]) => [key, [...values]])),
    },
    object: null,
    oldObject: null,
    dryRun,
    options:
      options ?? (operation === 'CONNECT' ? null : { kind: optionsKinds[operation], apiVersion: 'meta.k8s.io/v1' }),
  }
}

const optionsKinds = { CREATE: 'CreateOptions', UPDATE: 'UpdateOptions', DELETE: 'DeleteOptions' } as const

/** The labels of an object; none if it has no metadata. */
export function labelsOf(object: Partial<KubeObject>): Readonly<Record<string, string>> | undefined {
  return object.metadata?.labels
}
