// What members write upstream: the content of ReplicaSets and EndpointSlices that a syncer copied, the status of everything that
// is synced. Endpoints that a tenant wrote there would reach other members, which would send traffic to foreign addresses.
import { isDeepStrictEqual } from 'node:util'
import type { KubeObject } from '../../../apimachinery/meta/index.ts'
import { forbidden } from '../../../apimachinery/status/index.ts'
import { memberAnnotation, memberStatusAnnotationPrefix } from '../../../crds/index.ts'
import type { AdmissionPlugin } from '../admission.ts'

/** By store key: the fields that the syncer writes. */
const writtenFields: Readonly<Record<string, readonly string[]>> = {
  'endpointslices.discovery.k8s.io': ['endpoints', 'ports', 'addressType'],
  'replicasets.apps': ['spec', 'status'],
  pods: ['status'],
  'deployments.apps': ['status'],
  services: ['status'],
}
const writtenLabels = ['kubernetes.io/service-name', 'endpointslice.kubernetes.io/managed-by'] as const

/** Refuses with 403 a tenant's change of what a syncer writes. Tenants may label, annotate and delete these objects. */
export const objectsOfMembers: AdmissionPlugin = {
  name: 'ObjectsOfMembers',
  validate({ context, definition, name }, object, old) {
    const fields = writtenFields[definition.storageKey]
    if (fields === undefined || object === undefined || old === undefined || !isFromMember(old)) return
    if (context.user.realm.kind === 'installation') return
    const changed = [
      ...fields.filter((field) => !isDeepStrictEqual(object[field], old[field])),
      ...writtenLabels
        .filter((label) => object.metadata.labels?.[label] !== old.metadata.labels?.[label])
        .map((label) => `metadata.labels[${label}]`),
    ]
    if (changed.length === 0) return
    throw forbidden(definition.info, name, `${changed.join(', ')}: set by kcp from what runs in a member cluster`)
  },
}

function isFromMember({ metadata: { annotations = {} } }: KubeObject): boolean {
  if (annotations[memberAnnotation] !== undefined) return true
  return Object.keys(annotations).some((annotation) => annotation.startsWith(memberStatusAnnotationPrefix))
}
