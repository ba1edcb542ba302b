// Labels of EndpointSlices, from discovery.k8s.io.

export const serviceNameLabel = 'kubernetes.io/service-name'
export const managedByLabel = 'endpointslice.kubernetes.io/managed-by'
