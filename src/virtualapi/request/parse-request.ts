// Method and raw URL -> RequestInfo. From the text alone: whether anything exists is told later, to those who may know.
// The raw path is split by hand: a URL parser resolves dots, and `/logicalclusters/alice/proxy/../../bob` must not.
import { badRequest, pageNotFound, pathNotFound } from '../../apimachinery/status/index.ts'
import { tryClusterName } from '../../apimachinery/meta/index.ts'
import type { ClusterScope, RequestInfo, ResourceTarget, Way } from './request-info.ts'

/** Group of the APIService through which the host's aggregator reaches us. */
export const virtualGroup = 'virtual.kcp.dev'
export const virtualVersion = 'v1alpha1'
const maxUrlLength = 64 * 1024

export interface ParseOptions {
  /** A bearer token came along: what has no prefix is a pod asking for its own logical cluster. */
  readonly hasBearerToken: boolean
  /** The request never touched a socket. */
  readonly loopback?: boolean
}

/**
 * Understands a request line. Rejects 400 for dot segments in any spelling and for broken encoding, 404 for empty or
 * encoded segments where a logical cluster's name belongs.
 */
export function parseRequest(
  method: string,
  rawUrl: string,
  { hasBearerToken, loopback = false }: ParseOptions,
): RequestInfo {
  if (rawUrl.length > maxUrlLength) throw badRequest(`the request line is longer than ${maxUrlLength} bytes`)
  // Clients of proxies name the server as well, and every server has to take that (RFC 9112, 3.2.2).
  const url = rawUrl.startsWith('/') ? rawUrl : rawUrl.replace(/^https?:\/\/[^/?]*/i, '')
  const mark = url.indexOf('?')
  const rawPath = mark < 0 ? url : url.slice(0, mark)
  // With its question mark: of two the second belongs to a name.
  const query = new URLSearchParams(mark < 0 ? '' : url.slice(mark))
  const { way, cluster, rest, basePath } = splitDoor(rawPath, hasBearerToken)
  const segments = splitSegments(rest)
  const old = withoutWatchPrefix(segments)
  const target = resourceTarget(old ?? segments) ?? { kind: 'path', path: `/${segments.join('/')}` }
  return {
    way: loopback ? 'loopback' : way,
    cluster,
    method,
    verb: target.kind === 'path' ? method.toLowerCase() : old ? 'watch' : verbOf(method, target, query),
    target,
    query,
    basePath,
  }
}

interface Door {
  way: Way
  cluster: ClusterScope
  /** What is asked of the logical cluster; begins with a slash. */
  rest: string
  basePath: string
}

const aggregatedPrefix = `/apis/${virtualGroup}/${virtualVersion}/logicalclusters/`

function splitDoor(path: string, hasBearerToken: boolean): Door {
  if (path.startsWith('/clusters/')) {
    const { name, rest } = takeName(path, '/clusters/'.length)
    if (name === '*') return { way: 'direct', cluster: { kind: 'all' }, rest, basePath: '/clusters/*' }
    return { way: 'direct', cluster: one(name), rest, basePath: `/clusters/${name}` }
  }
  if (path.startsWith(aggregatedPrefix)) {
    const { name, rest } = takeName(path, aggregatedPrefix.length)
    if (rest !== '/proxy' && !rest.startsWith('/proxy/')) throw pathNotFound()
    const inner = rest.slice('/proxy'.length)
    return {
      way: 'aggregated',
      cluster: one(name),
      rest: inner === '' ? '/' : inner,
      basePath: `${aggregatedPrefix}${name}/proxy`,
    }
  }
  const ours = path === `/apis/${virtualGroup}` || path.startsWith(`/apis/${virtualGroup}/`)
  const forPods = /^\/(api|apis|openapi)(\/|$)/.test(path) && !ours && hasBearerToken
  return { way: forPods ? 'pathless' : 'direct', cluster: { kind: 'none' }, rest: path, basePath: '' }
}

