// The table of rules by kind.
import type { KindRules } from './kind-rules.ts'
import { admissionPolicyBindingRules, admissionPolicyRules } from './admission-policy.ts'
import { apiServiceRules } from './api-service.ts'
import { autoscalerRules } from './autoscaler.ts'
import { certificateRequestRules } from './certificate-request.ts'
import { configMapRules, secretRules } from './config.ts'
import { controllerRevisionRules } from './controller-revision.ts'
import { cronJobRules } from './cron-job.ts'
import { csiDriverRules, csiNodeRules, csiStorageCapacityRules } from './csi.ts'
import { daemonSetRules } from './daemonset.ts'
import { deploymentRules, replicaSetRules } from './deployment.ts'
import { endpointSliceRules } from './endpoint-slice.ts'
import { endpointsRules } from './endpoints.ts'
import { eventRules, eventsV1Rules } from './event.ts'
import { deviceClassRules } from './device-class.ts'
import { flowSchemaRules } from './flow-schema.ts'
import { ingressClassRules } from './ingress-class.ts'
import { ingressRules } from './ingress.ts'
import { jobRules } from './job.ts'
import { leaseRules } from './lease.ts'
import { limitRangeRules } from './limit-range.ts'
import { mutatingAdmissionPolicyBindingRules, mutatingAdmissionPolicyRules } from './mutating-admission-policy.ts'
import { namespaceRules } from './namespace.ts'
import { networkPolicyRules } from './network-policy.ts'
import { nodeRules } from './node.ts'
import { persistentVolumeClaimRules } from './persistent-volume-claim.ts'
import { persistentVolumeRules } from './persistent-volume.ts'
import { podRules } from './pod.ts'
import { podDisruptionBudgetRules, priorityClassRules } from './disruption-budget-and-priority-class.ts'
import { priorityLevelRules } from './priority-level.ts'
import { clusterRoleBindingRules, clusterRoleRules, roleBindingRules, roleRules } from './rbac.ts'
import { podTemplateRules, replicationControllerRules } from './replication-controller.ts'
import { resourceQuotaRules } from './resource-quota.ts'
import { resourceClaimRules, resourceClaimTemplateRules } from './resource-claim.ts'
import { resourceSliceRules } from './resource-slice.ts'
import { runtimeClassRules } from './runtime-class.ts'
import { ipAddressRules, serviceCidrRules } from './service-cidr-and-ip-address.ts'
import { serviceAccountRules } from './service-account.ts'
import { serviceRules } from './service.ts'
import { statefulSetRules } from './stateful-set.ts'
import { storageClassRules, volumeAttributesClassRules } from './storage-class.ts'
import { volumeAttachmentRules } from './volume-attachment.ts'
import { webhookRules } from './webhooks.ts'

const table: Readonly<Record<string, KindRules>> = {
  'v1/ConfigMap': configMapRules,
  'v1/Endpoints': endpointsRules,
  'v1/Event': eventRules,
  'v1/LimitRange': limitRangeRules,
  'v1/Namespace': namespaceRules,
  'v1/Node': nodeRules,
  'v1/PersistentVolume': persistentVolumeRules,
  'v1/PersistentVolumeClaim': persistentVolumeClaimRules,
  'v1/Pod': podRules,
  'v1/PodTemplate': podTemplateRules,
  'v1/ReplicationController': replicationControllerRules,
  'v1/ResourceQuota': resourceQuotaRules,
  'v1/Secret': secretRules,
  'v1/Service': serviceRules,
  'v1/ServiceAccount': serviceAccountRules,
  'admissionregistration.k8s.io/v1/MutatingWebhookConfiguration': webhookRules,
  'admissionregistration.k8s.io/v1/ValidatingWebhookConfiguration': webhookRules,
  'admissionregistration.k8s.io/v1/ValidatingAdmissionPolicy': admissionPolicyRules,
  'admissionregistration.k8s.io/v1/ValidatingAdmissionPolicyBinding': admissionPolicyBindingRules,
  'admissionregistration.k8s.io/v1beta1/MutatingAdmissionPolicy': mutatingAdmissionPolicyRules,
  'admissionregistration.k8s.io/v1beta1/MutatingAdmissionPolicyBinding': mutatingAdmissionPolicyBindingRules,
  'apiregistration.k8s.io/v1/APIService': apiServiceRules,
  'apps/v1/ControllerRevision': controllerRevisionRules,
  'apps/v1/DaemonSet': daemonSetRules,
  'apps/v1/Deployment': deploymentRules,
  'apps/v1/ReplicaSet': replicaSetRules,
  'apps/v1/StatefulSet': statefulSetRules,
  'autoscaling/v2/HorizontalPodAutoscaler': autoscalerRules,
  'batch/v1/CronJob': cronJobRules,
  'batch/v1/Job': jobRules,
  'certificates.k8s.io/v1/CertificateSigningRequest': certificateRequestRules,
  'coordination.k8s.io/v1/Lease': leaseRules,
  'discovery.k8s.io/v1/EndpointSlice': endpointSliceRules,
  'events.k8s.io/v1/Event': eventsV1Rules,
  'flowcontrol.apiserver.k8s.io/v1/FlowSchema': flowSchemaRules,
  'flowcontrol.apiserver.k8s.io/v1/PriorityLevelConfiguration': priorityLevelRules,
  'networking.k8s.io/v1/IPAddress': ipAddressRules,
  'networking.k8s.io/v1/Ingress': ingressRules,
  'networking.k8s.io/v1/IngressClass': ingressClassRules,
  'networking.k8s.io/v1/NetworkPolicy': networkPolicyRules,
  'networking.k8s.io/v1/ServiceCIDR': serviceCidrRules,
  'node.k8s.io/v1/RuntimeClass': runtimeClassRules,
  'policy/v1/PodDisruptionBudget': podDisruptionBudgetRules,
  'rbac.authorization.k8s.io/v1/ClusterRole': clusterRoleRules,
  'rbac.authorization.k8s.io/v1/ClusterRoleBinding': clusterRoleBindingRules,
  'rbac.authorization.k8s.io/v1/Role': roleRules,
  'rbac.authorization.k8s.io/v1/RoleBinding': roleBindingRules,
  'resource.k8s.io/v1/DeviceClass': deviceClassRules,
  'resource.k8s.io/v1/ResourceClaim': resourceClaimRules,
  'resource.k8s.io/v1/ResourceClaimTemplate': resourceClaimTemplateRules,
  'resource.k8s.io/v1/ResourceSlice': resourceSliceRules,
  'scheduling.k8s.io/v1/PriorityClass': priorityClassRules,
  'storage.k8s.io/v1/CSIDriver': csiDriverRules,
  'storage.k8s.io/v1/CSINode': csiNodeRules,
  'storage.k8s.io/v1/CSIStorageCapacity': csiStorageCapacityRules,
  'storage.k8s.io/v1/StorageClass': storageClassRules,
  'storage.k8s.io/v1/VolumeAttachment': volumeAttachmentRules,
  'storage.k8s.io/v1/VolumeAttributesClass': volumeAttributesClassRules,
}

export { statusCauses } from './status-validation.ts'

const none: KindRules = {}

/** The rules of a kind, from the first of these versions that has some; none if the kind needs no rules. */
export function rulesOf(apiVersions: readonly string[], kind: string): KindRules {
  for (const apiVersion of apiVersions) {
    const rules = table[`${apiVersion}/${kind}`]
    if (rules !== undefined) return rules
  }
  return none
}
