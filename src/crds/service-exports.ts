// The Multi-Cluster Services API (KEP-1645), `multicluster.x-k8s.io`: what a ServiceExport makes of a Service, in
// logical clusters whose tenants installed its definitions. The operator makes a ServiceImport and a second Service,
// which is synced like any other; syncers and nameservers know that Service by its name and label.
import type { GroupVersionResource } from '#apimachinery/meta/index.ts'

/** Every release of the API serves this version; objects of v1beta1 have the same fields. */
const clusterSetApi = { group: 'multicluster.x-k8s.io', version: 'v1alpha1' } as const
export const serviceExports: GroupVersionResource = { ...clusterSetApi, resource: 'serviceexports' }
export const serviceImports: GroupVersionResource = { ...clusterSetApi, resource: 'serviceimports' }
export const clusterSetApiVersion = `${clusterSetApi.group}/${clusterSetApi.version}`

/** Label of the API, on the second Service and its EndpointSlices: the name of the exported Service. */
export const exportedServiceLabel = 'multicluster.kubernetes.io/service-name'
/** Label of the API, on EndpointSlices: the member that the endpoints are in. */
export const sourceClusterLabel = 'multicluster.kubernetes.io/source-cluster'

/**
 * The name of the second Service is this prefix and the name of the exported Service: so the nameserver finds it
 * without a list of exported Services.
 */
export const clusterSetPrefix = 'clusterset--'
/** The zone of names of exported Services: `NAME.NAMESPACE.svc.clusterset.local`. */
export const clusterSetZone = 'clusterset.local'

/** The name of the Service that serves the clusterset name of an exported one. */
export function clusterSetServiceName(exported: string): string {
  return `${clusterSetPrefix}${exported}`
}

/** Names of Services have 63 characters at most. */
export const maxExportedNameLength = 63 - clusterSetPrefix.length

/** The exported Service of a second one, or of its EndpointSlices; undefined for others. */
export function exportedNameOf(object: {
  readonly metadata: { readonly name?: string; readonly labels?: Readonly<Record<string, string>> }
}): string | undefined {
  const { labels } = object.metadata
  const exported = labels?.[exportedServiceLabel]
  const service = labels?.['kubernetes.io/service-name'] ?? object.metadata.name
  return exported !== undefined && service === clusterSetServiceName(exported) ? exported : undefined
}

/**
 * The name of a pod with a hostname in the nameserver of other members: pods of several members may have the same
 * hostname.
 */
export function hostnameFrom(hostname: string, member: string): string | undefined {
  const name = `${hostname}--${member}`
  return name.length <= 63 && !name.includes('.') ? name : undefined
}