function takeName(path: string, from: number): { name: string; rest: string } {
  const slash = path.indexOf('/', from)
  return slash < 0 ? { name: path.slice(from), rest: '/' } : { name: path.slice(from, slash), rest: path.slice(slash) }
}

function one(name: string): ClusterScope {
  if (isDots(name)) throw badRequest(dotsMessage)
  const clusterName = tryClusterName(name)
  if (clusterName === undefined) throw pathNotFound()
  return { kind: 'one', name: clusterName }
}

const dotsMessage = 'the path may not contain "." or ".." segments'

function isDots(segment: string): boolean {
  return /^(\.|%(25)*2e){1,2}$/i.test(segment)
}

function splitSegments(path: string): string[] {
  if (path === '/' || path === '') return []
  const raw = path.slice(1).split('/')
  if (raw.length > 1 && raw.at(-1) === '') raw.pop()
  return raw.map((segment) => {
    if (isDots(segment)) throw badRequest(dotsMessage)
    if (segment === '') throw raw[0] === 'api' || raw[0] === 'apis' ? pathNotFound() : pageNotFound()
    if (!segment.includes('%')) return segment
    const decoded = tryDecode(segment)
    // A name that hides a path inside: the checks above would not have seen its dots.
    if (decoded.split(/[/\\]/).some((part) => part === '.' || part === '..')) throw badRequest(dotsMessage)
    return decoded
  })
}

function tryDecode(segment: string): string {
  try {
    return decodeURIComponent(segment)
  } catch (cause) {
    throw badRequest(`the path segment "${segment.slice(0, 100)}" is not valid percent-encoding`, cause)
  }
}

/** `/api/v1/watch/RESOURCE...` and `/apis/GROUP/VERSION/watch/RESOURCE...`: how watches were asked for once. */
function withoutWatchPrefix(segments: readonly string[]): string[] | undefined {
  const at = segments[0] === 'api' ? 2 : segments[0] === 'apis' ? 3 : -1
  return at > 0 && segments[at] === 'watch' && segments.length > at + 1 ? segments.toSpliced(at, 1) : undefined
}

function resourceTarget(segments: readonly string[]): ResourceTarget | undefined {
  let group: string, version: string, parts: readonly string[]
  if (segments[0] === 'api' && segments.length > 2) [group, version, parts] = ['', segments[1] ?? '', segments.slice(2)]
  else if (segments[0] === 'apis' && segments.length > 3)
    [group, version, parts] = [segments[1] ?? '', segments[2] ?? '', segments.slice(3)]
  else return undefined
  let namespace = ''
  // `/namespaces/NAME/status` and `/finalize` are subresources of the namespace itself.
  if (
    parts[0] === 'namespaces' &&
    parts.length > 2 &&
    !(group === '' && parts.length === 3 && isNamespaceSubresource(parts[2]))
  ) {
    namespace = parts[1] ?? ''
    parts = parts.slice(2)
  }
  const [resource = '', name = '', subresource = ''] = parts
  return { kind: 'resource', group, version, resource, namespace, name, subresource, rest: parts.slice(3).join('/') }
}

function isNamespaceSubresource(segment: string | undefined): boolean {
  return segment === 'status' || segment === 'finalize'
}

function verbOf(method: string, target: ResourceTarget, query: URLSearchParams): string {
  switch (method) {
    case 'GET':
    case 'HEAD':
      // One object is not watched by its own path: a real server answers with the object.
      if (target.name !== '') return 'get'
      return isTrue(query.get('watch')) ? 'watch' : 'list'
    case 'POST':
      return 'create'
    case 'PUT':
      return 'update'
    case 'PATCH':
      return 'patch'
    case 'DELETE':
      return target.name === '' ? 'deletecollection' : 'delete'
    default:
      return method.toLowerCase()
  }
}

/** A boolean of a query, as Go reads it: present and not `0` or `false`. */
export function isTrue(value: string | null): boolean {
  return value !== null && value !== '0' && value.toLowerCase() !== 'false'
}
