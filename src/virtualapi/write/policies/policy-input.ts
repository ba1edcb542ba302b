// The input of the expressions of admission policies and match conditions.
import {
  authorizerValue,
  type CelAuthorizer,
  dynamicValue,
  requestResourceValue,
  type Value,
} from '#apimachinery/cel/index.ts'
import type { JsonObject, JsonValue, KubeObject } from '#apimachinery/meta/index.ts'
import type { ReviewedForm } from '#virtualapi/write/admission/reviewed-form.ts'
import type { Shown } from '#virtualapi/write/admission/shown.ts'

/** The variables that all expressions about one form of a request share, besides the authorizer. */
export function requestVariables(shown: Shown, namespace: KubeObject | undefined): ReadonlyMap<string, Value> {
  return new Map<string, Value>([
    ['object', dynamicValue(jsonOrNull(shown.object))],
    ['oldObject', dynamicValue(jsonOrNull(shown.old))],
    ['namespaceObject', dynamicValue(shownNamespace(namespace))],
    ['request', dynamicValue(shownRequest(shown))],
  ])
}

/** The variables with `authorizer` and `authorizer.requestResource`, the check of the request itself. */
export function withAuthorizerVariables(
  variables: ReadonlyMap<string, Value>,
  { form, request: { subresource, namespace, name } }: Shown,
  authorizer: CelAuthorizer,
): ReadonlyMap<string, Value> {
  const { group, resource } = form
  return new Map([
    ...variables,
    ['authorizer', authorizerValue(authorizer)],
    ['authorizer.requestResource', requestResourceValue(authorizer, { group, resource, subresource, namespace, name })],
  ])
}

const jsonOrNull = (object: KubeObject | undefined): JsonValue => (object ?? null) as JsonObject | null

const omitted = new Set(['managedFields', 'ownerReferences', 'selfLink'])

function shownNamespace(namespace: KubeObject | undefined): JsonValue {
  if (namespace === undefined) return null
  const { metadata, spec, status } = namespace as unknown as Record<string, JsonObject>
  const kept = Object.entries(metadata ?? {}).filter(([name]) => !omitted.has(name))
  return { metadata: Object.fromEntries(kept), spec: spec ?? {}, status: status ?? {} }
}

function shownRequest({ request, own, form }: Shown): JsonObject {
  const { operation, subresource, namespace, name, ofCollection = false, context } = request
  const { user, dryRun, options } = context
  const resourceOf = ({ group, version, resource }: ReviewedForm): JsonObject => ({ group, version, resource })
  const sub = subresource === '' ? {} : { subResource: subresource, requestSubResource: subresource }
  return {
    uid: '',
    kind: { ...form.kind },
    resource: resourceOf(form),
    ...sub,
    requestKind: { ...own.kind },
    requestResource: resourceOf(own),
    ...(name === '' || ofCollection ? {} : { name }),
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
      operation === 'CONNECT' ? null : (options ?? { kind: optionsKinds[operation], apiVersion: 'meta.k8s.io/v1' }),
  }
}

const optionsKinds = { CREATE: 'CreateOptions', UPDATE: 'UpdateOptions', DELETE: 'DeleteOptions' } as const
