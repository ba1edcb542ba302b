// The facts of built-in kinds that need no code: one table per fact, as in Kubernetes 1.34.
import type { ResourceInfo } from './resources/resource-info.ts'
import { groupResourceText } from '#apimachinery/meta/index.ts'
import { label1035Name, labelName, pathSegmentName, subdomainName, type NameCheck } from './resources/names.ts'
import type { MetaCheck } from './resources/meta-check.ts'
import { ipErrors } from './validation/ip-values.ts'

/** The facts of one kind; see the members of Strategy. */
export interface KindFacts {
  readonly statusMeta: 'all' | 'allButLabels' | 'none'
  readonly answersDeleted: boolean
  readonly orphansByDefault: boolean
  readonly ownsNothing: boolean
  readonly hasGeneration: boolean
  readonly allowUnconditionalUpdate: boolean
  readonly allowCreateOnUpdate: boolean
  readonly validateName: NameCheck
  readonly ownFinalizers: boolean
  readonly metadataChecks: { readonly update: readonly MetaCheck[]; readonly status: readonly MetaCheck[] }
}

const rbac = 'rbac.authorization.k8s.io'
const admission = 'admissionregistration.k8s.io'

const withGeneration = new Set([
  'mutatingadmissionpolicies.admissionregistration.k8s.io',
  'mutatingadmissionpolicybindings.admissionregistration.k8s.io',
  'mutatingwebhookconfigurations.admissionregistration.k8s.io',
  'validatingadmissionpolicies.admissionregistration.k8s.io',
  'validatingadmissionpolicybindings.admissionregistration.k8s.io',
  'validatingwebhookconfigurations.admissionregistration.k8s.io',
  'daemonsets.apps',
  'deployments.apps',
  'replicasets.apps',
  'statefulsets.apps',
  'cronjobs.batch',
  'jobs.batch',
  'pods',
  'podtemplates',
  'replicationcontrollers',
  'customresourcedefinitions.apiextensions.k8s.io',
  'endpointslices.discovery.k8s.io',
  'flowschemas.flowcontrol.apiserver.k8s.io',
  'prioritylevelconfigurations.flowcontrol.apiserver.k8s.io',
  'ingresses.networking.k8s.io',
  'ingressclasses.networking.k8s.io',
  'networkpolicies.networking.k8s.io',
  'poddisruptionbudgets.policy',
  'deviceclasses.resource.k8s.io',
  'resourceslices.resource.k8s.io',
  'priorityclasses.scheduling.k8s.io',
])

const conditionalUpdate = new Set([
  'mutatingadmissionpolicies.admissionregistration.k8s.io',
  'mutatingadmissionpolicybindings.admissionregistration.k8s.io',
  'apiservices.apiregistration.k8s.io',
  'mutatingwebhookconfigurations.admissionregistration.k8s.io',
  'validatingadmissionpolicies.admissionregistration.k8s.io',
  'validatingadmissionpolicybindings.admissionregistration.k8s.io',
  'validatingwebhookconfigurations.admissionregistration.k8s.io',
  'customresourcedefinitions.apiextensions.k8s.io',
  'leases.coordination.k8s.io',
  'poddisruptionbudgets.policy',
  'runtimeclasses.node.k8s.io',
  'csidrivers.storage.k8s.io',
  'csinodes.storage.k8s.io',
  'csistoragecapacities.storage.k8s.io',
  'volumeattachments.storage.k8s.io',
])

const createOnUpdate = new Set([
  'leases.coordination.k8s.io',
  'endpoints',
  'events',
  'events.events.k8s.io',
  'limitranges',
  'services',
  'runtimeclasses.node.k8s.io',
  'clusterrolebindings.rbac.authorization.k8s.io',
  'clusterroles.rbac.authorization.k8s.io',
  'rolebindings.rbac.authorization.k8s.io',
  'roles.rbac.authorization.k8s.io',
])

const names: Readonly<Record<string, NameCheck>> = {
  namespaces: labelName,
  services: label1035Name,
  'clusterrolebindings.rbac.authorization.k8s.io': pathSegmentName,
  'clusterroles.rbac.authorization.k8s.io': pathSegmentName,
  'rolebindings.rbac.authorization.k8s.io': pathSegmentName,
  'roles.rbac.authorization.k8s.io': pathSegmentName,
  'statefulsets.apps': labelName,
  'apiservices.apiregistration.k8s.io': pathSegmentName,
  // Upstream has no name rules for these kinds.
  'poddisruptionbudgets.policy': pathSegmentName,
  'certificatesigningrequests.certificates.k8s.io': pathSegmentName,
  // An IPAddress is named after its IP address in canonical form.
  'ipaddresses.networking.k8s.io': ipErrors,
  // Names of Events contain times and addresses; the validation of the kind checks them.
  events: pathSegmentName,
  'events.events.k8s.io': pathSegmentName,
}

// `whole`: validates all metadata; `change`: only the immutable fields; `free`: finalizers may have any name.
const whole: MetaCheck = { whole: true, ownFinalizers: true }
const change: MetaCheck = { whole: false, ownFinalizers: true }
const freeWhole: MetaCheck = { whole: true, ownFinalizers: false }
const freeChange: MetaCheck = { whole: false, ownFinalizers: false }

/**
 * The metadata validations in a kind's own update validation; a kind that is absent, as most are, has `[whole,
 * change]`.
 */
