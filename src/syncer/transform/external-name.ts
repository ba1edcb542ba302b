// The target of a Service of type ExternalName, so that it means the same in a member: pods ask our nameserver for it,
// but controllers of the member that serve an Ingress ask the member's own DNS, where namespaces have other names.
import type { ClusterId } from '#apimachinery/meta/index.ts'
import { downstreamNamespace, isInTenantZone } from '#crds/index.ts'

/** A name that does not exist anywhere (RFC 6761). */
const nothing = 'refused.invalid'
/** Names of Services and pods in the cluster's own domain. */
const inNamespace = /^(.+)\.([^.]+)\.(svc|pod)\.cluster\.local\.?$/i

/**
 * Names of Services are those of the logical cluster. Names in the zone of the nameservers lead nowhere: that zone has
 * the Services of all logical clusters. A name to which a resolver would append search domains becomes absolute.
 */
export function externalNameDown(name: string, clusterId: ClusterId): string {
  if (isInTenantZone(name)) return nothing
  const [, host, namespace, kind] = inNamespace.exec(name) ?? []
  if (host !== undefined && namespace !== undefined && kind !== undefined)
    return `${host}.${downstreamNamespace(clusterId, namespace)}.${kind}.cluster.local`
  const isSearched = name.split('.').length <= 2 || /\.(svc|pod)$/i.test(name)
  return isSearched && !name.endsWith('.') ? `${name}.` : name
}
