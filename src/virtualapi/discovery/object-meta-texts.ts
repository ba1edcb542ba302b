// What `kubectl explain` says of metadata: the one part that every kind has, custom ones too.
import { isJsonObject, type JsonObject } from '../../apimachinery/meta/index.ts'

const texts: Readonly<Record<string, string>> = {
  annotations: 'Annotations are text that tools keep with the object. They cannot be selected by.',
  creationTimestamp: 'CreationTimestamp is a timestamp: when the server created the object. Set by the server, in UTC.',
  deletionGracePeriodSeconds: 'How long the object may take to end before it is removed. Set when it is deleted.',
  deletionTimestamp:
    'DeletionTimestamp is when the object will be gone, or waits for its finalizers. Set when it is deleted.',
  finalizers: 'Finalizers are who must agree before a deleted object is removed; each takes its own entry away.',
  generateName: 'GenerateName is a prefix: where no name is given, the server adds five characters to it.',
  generation: 'Generation counts the states that were wished for. Set by the server.',
  labels: 'Labels are names and values that objects are selected by.',
  managedFields: 'ManagedFields tells who manages which fields of the object.',
  name: 'Name of the object, unique in its namespace for its kind. Cannot be changed.',
  namespace: 'Namespace that the object is in; empty for kinds that are in none. Cannot be changed.',
  ownerReferences: 'OwnerReferences are the objects that this one goes with when all of them are gone.',
  resourceVersion: 'ResourceVersion changes with every write. Sent back, it refuses a write that others came before.',
  selfLink: 'SelfLink is no longer set.',
  uid: 'UID is unique in time and space: of this very object, not of its name. Set by the server.',
}

/** The definition with a text on every field. */
export function withMetadataTexts(definition: JsonObject): JsonObject {
  const { properties } = definition
  if (!isJsonObject(properties)) return definition
  const told = Object.entries(properties).map(([name, property]) => {
    const description = texts[name]
    return [name, description === undefined || !isJsonObject(property) ? property : described(property, description)]
  })
  return { ...definition, properties: Object.fromEntries(told) as JsonObject }
}

/** Beside a $ref nothing else counts: it moves into an allOf. */
function described(property: JsonObject, description: string): JsonObject {
  const { $ref, ...rest } = property
  return $ref === undefined ? { description, ...rest } : { description, ...rest, allOf: [{ $ref }] }
}