const updateChecks: Readonly<Record<string, readonly MetaCheck[]>> = {
  ...checksOf(
    [change],
    [
      'daemonsets.apps',
      'deployments.apps',
      'replicasets.apps',
      'statefulsets.apps',
      'cronjobs.batch',
      'podtemplates',
      'resourcequotas',
      'services',
      'horizontalpodautoscalers.autoscaling',
      'events.events.k8s.io',
      'servicecidrs.networking.k8s.io',
      'resourceslices.resource.k8s.io',
      'priorityclasses.scheduling.k8s.io',
      'csidrivers.storage.k8s.io',
    ],
  ),
  ...checksOf(
    [whole],
    [
      'limitranges',
      'endpointslices.discovery.k8s.io',
      'flowschemas.flowcontrol.apiserver.k8s.io',
      'prioritylevelconfigurations.flowcontrol.apiserver.k8s.io',
    ],
  ),
  ...checksOf([whole, whole], ['persistentvolumes', 'csinodes.storage.k8s.io', 'volumeattachments.storage.k8s.io']),
  ...checksOf(
    [whole, whole, change],
    [
      'persistentvolumeclaims',
      'volumeattributesclasses.storage.k8s.io',
      ...['roles', 'clusterroles', 'rolebindings', 'clusterrolebindings'].map((one) => `${one}.${rbac}`),
    ],
  ),
  ...checksOf(
    [freeWhole],
    [
      ...['mutatingwebhookconfigurations', 'validatingwebhookconfigurations'].map((one) => `${one}.${admission}`),
      ...['validatingadmissionpolicies', 'validatingadmissionpolicybindings'].map((one) => `${one}.${admission}`),
      ...['mutatingadmissionpolicies', 'mutatingadmissionpolicybindings'].map((one) => `${one}.${admission}`),
    ],
  ),
  'apiservices.apiregistration.k8s.io': [freeChange, freeWhole],
  'leases.coordination.k8s.io': [freeChange],
  'runtimeclasses.node.k8s.io': [freeWhole, freeChange],
  'customresourcedefinitions.apiextensions.k8s.io': [freeChange],
  events: [],
  'poddisruptionbudgets.policy': [],
}

const statusChecks: Readonly<Record<string, readonly MetaCheck[]>> = {
  'cronjobs.batch': [],
  'poddisruptionbudgets.policy': [],
  'certificatesigningrequests.certificates.k8s.io': [whole, change],
  'customresourcedefinitions.apiextensions.k8s.io': [freeChange],
}

/** Kinds whose finalizers may have any name. */
const freeFinalizers = new Set(
  Object.entries(updateChecks).flatMap(([key, checks]) => (checks.some((one) => one.ownFinalizers) ? [] : [key])),
)

function checksOf(checks: readonly MetaCheck[], keys: readonly string[]): Record<string, readonly MetaCheck[]> {
  return Object.fromEntries(keys.map((key) => [key, checks]))
}

/** Kinds whose subresource `status` writes no metadata. */
const bareStatus = new Set([
  'apiservices.apiregistration.k8s.io',
  'customresourcedefinitions.apiextensions.k8s.io',
  'flowschemas.flowcontrol.apiserver.k8s.io',
  'prioritylevelconfigurations.flowcontrol.apiserver.k8s.io',
  'resourceclaims.resource.k8s.io',
  'servicecidrs.networking.k8s.io',
  'validatingadmissionpolicies.admissionregistration.k8s.io',
  'volumeattachments.storage.k8s.io',
])

const answersDeleted = new Set([
  'namespaces',
  'persistentvolumeclaims',
  'persistentvolumes',
  'pods',
  'podtemplates',
  'resourcequotas',
  'serviceaccounts',
  'services',
  'deviceclasses.resource.k8s.io',
  'resourceclaims.resource.k8s.io',
  'resourceclaimtemplates.resource.k8s.io',
  'resourceslices.resource.k8s.io',
  'csidrivers.storage.k8s.io',
  'csinodes.storage.k8s.io',
  'storageclasses.storage.k8s.io',
  'volumeattachments.storage.k8s.io',
  'volumeattributesclasses.storage.k8s.io',
])

/** Kinds that the garbage collector ignores. */
const ownsNothing = new Set(['events', 'events.events.k8s.io'])

const orphansByDefault = new Set(['jobs.batch', 'replicationcontrollers'])

/** The facts of a built-in resource. */
export function factsOf(info: ResourceInfo): KindFacts {
  const key = groupResourceText(info)
  return {
    statusMeta: key === 'deployments.apps' ? 'allButLabels' : bareStatus.has(key) ? 'none' : 'all',
    answersDeleted: answersDeleted.has(key),
    orphansByDefault: orphansByDefault.has(key),
    ownsNothing: ownsNothing.has(key),
    hasGeneration: withGeneration.has(key),
    allowUnconditionalUpdate: !conditionalUpdate.has(key),
    allowCreateOnUpdate: createOnUpdate.has(key),
    validateName: names[key] ?? subdomainName,
    ownFinalizers: !freeFinalizers.has(key),
    metadataChecks: {
      update: updateChecks[key] ?? [whole, change],
      status: bareStatus.has(key) ? [] : (statusChecks[key] ?? [change]),
    },
  }
}
