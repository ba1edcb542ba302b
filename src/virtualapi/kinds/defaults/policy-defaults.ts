// Defaults of all other kinds: networking, RBAC, storage, scaling, admission, flow control, devices.
import type { JsonObject } from '#apimachinery/meta/index.ts'
import { fill, filling, objectIn, textIn, type DefaultFunction, type DefaultFunctions } from './default-functions.ts'

const rbacGroup = 'rbac.authorization.k8s.io'
const roleRefDefaults: DefaultFunction = (binding) => {
  const roleRef = objectIn(binding, 'roleRef')
  if ((roleRef['apiGroup'] ?? '') === '') roleRef['apiGroup'] = rbacGroup
}
const webhookDefaults = {
  failurePolicy: 'Fail',
  matchPolicy: 'Equivalent',
  namespaceSelector: {},
  objectSelector: {},
  timeoutSeconds: 10,
}
const exactCount: DefaultFunction = (request) => {
  fill(request, { allocationMode: 'ExactCount' })
  if (request['allocationMode'] === 'ExactCount') fill(request, { count: 1 })
}

export const policyDefaults: DefaultFunctions = {
  'networking.v1.NetworkPolicyPort': filling({ protocol: 'TCP' }),
  'networking.v1.NetworkPolicySpec': (spec) => {
    const egress = Array.isArray(spec['egress']) && spec['egress'].length > 0
    fill(spec, { policyTypes: egress ? ['Ingress', 'Egress'] : ['Ingress'] })
  },
  'networking.v1.IngressClassParametersReference': filling({ scope: 'Cluster' }),
  'discovery.v1.EndpointPort': filling({ name: '', protocol: 'TCP' }),
  'rbac.v1.RoleBinding': roleRefDefaults,
  'rbac.v1.ClusterRoleBinding': roleRefDefaults,
  'rbac.v1.Subject': (subject) => {
    if (subject['kind'] === 'User' || subject['kind'] === 'Group') fill(subject, { apiGroup: rbacGroup })
  },
  'storage.v1.StorageClass': filling({ reclaimPolicy: 'Delete', volumeBindingMode: 'Immediate' }),
  'storage.v1.CSIDriverSpec': filling({
    attachRequired: true,
    podInfoOnMount: false,
    storageCapacity: false,
    fsGroupPolicy: 'ReadWriteOnceWithFSType',
    volumeLifecycleModes: ['Persistent'],
    requiresRepublish: false,
    seLinuxMount: false,
  }),
  'scheduling.v1.PriorityClass': filling({ preemptionPolicy: 'PreemptLowerPriority' }),
  'autoscaling.v1.HorizontalPodAutoscalerSpec': filling({ minReplicas: 1 }),
  'autoscaling.v2.HorizontalPodAutoscalerSpec': (spec) => {
    fill(spec, {
      minReplicas: 1,
      metrics: [
        { type: 'Resource', resource: { name: 'cpu', target: { type: 'Utilization', averageUtilization: 80 } } },
      ],
    })
    if (spec['behavior'] === undefined) return
    const behavior = objectIn(spec, 'behavior')
    fill(behavior, { scaleUp: {}, scaleDown: {} })
    fill(objectIn(behavior, 'scaleUp'), {
      stabilizationWindowSeconds: 0,
      selectPolicy: 'Max',
      policies: [scalingPolicy('Pods', 4), scalingPolicy('Percent', 100)],
    })
    fill(objectIn(behavior, 'scaleDown'), { selectPolicy: 'Max', policies: [scalingPolicy('Percent', 100)] })
  },
  'admissionregistration.v1.ValidatingWebhook': filling(webhookDefaults),
  'admissionregistration.v1.MutatingWebhook': filling({ ...webhookDefaults, reinvocationPolicy: 'Never' }),
  'admissionregistration.v1.RuleWithOperations': filling({ scope: '*' }),
  'admissionregistration.v1.NamedRuleWithOperations': filling({ scope: '*' }),
  'admissionregistration.v1.ServiceReference': filling({ port: 443 }),
  'admissionregistration.v1.ValidatingAdmissionPolicySpec': filling({ failurePolicy: 'Fail' }),
  'admissionregistration.v1.MatchResources': filling({
    matchPolicy: 'Equivalent',
    namespaceSelector: {},
    objectSelector: {},
  }),
  'admissionregistration.v1beta1.MutatingAdmissionPolicySpec': filling({ failurePolicy: 'Fail' }),
  'admissionregistration.v1beta1.NamedRuleWithOperations': filling({ scope: '*' }),
  'admissionregistration.v1beta1.MatchResources': filling({
    matchPolicy: 'Equivalent',
    namespaceSelector: {},
    objectSelector: {},
  }),
  'apiextensions.v1.CustomResourceDefinitionSpec': (spec) => {
    const names = objectIn(spec, 'names')
    const kind = textIn(names, 'kind')
    if (kind !== '') fill(names, { singular: kind.toLowerCase(), listKind: `${kind}List` })
    fill(spec, { conversion: { strategy: 'None' } })
  },
  'apiregistration.v1.ServiceReference': filling({ port: 443 }),
  'apiextensions.v1.ServiceReference': filling({ port: 443 }),
  'flowcontrol.v1.FlowSchemaSpec': (spec) => {
    if ((spec['matchingPrecedence'] ?? 0) === 0) spec['matchingPrecedence'] = 1000
  },
  'flowcontrol.v1.ExemptPriorityLevelConfiguration': filling({ nominalConcurrencyShares: 0, lendablePercent: 0 }),
  'flowcontrol.v1.LimitedPriorityLevelConfiguration': filling({ nominalConcurrencyShares: 30, lendablePercent: 0 }),
  'flowcontrol.v1.QueuingConfiguration': (queuing) => {
    for (const [member, wanted] of Object.entries({ handSize: 8, queues: 64, queueLengthLimit: 50 }))
      if ((queuing[member] ?? 0) === 0) queuing[member] = wanted
  },
  'resource.v1.ExactDeviceRequest': exactCount,
  'resource.v1.DeviceSubRequest': exactCount,
  'resource.v1.DeviceToleration': filling({ operator: 'Equal' }),
}

function scalingPolicy(type: string, value: number): JsonObject {
  return { type, value, periodSeconds: 15 }
}
