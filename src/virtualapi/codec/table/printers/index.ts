// The cell printer of each kind; the columns are in a generated table.
import type { JsonObject, JsonValue } from '#apimachinery/meta/index.ts'
import { autoscalerCells, autoscalerV1Cells } from './autoscaling.ts'
import * as cluster from './cluster.ts'
import { nameAndAgeCells, resourceClaimCells, resourceSliceCells } from './devices.ts'
import * as networking from './networking.ts'
import { podCells } from './pods.ts'
import * as policy from './policy.ts'
import * as storage from './storage.ts'
import * as workloads from './workloads.ts'

/** Returns the cells of one object, one per column, including the columns of `-o wide`. */
export type CellPrinter = (object: JsonObject, nowMs: number) => JsonValue[]

/** Keyed by "apiVersion/Kind". Kinds without an entry show their name and creation time. */
export const cellPrinters: ReadonlyMap<string, CellPrinter> = new Map<string, CellPrinter>([
  ['admissionregistration.k8s.io/v1/MutatingWebhookConfiguration', policy.webhookConfigurationCells],
  ['admissionregistration.k8s.io/v1/ValidatingAdmissionPolicy', policy.admissionPolicyCells],
  ['admissionregistration.k8s.io/v1/ValidatingAdmissionPolicyBinding', policy.admissionPolicyBindingCells],
  ['admissionregistration.k8s.io/v1/ValidatingWebhookConfiguration', policy.webhookConfigurationCells],
  ['admissionregistration.k8s.io/v1beta1/MutatingAdmissionPolicy', policy.mutatingPolicyCells],
  ['admissionregistration.k8s.io/v1beta1/MutatingAdmissionPolicyBinding', policy.admissionPolicyBindingCells],
  ['apiregistration.k8s.io/v1/APIService', policy.apiServiceCells],
  ['apps/v1/ControllerRevision', workloads.controllerRevisionCells],
  ['apps/v1/DaemonSet', workloads.daemonSetCells],
  ['apps/v1/Deployment', workloads.deploymentCells],
  ['apps/v1/ReplicaSet', workloads.replicaSetCells],
  ['apps/v1/StatefulSet', workloads.statefulSetCells],
  ['autoscaling/v1/HorizontalPodAutoscaler', autoscalerV1Cells],
  ['autoscaling/v1/Scale', workloads.scaleCells],
  ['autoscaling/v2/HorizontalPodAutoscaler', autoscalerCells],
  ['batch/v1/CronJob', workloads.cronJobCells],
  ['batch/v1/Job', workloads.jobCells],
  ['certificates.k8s.io/v1/CertificateSigningRequest', policy.signingRequestCells],
  ['coordination.k8s.io/v1/Lease', cluster.leaseCells],
  ['discovery.k8s.io/v1/EndpointSlice', networking.endpointSliceCells],
  ['events.k8s.io/v1/Event', cluster.groupEventCells],
  ['flowcontrol.apiserver.k8s.io/v1/FlowSchema', policy.flowSchemaCells],
  ['flowcontrol.apiserver.k8s.io/v1/PriorityLevelConfiguration', policy.priorityLevelCells],
  ['networking.k8s.io/v1/IPAddress', networking.ipAddressCells],
  ['networking.k8s.io/v1/Ingress', networking.ingressCells],
  ['networking.k8s.io/v1/IngressClass', networking.ingressClassCells],
  ['networking.k8s.io/v1/NetworkPolicy', networking.networkPolicyCells],
  ['networking.k8s.io/v1/ServiceCIDR', networking.serviceCidrCells],
  ['node.k8s.io/v1/RuntimeClass', cluster.runtimeClassCells],
  ['policy/v1/PodDisruptionBudget', workloads.disruptionBudgetCells],
  ['rbac.authorization.k8s.io/v1/ClusterRoleBinding', policy.roleBindingCells],
  ['rbac.authorization.k8s.io/v1/RoleBinding', policy.roleBindingCells],
  ['resource.k8s.io/v1/DeviceClass', nameAndAgeCells],
  ['resource.k8s.io/v1/ResourceClaim', resourceClaimCells],
  ['resource.k8s.io/v1/ResourceClaimTemplate', nameAndAgeCells],
  ['resource.k8s.io/v1/ResourceSlice', resourceSliceCells],
  ['scheduling.k8s.io/v1/PriorityClass', cluster.priorityClassCells],
  ['storage.k8s.io/v1/CSIDriver', storage.csiDriverCells],
  ['storage.k8s.io/v1/CSINode', storage.csiNodeCells],
  ['storage.k8s.io/v1/StorageClass', storage.storageClassCells],
  ['storage.k8s.io/v1/VolumeAttachment', storage.volumeAttachmentCells],
  ['storage.k8s.io/v1/VolumeAttributesClass', storage.volumeAttributesClassCells],
  ['v1/ComponentStatus', cluster.componentStatusCells],
  ['v1/ConfigMap', cluster.configMapCells],
  ['v1/Endpoints', networking.endpointsCells],
  ['v1/Event', cluster.coreEventCells],
  ['v1/Namespace', cluster.namespaceCells],
  ['v1/Node', cluster.nodeCells],
  ['v1/PersistentVolume', storage.volumeCells],
  ['v1/PersistentVolumeClaim', storage.volumeClaimCells],
  ['v1/Pod', podCells],
  ['v1/PodTemplate', workloads.podTemplateCells],
  ['v1/ReplicationController', workloads.replicationControllerCells],
  ['v1/ResourceQuota', cluster.resourceQuotaCells],
  ['v1/Secret', cluster.secretCells],
  ['v1/Service', networking.serviceCells],
  ['v1/ServiceAccount', cluster.serviceAccountCells],
])
