// What a request asks for, understood from its text alone.
import type { ClusterName } from '../../apimachinery/meta/index.ts'

/** By which door a request came: it decides which proofs of identity count. */
export type Way =
  /** `/clusters/NAME/...` on our TLS listener. */
  | 'direct'
  /** Through the host's kube-aggregator: `/apis/virtual.kcp.dev/v1alpha1/logicalclusters/NAME/proxy/...`. */
  | 'aggregated'
  /** No prefix: `/api/...` from a pod in a member; the token's audience names the logical cluster. */
  | 'pathless'
  /** From within the process; never from a socket. */
  | 'loopback'

/** Which logical cluster: one, all of them (`*`), or none (health of the process, discovery of the aggregated group). */
export type ClusterScope =
  { readonly kind: 'one'; readonly name: ClusterName } | { readonly kind: 'all' } | { readonly kind: 'none' }

export interface ResourceTarget {
  readonly kind: 'resource'
  readonly group: string
  readonly version: string
  readonly resource: string
  /** Empty: cluster-scoped, or all namespaces. */
  readonly namespace: string
  /** Empty for collections. */
  readonly name: string
  readonly subresource: string
  /** What follows the subresource: the path given to a proxy. Without leading slash. */
  readonly rest: string
}

export interface PathTarget {
  readonly kind: 'path'
  /** `/version`, `/api`, `/apis/apps`, `/openapi/v3/...` */
  readonly path: string
}

export interface RequestInfo {
  readonly way: Way
  readonly cluster: ClusterScope
  /** As authorization sees it: get, list, watch, create, update, patch, delete, deletecollection for resources; the lower-case method for paths. */
  readonly verb: string
  readonly method: string
  readonly target: ResourceTarget | PathTarget
  readonly query: URLSearchParams
  /** What came before the logical cluster's own path: to be put before URLs we hand out. */
  readonly basePath: string
}
