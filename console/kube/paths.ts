// Paths of the Kubernetes API below the console.

/** Stands for all logical clusters that the session may see. */
export const everyCluster = '*'

export interface ResourceRef {
  /** Empty for the core group. */
  readonly group: string
  readonly version: string
  readonly resource: string
}

export interface ObjectRef extends ResourceRef {
  readonly cluster: string
  /** Empty for cluster-scoped objects. */
  readonly namespace: string
  readonly name: string
}

/** `k8s/clusters/NAME`. */
export function clusterPath(cluster: string): string {
  return `k8s/clusters/${cluster === everyCluster ? '*' : encodeURIComponent(cluster)}`
}

export function groupVersionPath(base: string, { group, version }: Pick<ResourceRef, 'group' | 'version'>): string {
  return group === '' ? `${base}/api/${version}` : `${base}/apis/${group}/${version}`
}

/** The path of a list. */
export function listPath(cluster: string, ref: ResourceRef, namespace = ''): string {
  const base = groupVersionPath(clusterPath(cluster), ref)
  return namespace === '' ? `${base}/${ref.resource}` : `${base}/namespaces/${namespace}/${ref.resource}`
}

export function objectPath(ref: ObjectRef): string {
  return `${listPath(ref.cluster, ref, ref.namespace)}/${encodeURIComponent(ref.name)}`
}

/** `apps/v1/deployments`; the core group is called `core`. */
export function resourceText({ group, version, resource }: ResourceRef): string {
  return `${group === '' ? 'core' : group}/${version}/${resource}`
}

/** The resource of the parts of resourceText; undefined if one of them is no name. */
export function parseResource(group = '', version = '', resource = ''): ResourceRef | undefined {
  const valid = [group, version, resource].every((part) => /^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$/.test(part))
  return valid ? { group: group === 'core' ? '' : group, version, resource } : undefined
}
