// Which paths a resource has, and which methods they take: told to those who may know, before anything is read.
import { methodNotServed, pageNotFound, pathNotFound } from '../../apimachinery/status/index.ts'
import { builtInResources } from '../resources/builtin-resources.ts'
import type { ResourceInfo } from '../resources/resource-info.ts'
import type { RequestInfo, ResourceTarget } from '../request/request-info.ts'

type VerbOfMethod = Readonly<Record<string, string>>

const collection: VerbOfMethod = { GET: 'list', POST: 'create', DELETE: 'deletecollection' }
/** All namespaces are listed, and nothing else is done to them. */
const everywhere: VerbOfMethod = { GET: 'list' }
const object: VerbOfMethod = { GET: 'get', PUT: 'update', PATCH: 'patch', DELETE: 'delete' }
const subresource: VerbOfMethod = { ...object, POST: 'create' }

/** 404 as a real server says it: a Status below a group that is built in, else a page that is not there. */
export function groupNotServed(group: string): Error {
  return builtInResources().some((row) => row.group === group) ? pathNotFound() : pageNotFound()
}

/** Throws 404 for what is no path of the resource, 405 for a method that the path does not take. */
export function requirePath(info: ResourceInfo, request: ResourceTarget, { method, verb }: RequestInfo): void {
  const { namespace, name } = request
  if (!info.builtIn) {
    const reachable = info.namespaced ? namespace !== '' || verb === 'list' || verb === 'watch' : namespace === ''
    if (!reachable) throw pageNotFound()
    return
  }
  if ((!info.namespaced && namespace !== '') || name.includes('/')) throw pathNotFound()
  const ofAll = info.namespaced && namespace === ''
  if (ofAll && name !== '') throw pathNotFound()
  const table = name === '' ? (ofAll ? everywhere : collection) : request.subresource === '' ? object : subresource
  const verbs =
    request.subresource === ''
      ? info.verbs
      : (info.subresources.find((row) => row.name === request.subresource)?.verbs ?? [])
  const wanted = verb === 'watch' && method !== 'GET' ? undefined : table[method]
  if (wanted !== undefined && verbs.includes(wanted)) return
  throw Object.values(table).some((other) => verbs.includes(other)) ? methodNotServed() : pathNotFound()
}
