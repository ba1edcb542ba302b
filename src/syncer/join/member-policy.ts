// A ValidatingAdmissionPolicy in the member. RBAC cannot confine the syncer to namespaces that do not exist yet. So
// this policy refuses what the syncer writes or connects to outside of namespaces that have our locator annotation.
import type { KubeObject } from '#apimachinery/meta/index.ts'
import {
  adoptableLabel,
  locatorAnnotation,
  memberParts,
  systemNamespace,
  volumeMoveLabel,
  volumeSnapshotLabel,
} from '#crds/index.ts'

const name = memberParts.syncerAccount
const user = `system:serviceaccount:${systemNamespace}:${memberParts.syncerAccount}`

/**
 * CEL: true if the namespace was made for a logical cluster: its name begins with an id, and its locator contains the
 * same id.
 */
function isMade(namespace: string): string {
  const annotations = `${namespace}.metadata.annotations`
  return [
    `${namespace}.metadata.name.matches('^[a-z][a-z2-7]{9}-')`,
    `has(${annotations})`,
    `'${locatorAnnotation}' in ${annotations}`,
    `${annotations}['${locatorAnnotation}'].contains('"clusterId":"' + ${namespace}.metadata.name.substring(0, 10) + '"')`,
  ].join(' && ')
}

/** Namespaces of the cluster itself: no consent is enough for them. */
const protectedNamespaces = ['default', 'kube-system', 'kube-public', 'kube-node-lease', systemNamespace]

/** CEL: true if an admin of the member lets a logical cluster adopt the namespace. The syncer cannot write this label. */
function isConsented(namespace: string): string {
  const labels = `${namespace}.metadata.labels`
  return [
    `has(${labels})`,
    `'${adoptableLabel}' in ${labels}`,
    `${labels}['${adoptableLabel}'].matches('^[a-z][a-z2-7]{9}$')`,
    `!(${namespace}.metadata.name in [${protectedNamespaces.map((one) => `'${one}'`).join(', ')}])`,
  ].join(' && ')
}

/** CEL: true if a write leaves the consent as it is, or removes it. */
const keepsConsent = [
  `!has(object.metadata.labels) || !('${adoptableLabel}' in object.metadata.labels)`,
  `(oldObject != null && has(oldObject.metadata.labels) && '${adoptableLabel}' in oldObject.metadata.labels && oldObject.metadata.labels['${adoptableLabel}'] == object.metadata.labels['${adoptableLabel}'])`,
].join(' || ')

/** CEL: true if the syncer may write in the namespace. */
function isOurs(namespace: string): string {
  return `(${isMade(namespace)}) || (${isConsented(namespace)})`
}

/**
 * CEL: true if a volume is claimed by our own namespace, where volumes are filled, or by one whose name only kcp gives.
 */
function isClaimed(volume: string): string {
  const namespace = `${volume}.spec.claimRef.namespace`
  return `has(${volume}.spec.claimRef) && (${namespace} == '${systemNamespace}' || ${namespace}.matches('^[a-z][a-z2-7]{9}-'))`
}

/** CEL: true if the object has the label of a move. The syncer can give the label only to volumes as in isClaimed. */
function isMarked(object: string, label: string = volumeMoveLabel): string {
  return `has(${object}.metadata.labels) && '${label}' in ${object}.metadata.labels`
}

/** CEL: true if the content of a snapshot of a tenant's claim is kept, or given back, and nothing else of it changes. */
const keepsContent = [
  isMarked('object', volumeSnapshotLabel),
  `object.spec.volumeSnapshotRef.namespace.matches('^[a-z][a-z2-7]{9}-')`,
  ...['volumeSnapshotRef', 'source', 'driver'].map((field) => `object.spec.${field} == oldObject.spec.${field}`),
].join(' && ')

/** The policy and its binding, for members that serve admissionregistration.k8s.io/v1 ValidatingAdmissionPolicies. */
export function memberPolicy(): KubeObject[] {
  const labels = { 'app.kubernetes.io/part-of': 'kcp' }
  const apiVersion = 'admissionregistration.k8s.io/v1'
  const isVolume = `request.kind.group == '' && request.kind.kind == 'PersistentVolume'`
  const isSnapshotContent = `request.kind.group == 'snapshot.storage.k8s.io' && request.kind.kind == 'VolumeSnapshotContent'`
  const isNamespace = `request.kind.group == '' && request.kind.kind == 'Namespace'`
  const isRemovedSystem = `request.operation == 'DELETE' && oldObject.metadata.name == '${systemNamespace}'`
  const validations = [
    {
      expression: `namespaceObject == null || ${isNamespace} || namespaceObject.metadata.name == '${systemNamespace}' || (${isOurs('namespaceObject')})`,
      message: `kcp writes only in namespaces that it created for logical clusters, or that have the label ${adoptableLabel}`,
    },
    {
      expression: `!(${isNamespace}) || request.operation == 'CREATE' || (${isRemovedSystem}) || (${isOurs('oldObject')})`,
      message: `kcp changes only namespaces that it created for logical clusters, or that have the label ${adoptableLabel}`,
    },
    {
      expression: `!(${isNamespace}) || request.operation == 'DELETE' || (${isMade('object')}) || (request.operation == 'UPDATE' && (${isConsented('oldObject')}))`,
      message: `kcp creates only namespaces whose name begins with the id of a logical cluster, with the same id in annotation ${locatorAnnotation}`,
    },
    {
      expression: `!(${isNamespace}) || request.operation != 'DELETE' || (${isRemovedSystem}) || (${isMade('oldObject')})`,
      message: 'kcp deletes only namespaces that it created for logical clusters',
    },
    {
      expression: `!(${isNamespace}) || request.operation == 'DELETE' || ${keepsConsent}`,
      message: `only admins of the member write the label ${adoptableLabel}; kcp can remove it`,
    },
    {
      expression: `!(${isVolume}) || (request.operation == 'CREATE' ? (${isMarked('object')}) && (${isClaimed('object')}) : (${isMarked('oldObject')}) || (${isClaimed('oldObject')}))`,
      message: 'kcp makes, changes and deletes only volumes of claims of logical clusters',
    },
    {
      expression: `!(${isVolume}) || request.operation != 'UPDATE' || (${isClaimed('object')})`,
      message: 'kcp gives volumes only to claims of logical clusters',
    },
    {
      expression: `!(${isVolume}) || request.operation != 'DELETE' || ((${isMarked('oldObject')}) && oldObject.spec.persistentVolumeReclaimPolicy == 'Retain')`,
      message: 'kcp deletes only volumes that stay in another member',
    },
    {
      expression: `!(${isSnapshotContent}) || request.operation != 'CREATE' || (${isMarked('object')})`,
      message: `kcp makes only contents of snapshots with the label ${volumeMoveLabel}`,
    },
    {
      expression: `!(${isSnapshotContent}) || request.operation != 'UPDATE' || (${keepsContent})`,
      message: `kcp keeps only contents of snapshots of claims of logical clusters, with the label ${volumeSnapshotLabel}`,
    },
    {
      expression: `!(${isSnapshotContent}) || request.operation != 'DELETE' || (${isMarked('oldObject')}) || (${isMarked('oldObject', volumeSnapshotLabel)})`,
      message: `kcp deletes only contents of snapshots with the label ${volumeMoveLabel} or ${volumeSnapshotLabel}`,
    },
    {
      expression: `!(${isSnapshotContent}) || request.operation != 'CREATE' || object.spec.volumeSnapshotRef.namespace == '${systemNamespace}'`,
      message: `kcp makes contents of snapshots only for namespace ${systemNamespace}`,
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
