// Descriptions of the fields of ObjectMeta for `kubectl explain`, used if the build has not added Kubernetes' own
// documents.
import { isJsonObject, type JsonObject } from '#apimachinery/meta/index.ts'

const texts: Readonly<Record<string, string>> = {
  annotations: 'Annotations are arbitrary texts that tools store with the object. Selectors cannot use them.',
  creationTimestamp: 'CreationTimestamp is the time in UTC when the object was created. Set by the server.',
  deletionGracePeriodSeconds: 'How long the object may take to terminate before it is removed. Set when it is deleted.',
  deletionTimestamp:
    'DeletionTimestamp is when the object is removed, once its finalizers are gone. Set when it is deleted.',
  finalizers:
    'Finalizers must be empty before a deleted object is removed; each responsible controller removes its entry.',
  generateName: 'GenerateName is a prefix: if no name is given, the server adds five random characters to it.',
  generation: 'Generation is increased with every change of the desired state. Set by the server.',
  labels: 'Labels are keys and values by which selectors select objects.',
  managedFields: 'ManagedFields records which manager has set which fields of the object.',
  name: 'Name of the object, unique for its kind in its namespace. Cannot be changed.',
  namespace: 'Namespace of the object; empty for cluster-scoped kinds. Cannot be changed.',
  ownerReferences:
    'OwnerReferences are the owners of the object, which is garbage collected when all of them are gone.',
  resourceVersion: 'ResourceVersion changes with every write. An update with an older one is refused as a conflict.',
  selfLink: 'SelfLink is no longer set.',
  uid: 'UID is unique in time and space: an object created again under the same name has another one. Set by the server.',
}

/** The definition of ObjectMeta with a description of every field. */
export function withMetadataDescriptions(definition: JsonObject): JsonObject {
  const { properties } = definition
  if (!isJsonObject(properties)) return definition
  const entries = Object.entries(properties).map(([name, property]) => {
    const description = texts[name]
    return [name, description === undefined || !isJsonObject(property) ? property : described(property, description)]
  })
  return { ...definition, properties: Object.fromEntries(entries) as JsonObject }
}

/** Adds a description. A $ref moves into an allOf, because parsers ignore keywords beside a $ref. */
function described(property: JsonObject, description: string): JsonObject {
  const { $ref, ...rest } = property
  return $ref === undefined ? { description, ...rest } : { description, ...rest, allOf: [{ $ref }] }
}
