// A ValidatingAdmissionPolicy in the member. RBAC cannot confine the syncer to namespaces that do not exist yet. So
// this policy refuses what the syncer writes or connects to outside of namespaces that have our locator annotation.
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { locatorAnnotation, memberParts, systemNamespace } from '#crds/index.ts'

const name = memberParts.syncerAccount
const user = `system:serviceaccount:${systemNamespace}:${memberParts.syncerAccount}`

/**
 * CEL: true if the namespace belongs to a logical cluster: its name begins with an id, and its locator contains the
 * same id.
 */
function isOurs(namespace: string): string {
  const annotations = `${namespace}.metadata.annotations`
  return [
    `${namespace}.metadata.name.matches('^[a-z][a-z2-7]{9}-')`,
    `has(${annotations})`,
    `'${locatorAnnotation}' in ${annotations}`,
    `${annotations}['${locatorAnnotation}'].contains('"clusterId":"' + ${namespace}.metadata.name.substring(0, 10) + '"')`,
  ].join(' && ')
}

/** The policy and its binding, for members that serve admissionregistration.k8s.io/v1 ValidatingAdmissionPolicies. */
export function memberPolicy(): KubeObject[] {
  const labels = { 'app.kubernetes.io/part-of': 'kcp' }
  const apiVersion = 'admissionregistration.k8s.io/v1'
  const isNamespace = `request.kind.group == '' && request.kind.kind == 'Namespace'`
  const isRemovedSystem = `request.operation == 'DELETE' && oldObject.metadata.name == '${systemNamespace}'`
  const validations = [
    {
      expression: `namespaceObject == null || ${isNamespace} || namespaceObject.metadata.name == '${systemNamespace}' || (${isOurs('namespaceObject')})`,
      message: 'kcp writes only in namespaces that it created for logical clusters',
    },
    {
      expression: `!(${isNamespace}) || request.operation == 'CREATE' || (${isRemovedSystem}) || (${isOurs('oldObject')})`,
      message: 'kcp changes only namespaces that it created for logical clusters',
    },
    {
      expression: `!(${isNamespace}) || request.operation == 'DELETE' || (${isOurs('object')})`,
      message: `kcp creates only namespaces whose name begins with the id of a logical cluster, with the same id in annotation ${locatorAnnotation}`,
    },
  ]
  const rule = { apiGroups: ['*'], apiVersions: ['*'], operations: ['*'], resources: ['*/*'] }
  const matchConditions = [{ name: 'is-the-syncer', expression: `request.userInfo.username == '${user}'` }]
  return [
    {
      apiVersion,
      kind: 'ValidatingAdmissionPolicy',
      metadata: { name, labels },
      spec: { failurePolicy: 'Fail', matchConstraints: { resourceRules: [rule] }, matchConditions, validations },
    },
    {
      apiVersion,
      kind: 'ValidatingAdmissionPolicyBinding',
      metadata: { name, labels },
      spec: { policyName: name, validationActions: ['Deny'] },
    },
  ]
}
