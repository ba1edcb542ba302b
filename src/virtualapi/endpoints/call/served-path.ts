// The paths of a resource, and the methods that each path takes. They are checked after authorization and before
// anything is read.
import { methodNotServed, pageNotFound, pathNotFound } from '#apimachinery/status/index.ts'
import { isBuiltInGroup } from '#virtualapi/kinds/resources/builtin-resources.ts'
import type { ResourceInfo } from '#virtualapi/kinds/resources/resource-info.ts'
import type { RequestInfo, ResourceTarget } from '#virtualapi/request/request-info.ts'

type VerbOfMethod = Readonly<Record<string, string>>

const collection: VerbOfMethod = { GET: 'list', POST: 'create', DELETE: 'deletecollection' }
/** A namespaced resource over all namespaces can only be listed. */
const allNamespaces: VerbOfMethod = { GET: 'list' }
const object: VerbOfMethod = { GET: 'get', PUT: 'update', PATCH: 'patch', DELETE: 'delete' }
const subresource: VerbOfMethod = { ...object, POST: 'create' }
/** A proxy passes every method on. */
const proxied: VerbOfMethod = { ...subresource, HEAD: 'get', OPTIONS: 'get' }

/**
 * The 404 of kube-apiserver for a resource that is not served: a Status if its group is built in, else the text "404
 * page not found".
 */
export function groupNotServed(group: string): Error {
  return isBuiltInGroup(group) ? pathNotFound() : pageNotFound()
}

/** Throws 404 if the resource has no such path, 405 if the path does not take the method. */
export function requirePath(info: ResourceInfo, request: ResourceTarget, { method, verb }: RequestInfo): void {
  const { namespace, name } = request
  if (!info.builtIn) {
    const reachable = info.namespaced ? namespace !== '' || verb === 'list' || verb === 'watch' : namespace === ''
    if (!reachable) throw pageNotFound()
    return
  }
  if ((!info.namespaced && namespace !== '') || name.includes('/')) throw pathNotFound()
  const isAllNamespaces = info.namespaced && namespace === ''
  if (isAllNamespaces && name !== '') throw pathNotFound()
  const table =
    name === ''
      ? isAllNamespaces
        ? allNamespaces
        : collection
      : request.subresource === ''
        ? object
        : request.subresource === 'proxy'
          ? proxied
          : subresource
  const verbs =
    request.subresource === ''
      ? info.verbs
      : (info.subresources.find((row) => row.name === request.subresource)?.verbs ?? [])
  const wanted = verb === 'watch' && method !== 'GET' ? undefined : table[method]
  if (wanted !== undefined && verbs.includes(wanted)) return
  throw Object.values(table).some((other) => verbs.includes(other)) ? methodNotServed() : pathNotFound()
}
