// The facts of a request, as parsed from its method and URL.
import type { ClusterName } from '#apimachinery/meta/index.ts'

/** How a request reached us, which decides the credentials that count. */
export type EntryPoint =
  /** `/clusters/NAME/...` on our TLS listener. */
  | 'direct'
  /** Through the host's kube-aggregator: `/apis/virtual.kcp.dev/v1alpha1/logicalclusters/NAME/proxy/...`. */
  | 'aggregated'
  /** No prefix: `/api/...` from a pod in a member; the token's audience names the logical cluster. */
  | 'unprefixed'
  /** From within the process, never from a socket. */
  | 'loopback'

/**
 * The logical clusters of a request: one, all of them (`*`), or none (health of the process, discovery of the
 * aggregated group).
 */
export type ClusterScope =
  { readonly kind: 'one'; readonly name: ClusterName } | { readonly kind: 'all' } | { readonly kind: 'none' }

export interface ResourceTarget {
  readonly kind: 'resource'
  readonly group: string
  readonly version: string
  readonly resource: string
  /** The namespace; empty for cluster-scoped resources and for all namespaces. */
  readonly namespace: string
  /** The name of the object; empty for collections. */
  readonly name: string
  readonly subresource: string
  /** The path after the subresource (for proxies), without leading slash. */
  readonly rest: string
}

export interface PathTarget {
  readonly kind: 'path'
  /** `/version`, `/api`, `/apis/apps`, `/openapi/v3/...` */
  readonly path: string
}

/** The view of an APIExport: `/services/apiexport/CLUSTER/EXPORT/clusters/...`. */
export interface ExportPath {
  /** The logical cluster of the export. */
  readonly provider: ClusterName
  readonly exportName: string
}

export interface RequestInfo {
  readonly entryPoint: EntryPoint
  readonly cluster: ClusterScope
  /** The export through whose view the logical clusters are seen; absent: directly. */
  readonly through?: ExportPath
  /** The member of `/services/members/NAME/...`, whose own API the rest of the path is for; absent: the API is ours. */
  readonly member?: string
  /**
   * The verb for authorization: get, list, watch, create, update, patch, delete or deletecollection for resources; the
   * lower-case method for paths.
   */
  readonly verb: string
  readonly method: string
  readonly target: ResourceTarget | PathTarget
  readonly query: URLSearchParams
  /** The path before the logical cluster's own path, for URLs in our responses. */
  readonly basePath: string
}
