// Group, version and kind (type) or resource (plural path word), and how they are printed.

export interface GroupVersion {
  readonly group: string
  readonly version: string
}
export interface GroupVersionResource extends GroupVersion {
  readonly resource: string
}
export interface GroupVersionKind extends GroupVersion {
  readonly kind: string
}
export interface GroupResource {
  readonly group: string
  readonly resource: string
}

/** `v1` for the core group, `group/version` otherwise: the text of an object's apiVersion. */
export function apiVersionOf({ group, version }: GroupVersion): string {
  return group === '' ? version : `${group}/${version}`
}

/** Splits an object's apiVersion. `v1` is the core group, whose name is empty. */
export function parseApiVersion(apiVersion: string): GroupVersion {
  const slash = apiVersion.indexOf('/')
  return slash < 0
    ? { group: '', version: apiVersion }
    : { group: apiVersion.slice(0, slash), version: apiVersion.slice(slash + 1) }
}

/** `deployments.apps`, `pods`: how Kubernetes prints a group resource in messages. */
export function groupResourceText({ group, resource }: GroupResource): string {
  return group === '' ? resource : `${resource}.${group}`
}

/** The URL path below which a resource is served: `/api/v1` or `/apis/GROUP/VERSION`. */
export function groupVersionPath({ group, version }: GroupVersion): string {
  return group === '' ? `/api/${version}` : `/apis/${group}/${version}`
}

/** The URL path of a resource: of one namespace or of all, of one object or of the collection. */
export function resourcePath(
  gvr: GroupVersionResource,
  { namespace, name, subresource }: { namespace?: string; name?: string; subresource?: string } = {},
): string {
  let path = groupVersionPath(gvr)
  if (namespace !== undefined && namespace !== '') path += `/namespaces/${encodeURIComponent(namespace)}`
  path += `/${gvr.resource}`
  if (name !== undefined) path += `/${encodeURIComponent(name)}`
  if (subresource !== undefined) path += `/${subresource}`
  return path
}
