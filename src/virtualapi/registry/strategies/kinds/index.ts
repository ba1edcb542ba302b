// Which rules a built-in kind has.
import type { KindRules } from '../kind-rules.ts'
import { configMapRules } from './config.ts'
import { daemonSetRules } from './daemonset.ts'
import { cronJobRules } from './job-checks.ts'
import { jobRules } from './job.ts'
import { limitRangeRules } from './limit-range.ts'
import { namespaceRules } from './namespace.ts'
import { ingressClassRules, ingressRules, networkPolicyRules } from './networking.ts'
import { podRules } from './pod.ts'
import {
  autoscalerRules,
  disruptionBudgetRules,
  priorityClassRules,
  resourceQuotaRules,
  storageClassRules,
} from './policies.ts'
import { clusterRoleBindingRules, clusterRoleRules, roleBindingRules, roleRules } from './rbac.ts'
import {
  certificateRequestRules,
  csiDriverRules,
  endpointSliceRules,
  endpointsRules,
  eventRules,
  leaseRules,
  nodeRules,
  runtimeClassRules,
  webhookRules,
} from './records.ts'
import { secretRules } from './secret.ts'
import { serviceRules } from './service.ts'
import { claimRules, volumeRules } from './volumes.ts'
import {
  deploymentRules,
  podTemplateRules,
  replicaSetRules,
  replicationControllerRules,
  statefulSetRules,
} from './workloads.ts'

const table: Readonly<Record<string, KindRules>> = {
  'v1/ConfigMap': configMapRules,
  'v1/Endpoints': endpointsRules,
  'v1/Event': eventRules,
  'v1/LimitRange': limitRangeRules,
  'v1/Namespace': namespaceRules,
  'v1/Node': nodeRules,
  'v1/PersistentVolume': volumeRules,
  'v1/PersistentVolumeClaim': claimRules,
  'v1/Pod': podRules,
  'v1/PodTemplate': podTemplateRules,
  'v1/ReplicationController': replicationControllerRules,
  'v1/ResourceQuota': resourceQuotaRules,
  'v1/Secret': secretRules,
  'v1/Service': serviceRules,
  'admissionregistration.k8s.io/v1/MutatingWebhookConfiguration': webhookRules,
  'admissionregistration.k8s.io/v1/ValidatingWebhookConfiguration': webhookRules,
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
  'networking.k8s.io/v1/Ingress': ingressRules,
  'networking.k8s.io/v1/IngressClass': ingressClassRules,
  'networking.k8s.io/v1/NetworkPolicy': networkPolicyRules,
  'node.k8s.io/v1/RuntimeClass': runtimeClassRules,
  'policy/v1/PodDisruptionBudget': disruptionBudgetRules,
  'rbac.authorization.k8s.io/v1/ClusterRole': clusterRoleRules,
  'rbac.authorization.k8s.io/v1/ClusterRoleBinding': clusterRoleBindingRules,
  'rbac.authorization.k8s.io/v1/Role': roleRules,
  'rbac.authorization.k8s.io/v1/RoleBinding': roleBindingRules,
  'scheduling.k8s.io/v1/PriorityClass': priorityClassRules,
  'storage.k8s.io/v1/CSIDriver': csiDriverRules,
  'storage.k8s.io/v1/StorageClass': storageClassRules,
}

export { statusCauses } from './status-checks.ts'

const none: KindRules = {}

/** The rules of a kind; none for those that are only data. */
export function rulesOf(apiVersion: string, kind: string): KindRules {
  return table[`${apiVersion}/${kind}`] ?? none
}
