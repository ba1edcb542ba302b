// The route of the page, from the fragment of its URL. The server has one page only.
import { signal } from '@preact/signals'
import { parseResource, type ObjectRef, type ResourceRef } from '#console/kube/paths.ts'

export type ObjectTab = 'overview' | 'yaml' | 'events' | 'owners' | 'where' | 'logs' | 'terminal' | 'explain'

export type Route =
  | { readonly page: 'clusters' }
  | { readonly page: 'table'; readonly cluster: string; readonly resource: ResourceRef }
  | { readonly page: 'object'; readonly object: ObjectRef; readonly tab: ObjectTab }
  | { readonly page: 'members'; readonly member?: string }
  | { readonly page: 'adoptions'; readonly adoption?: string }
  | { readonly page: 'moves' }
  | { readonly page: 'volumes'; readonly move?: string }
  | { readonly page: 'usage'; readonly cluster?: string }
  | { readonly page: 'audit'; readonly cluster?: string }
  | { readonly page: 'sleep' }
  | { readonly page: 'snapshots' }
  | { readonly page: 'explain'; readonly cluster?: string }

const tabs: readonly string[] = ['overview', 'yaml', 'events', 'owners', 'where', 'logs', 'terminal', 'explain']

/** The route of a fragment such as `#/t/acme/apps/v1/deployments`; the first page for everything else. */
export function parseRoute(fragment: string): Route {
  const [path = ''] = fragment.replace(/^#/, '').split('?')
  const [, page, ...rest] = path.split('/').map(decoded)
  if (page === 't') return tableRoute(rest)
  if (page === 'o') return objectRoute(rest)
  if (page === 'members') return rest[0] === undefined || rest[0] === '' ? { page } : { page, member: rest[0] }
  if (page === 'adoptions') return rest[0] === undefined || rest[0] === '' ? { page } : { page, adoption: rest[0] }
  if (page === 'moves' || page === 'sleep' || page === 'snapshots') return { page }
  if (page === 'volumes') return rest[0] === undefined || rest[0] === '' ? { page } : { page, move: rest[0] }
  if (page === 'explain' || page === 'usage' || page === 'audit') return clusterRoute(page, rest[0])
  return { page: 'clusters' }
}

function clusterRoute(page: 'explain' | 'usage' | 'audit', cluster = ''): Route {
  return isClusterName(cluster) && cluster !== '*' ? { page, cluster } : { page }
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    return ''
  }
}

function tableRoute([cluster = '', ...parts]: readonly string[]): Route {
  const resource = parseResource(...parts)
  return resource === undefined || !isClusterName(cluster) ? { page: 'clusters' } : { page: 'table', cluster, resource }
}

function objectRoute([
  cluster = '',
  group,
  version,
  plural,
  namespace = '-',
  name = '',
  tab = '',
]: readonly string[]): Route {
  const resource = parseResource(group, version, plural)
  const isValid = isClusterName(cluster) && cluster !== '*' && isPathPart(name) && /^[a-z0-9-]+$/.test(namespace)
  if (resource === undefined || !isValid) return { page: 'clusters' }
  const object = { ...resource, cluster, namespace: namespace === '-' ? '' : namespace, name }
  return { page: 'object', object, tab: tabs.includes(tab) ? (tab as ObjectTab) : 'overview' }
}

function isClusterName(text: string): boolean {
  return text === '*' || /^[a-z0-9]([a-z0-9-]*[a-z0-9])?$/.test(text)
}

/** Names of some kinds have colons, such as of ClusterRoles; none has a slash or is `..`. */
function isPathPart(text: string): boolean {
  return text !== '' && text !== '.' && text !== '..' && !/[/%]/.test(text)
}

/** The fragment of a route, with `#`. */
export function fragmentOf(route: Route): string {
  const parts = partsOf(route).map(encodeURIComponent)
  return `#/${parts.join('/')}`
}

function partsOf(route: Route): string[] {
  switch (route.page) {
    case 'table':
      return ['t', route.cluster, ...resourceParts(route.resource)]
    case 'object': {
      const { object, tab } = route
      const parts = ['o', object.cluster, ...resourceParts(object), object.namespace || '-', object.name]
      return tab === 'overview' ? parts : [...parts, tab]
    }
    case 'members':
      return route.member === undefined ? ['members'] : ['members', route.member]
    case 'adoptions':
      return route.adoption === undefined ? ['adoptions'] : ['adoptions', route.adoption]
    case 'volumes':
      return route.move === undefined ? ['volumes'] : ['volumes', route.move]
    case 'explain':
    case 'usage':
    case 'audit':
      return route.cluster === undefined ? [route.page] : [route.page, route.cluster]
    default:
      return [route.page]
  }
}

function resourceParts({ group, version, resource }: ResourceRef): string[] {
  return [group === '' ? 'core' : group, version, resource]
}

export const route = signal<Route>({ page: 'clusters' })

/** Follows the URL of the window. */
export function startRouter(): void {
  const update = (): void => {
    route.value = parseRoute(location.hash)
  }
  addEventListener('hashchange', update)
  update()
}

export function go(to: Route): void {
  location.hash = fragmentOf(to)
}
