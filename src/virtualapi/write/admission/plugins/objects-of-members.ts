// Protection of the objects that members write upstream: the content of ReplicaSets and EndpointSlices that a syncer
// copied, and the status of all synced objects. Endpoints that a tenant wrote into such an EndpointSlice would be
// copied to other members, which would send traffic to foreign addresses.
import { isDeepStrictEqual } from 'node:util'
import { isJsonObject, type JsonObject, type KubeObject } from '#apimachinery/meta/index.ts'
import { forbidden } from '#apimachinery/status/index.ts'
import { isPlaceable, memberAnnotation, memberStatusAnnotationPrefix } from '#crds/index.ts'
import type { AdmissionPlugin } from '#virtualapi/write/admission/admission.ts'
import { mayWriteOwnFields } from './own-fields.ts'

/** By store key: the fields that the syncer writes. */
const writtenFields: Readonly<Record<string, readonly string[]>> = {
  'endpointslices.discovery.k8s.io': ['endpoints', 'ports', 'addressType'],
  'replicasets.apps': ['status'],
  replicationcontrollers: ['status'],
  pods: ['status'],
  'deployments.apps': ['status'],
  'statefulsets.apps': ['status'],
  'daemonsets.apps': ['status'],
  'controllerrevisions.apps': ['data', 'revision'],
  'jobs.batch': ['status'],
  'cronjobs.batch': ['status'],
  services: ['status'],
  persistentvolumeclaims: ['status'],
  persistentvolumes: ['spec', 'status'],
  'ingresses.networking.k8s.io': ['status'],
  'horizontalpodautoscalers.autoscaling': ['status'],
  'poddisruptionbudgets.policy': ['status'],
}
/**
 * By store key: fields that are protected, too, if a member's controllers created the object. Tenants may change them
 * in objects that they created.
 */
const madeFields: Readonly<Record<string, readonly string[]>> = {
  'replicasets.apps': ['spec'],
  'jobs.batch': ['spec'],
}
/** By store key: fields of the status that tenants may change, because the change is also made in the member. */
const forwardedStatus: Readonly<Record<string, readonly string[]>> = { pods: ['conditions', 'message', 'reason'] }
const writtenLabels = ['kubernetes.io/service-name', 'endpointslice.kubernetes.io/managed-by'] as const

/**
 * Refuses with 403 a tenant's change of fields that a syncer writes. Tenants may label, annotate and delete these
 * objects.
 */
export const objectsOfMembers: AdmissionPlugin = {
  name: 'ObjectsOfMembers',
  validate({ context, definition, name }, object, old) {
    const fields = writtenFields[definition.storageKey]
    if (fields === undefined || object === undefined || old === undefined || !isFromMember(old)) return
    if (mayWriteOwnFields(context)) return
    const forwarded = forwardedStatus[definition.storageKey] ?? []
    const kept = (one: KubeObject, field: string): unknown =>
      field === 'status' && isJsonObject(one[field]) ? without(one[field], forwarded) : one[field]
    const made = isPlaceable(old) ? [] : (madeFields[definition.storageKey] ?? [])
    const changed = [
      ...[...fields, ...made].filter((field) => !isDeepStrictEqual(kept(object, field), kept(old, field))),
      ...writtenLabels
        .filter((label) => object.metadata.labels?.[label] !== old.metadata.labels?.[label])
        .map((label) => `metadata.labels[${label}]`),
    ]
    if (changed.length === 0) return
    throw forbidden(definition.info, name, `${changed.join(', ')}: set by kcp from what runs in a member cluster`)
  },
}

function without(object: JsonObject, fields: readonly string[]): JsonObject {
  return fields.length === 0
    ? object
    : Object.fromEntries(Object.entries(object).filter(([field]) => !fields.includes(field)))
}

function isFromMember({ metadata: { annotations = {} } }: KubeObject): boolean {
  if (annotations[memberAnnotation] !== undefined) return true
  return Object.keys(annotations).some((annotation) => annotation.startsWith(memberStatusAnnotationPrefix))
}
