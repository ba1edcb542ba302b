// metav1.ObjectMeta as a schema: it applies to the metadata of every object and embedded resource, whatever their own
// schema says.
import type { SchemaNode } from './schema-node.ts'

const string: SchemaNode = { type: 'string' }
const boolean: SchemaNode = { type: 'boolean' }
const int64: SchemaNode = { type: 'integer', format: 'int64' }
const time: SchemaNode = { type: 'string', format: 'date-time', typeName: 'Time', nullable: true }
const stringMap: SchemaNode = { type: 'object', additionalProperties: string }

const ownerReference: SchemaNode = {
  type: 'object',
  typeName: 'OwnerReference',
  mapType: 'atomic',
  properties: {
    apiVersion: string,
    kind: string,
    name: string,
    uid: string,
    controller: boolean,
    blockOwnerDeletion: boolean,
  },
}

const managedFieldsEntry: SchemaNode = {
  type: 'object',
  typeName: 'ManagedFieldsEntry',
  properties: {
    manager: string,
    operation: string,
    apiVersion: string,
    time,
    fieldsType: string,
    fieldsV1: { type: 'object', typeName: 'FieldsV1', preserveUnknownFields: true },
    subresource: string,
  },
}

/** The schema of `metadata`. Shared; must not be changed. */
export const objectMetaSchema: SchemaNode = {
  type: 'object',
  typeName: 'ObjectMeta',
  properties: {
    name: string,
    generateName: string,
    namespace: string,
    selfLink: string,
    uid: string,
    resourceVersion: string,
    generation: int64,
    creationTimestamp: time,
    deletionTimestamp: time,
    deletionGracePeriodSeconds: int64,
    labels: stringMap,
    annotations: stringMap,
    ownerReferences: {
      type: 'array',
      items: ownerReference,
      listType: 'map',
      listMapKeys: ['uid'],
      patchStrategy: ['merge'],
      patchMergeKey: 'uid',
    },
    finalizers: { type: 'array', items: string, listType: 'set', patchStrategy: ['merge'] },
    managedFields: { type: 'array', items: managedFieldsEntry },
  },
}
