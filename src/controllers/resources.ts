// Resources that the controllers read and write.
import type { GroupVersionResource } from '#apimachinery/meta/index.ts'

export const namespaces: GroupVersionResource = { group: '', version: 'v1', resource: 'namespaces' }
export const serviceAccounts: GroupVersionResource = { group: '', version: 'v1', resource: 'serviceaccounts' }
export const secrets: GroupVersionResource = { group: '', version: 'v1', resource: 'secrets' }
export const configMaps: GroupVersionResource = { group: '', version: 'v1', resource: 'configmaps' }
export const pods: GroupVersionResource = { group: '', version: 'v1', resource: 'pods' }
export const persistentVolumes: GroupVersionResource = { group: '', version: 'v1', resource: 'persistentvolumes' }
export const persistentVolumeClaims: GroupVersionResource = {
  group: '',
  version: 'v1',
  resource: 'persistentvolumeclaims',
}
export const resourceQuotas: GroupVersionResource = { group: '', version: 'v1', resource: 'resourcequotas' }
export const clusterRoles: GroupVersionResource = {
  group: 'rbac.authorization.k8s.io',
  version: 'v1',
  resource: 'clusterroles',
}

export const certificateSigningRequests: GroupVersionResource = {
  group: 'certificates.k8s.io',
  version: 'v1',
  resource: 'certificatesigningrequests',
}

export const customResourceDefinitions: GroupVersionResource = {
  group: 'apiextensions.k8s.io',
  version: 'v1',
  resource: 'customresourcedefinitions',
}

export const validatingAdmissionPolicies: GroupVersionResource = {
  group: 'admissionregistration.k8s.io',
  version: 'v1',
  resource: 'validatingadmissionpolicies',
}

export const apiServices: GroupVersionResource = {
  group: 'apiregistration.k8s.io',
  version: 'v1',
  resource: 'apiservices',
}

const flowControl = { group: 'flowcontrol.apiserver.k8s.io', version: 'v1' }
export const flowSchemas: GroupVersionResource = { ...flowControl, resource: 'flowschemas' }
export const priorityLevels: GroupVersionResource = { ...flowControl, resource: 'prioritylevelconfigurations' }
