// The types of the variables of admission expressions: the request, and the namespace of the object.
import {
  boolType,
  type CelType,
  type DeclaredType,
  dynType,
  intType,
  listOf,
  mapOf,
  stringType,
  structType,
  timestampType,
} from '#apimachinery/cel/index.ts'

type Fields = Readonly<Record<string, CelType | DeclaredType>>

/** The declared type of values whose sizes are not estimated. */
export function plainType(type: CelType): DeclaredType {
  const [first, second] = type.params.map(plainType)
  const sizes = { minSerializedSize: 0, maxElements: 0 }
  if (type.kind === 'list' && first !== undefined) return { type, ...sizes, element: first }
  if (type.kind === 'map' && first !== undefined && second !== undefined)
    return { type, ...sizes, key: first, element: second }
  return { type, ...sizes }
}

/** The declared type of objects with these fields. */
export function objectType(name: string, fields: Fields): DeclaredType {
  const declared = Object.entries(fields).map(
    ([field, type]) => [field, 'kind' in type ? plainType(type) : type] as const,
  )
  return { type: structType(name), minSerializedSize: 0, maxElements: 0, fields: new Map(declared) }
}

function listOfObjects(element: DeclaredType): DeclaredType {
  return { type: listOf(element.type), minSerializedSize: 0, maxElements: 0, element }
}

const text = stringType
const texts = listOf(stringType)
const kind = objectType('kubernetes.GroupVersionKind', { group: text, version: text, kind: text })
const resource = objectType('kubernetes.GroupVersionResource', { group: text, version: text, resource: text })

/** The type of `request`. */
export const requestType = objectType('kubernetes.AdmissionRequest', {
  kind,
  resource,
  subResource: text,
  requestKind: kind,
  requestResource: resource,
  requestSubResource: text,
  name: text,
  namespace: text,
  operation: text,
  dryRun: boolType,
  options: dynType,
  userInfo: objectType('kubernetes.UserInfo', {
    username: text,
    uid: text,
    groups: texts,
    extra: mapOf(text, texts),
  }),
})

/** The type of `namespaceObject`. */
export const namespaceType = objectType('kubernetes.Namespace', {
  metadata: objectType('kubernetes.NamespaceMetadata', {
    name: text,
    generateName: text,
    namespace: text,
    labels: mapOf(text, text),
    annotations: mapOf(text, text),
    UID: text,
    creationTimestamp: timestampType,
    deletionGracePeriodSeconds: intType,
    deletionTimestamp: timestampType,
    generation: intType,
    resourceVersion: text,
    finalizers: texts,
  }),
  spec: objectType('kubernetes.NamespaceSpec', { finalizers: texts }),
  status: objectType('kubernetes.NamespaceStatus', {
    phase: text,
    conditions: listOfObjects(
      objectType('kubernetes.NamespaceCondition', {
        status: text,
        type: text,
        lastTransitionTime: timestampType,
        message: text,
        reason: text,
      }),
    ),
  }),
})
