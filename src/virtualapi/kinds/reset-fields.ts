// The fields that each endpoint of a built-in kind does not write, so that an applier does not own them there. From the
// strategies of k8s.io/kubernetes/pkg/registry, as far as upstream's endpoints use them. Upstream never uses the fields
// of ServiceCIDRs (its table names a wrong group) and of the subresources `ephemeralcontainers` and `resize` of pods.
import { withoutFields, type FieldFilter } from '#apimachinery/managed-fields/index.ts'

const status = withoutFields(['f:status'])
const spec = withoutFields(['f:spec'])
const specAndMetadata = withoutFields(['f:spec'], ['f:metadata'])

const ordinary = [
  ...['daemonsets', 'replicasets', 'statefulsets'].map((name) => `${name}.apps`),
  'horizontalpodautoscalers.autoscaling',
  'cronjobs.batch',
  'jobs.batch',
  'namespaces',
  'nodes',
  'persistentvolumes',
  'persistentvolumeclaims',
  'replicationcontrollers',
  'resourcequotas',
  'services',
  'ingresses.networking.k8s.io',
  'poddisruptionbudgets.policy',
  'resourceclaims.resource.k8s.io',
]
const withoutMetadata = [
  'apiservices.apiregistration.k8s.io',
  'customresourcedefinitions.apiextensions.k8s.io',
  'flowschemas.flowcontrol.apiserver.k8s.io',
  'prioritylevelconfigurations.flowcontrol.apiserver.k8s.io',
  'validatingadmissionpolicies.admissionregistration.k8s.io',
  'volumeattachments.storage.k8s.io',
]

/** The filters by `resource.group`, followed by `/subresource` for a subresource. */
const filters: Readonly<Record<string, FieldFilter>> = {
  ...Object.fromEntries(ordinary.flatMap((name) => [pair(name, '', status), pair(name, 'status', spec)])),
  ...Object.fromEntries(
    withoutMetadata.flatMap((name) => [pair(name, '', status), pair(name, 'status', specAndMetadata)]),
  ),
  'deployments.apps': status,
  'deployments.apps/status': withoutFields(['f:spec'], ['f:metadata', 'f:labels']),
  'namespaces/finalize': status,
  pods: status,
  'pods/status': withoutFields(['f:spec'], ['f:metadata', 'f:deletionTimestamp'], ['f:metadata', 'f:ownerReferences']),
  'certificatesigningrequests.certificates.k8s.io': withoutFields(['f:spec'], ['f:status']),
  'certificatesigningrequests.certificates.k8s.io/status': withoutFields(['f:spec'], ['f:status', 'f:conditions']),
  'certificatesigningrequests.certificates.k8s.io/approval': withoutFields(['f:spec'], ['f:status', 'f:certificate']),
}

function pair(resource: string, subresource: string, filter: FieldFilter): [string, FieldFilter] {
  return [subresource === '' ? resource : `${resource}/${subresource}`, filter]
}

/**
 * The filter of the fields that writes through this endpoint can own; undefined: all fields. `resource`: with its
 * group.
 */
export function ownableFieldsOf(resource: string, subresource: string): FieldFilter | undefined {
  return filters[subresource === '' ? resource : `${resource}/${subresource}`]
}
