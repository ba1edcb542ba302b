// Parses method and raw URL to a RequestInfo, without looking anything up: only after authorization does a client learn
// whether a thing exists. The raw path is split by hand: a URL parser would resolve the dots in
// `/logicalclusters/alice/proxy/../../bob`.
import { badRequest, pageNotFound, pathNotFound } from '#apimachinery/status/index.ts'
import { accessGroup, accessSubresource, accessVersion } from '#crds/index.ts'
import { tryClusterName, type ClusterName } from '#apimachinery/meta/index.ts'
import type { ExportPath, ClusterScope, RequestInfo, ResourceTarget, EntryPoint } from './request-info.ts'

/** Group of the APIService through which the host's aggregator reaches us. */
export const virtualGroup = accessGroup
export const virtualVersion = accessVersion
const maxUrlLength = 64 * 1024

export interface ParseOptions {
  /**
   * True if the request has a bearer token: a path without a prefix is then a pod's request to its own logical cluster.
   */
  readonly hasBearerToken: boolean
  /**
   * Whether that token names one of our logical clusters: /metrics without a prefix is then that of the logical
   * cluster. Default: no.
   */
  readonly hasOwnToken?: () => boolean
  /** True if the request comes from within the process. */
  readonly loopback?: boolean
  /** The cluster of paths without a prefix, where this server has a single cluster. */
  readonly plainCluster?: ClusterName | undefined
}

/**
 * Parses a request line. Throws 400 for dot segments in any encoding and for invalid percent-encoding, 404 for empty
 * segments and for an invalid name of a logical cluster.
 */
export function parseRequest(
  method: string,
  rawUrl: string,
  { hasBearerToken, hasOwnToken = () => false, loopback = false, plainCluster }: ParseOptions,
): RequestInfo {
  if (rawUrl.length > maxUrlLength) throw badRequest(`the request line is longer than ${maxUrlLength} bytes`)
  // Clients of proxies send absolute URLs, which every server must accept (RFC 9112, section 3.2.2).
  const url = rawUrl.startsWith('/') ? rawUrl : rawUrl.replace(/^https?:\/\/[^/?]*/i, '')
  const queryStart = url.indexOf('?')
  const rawPath = queryStart < 0 ? url : url.slice(0, queryStart)
  // The query keeps its `?`, because URLSearchParams drops the first one: in `??a=b` the second belongs to the name.
  const query = new URLSearchParams(queryStart < 0 ? '' : url.slice(queryStart))
  const { entryPoint, cluster, rest, basePath, through, member } = splitPrefix(rawPath, {
    hasBearerToken,
    hasOwnToken,
    plainCluster,
  })
  const segments = splitSegments(rest)
  const withoutWatch = withoutWatchPrefix(segments)
  const target = resourceTarget(withoutWatch ?? segments) ?? { kind: 'path', path: `/${segments.join('/')}` }
  return {
    entryPoint: loopback ? 'loopback' : entryPoint,
    cluster,
    ...(through && { through }),
    ...(member !== undefined && { member }),
    method,
    verb: target.kind === 'path' ? method.toLowerCase() : withoutWatch ? 'watch' : verbOf(method, target, query),
    target,
    query,
    basePath,
  }
}

interface PrefixSplit {
  entryPoint: EntryPoint
  cluster: ClusterScope
  /** The path inside the logical cluster; begins with a slash. */
  rest: string
  basePath: string
  through?: ExportPath
  member?: string
}

const viewPrefix = '/services/apiexport/'
/** The prefix of the paths of members. */
export const memberPrefix = '/services/members/'
const aggregatedPrefix = `/apis/${virtualGroup}/${virtualVersion}/logicalclusters/`
/** Where the host's users ask for tokens; every other path below a logical cluster is that of its proxy. */
const accessPath = new RegExp(`^${aggregatedPrefix.replaceAll('.', '[.]')}[a-z0-9-]+/${accessSubresource}$`)

function splitPrefix(
  path: string,
  {
    hasBearerToken,
    hasOwnToken,
    plainCluster,
  }: Pick<Required<ParseOptions>, 'hasBearerToken' | 'hasOwnToken' | 'plainCluster'>,
): PrefixSplit {
  if (path.startsWith('/clusters/')) {
    const { name, rest } = takeName(path, '/clusters/'.length)
    if (name === '*') return { entryPoint: 'direct', cluster: { kind: 'all' }, rest, basePath: '/clusters/*' }
    return { entryPoint: 'direct', cluster: oneCluster(name), rest, basePath: `/clusters/${name}` }
  }
  if (path.startsWith(viewPrefix)) return splitViewPrefix(path)
  if (path.startsWith(memberPrefix)) return splitMemberPrefix(path)
  if (path.startsWith(aggregatedPrefix) && !accessPath.test(path)) {
    const { name, rest } = takeName(path, aggregatedPrefix.length)
    if (rest !== '/proxy' && !rest.startsWith('/proxy/')) throw pathNotFound()
    const inner = rest.slice('/proxy'.length)
    return {
      entryPoint: 'aggregated',
      cluster: oneCluster(name),
      rest: inner === '' ? '/' : inner,
      basePath: `${aggregatedPrefix}${name}/proxy`,
    }
  }
  if (plainCluster !== undefined)
    return { entryPoint: 'direct', cluster: { kind: 'one', name: plainCluster }, rest: path, basePath: '' }
  const ours = path === `/apis/${virtualGroup}` || path.startsWith(`/apis/${virtualGroup}/`)
  const forPods =
    hasBearerToken &&
    !ours &&
    (/^\/(api|apis|openapi)(\/|$)/.test(path) || (/^\/metrics(\/|$)/.test(path) && hasOwnToken()))
  return { entryPoint: forPods ? 'unprefixed' : 'direct', cluster: { kind: 'none' }, rest: path, basePath: '' }
}

/** `/services/apiexport/CLUSTER/EXPORT/clusters/NAME/...`; clients send `*` for all consumers, some as `%2A`. */
function splitViewPrefix(path: string): PrefixSplit {
  const { name: providerName, rest: afterProvider } = takeName(path, viewPrefix.length)
  const { name: exportName, rest: afterExport } = takeName(afterProvider, 1)
  const provider = tryClusterName(providerName)
  if (provider === undefined || !isExportName(exportName) || !afterExport.startsWith('/clusters/')) throw pathNotFound()
  const { name, rest } = takeName(afterExport, '/clusters/'.length)
  const isAll = name === '*' || name.toUpperCase() === '%2A'
  return {
    entryPoint: 'direct',
    cluster: isAll ? { kind: 'all' } : oneCluster(name),
    rest,
    basePath: `${viewPrefix}${providerName}/${exportName}/clusters/${isAll ? '*' : name}`,
    through: { provider, exportName },
  }
}

/** `/services/members/NAME/...`. The name is not decoded: there is one spelling of it. */
function splitMemberPrefix(path: string): PrefixSplit {
  const { name, rest } = takeName(path, memberPrefix.length)
  if (isDots(name)) throw badRequest(dotsMessage)
  if (!/^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/.test(name)) throw pathNotFound()
  return { entryPoint: 'direct', cluster: { kind: 'none' }, rest, basePath: `${memberPrefix}${name}`, member: name }
}

function isExportName(name: string): boolean {
  return /^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/.test(name) && name.length <= 253
}

function takeName(path: string, from: number): { name: string; rest: string } {
  const slash = path.indexOf('/', from)
  const name = slash < 0 ? path.slice(from) : path.slice(from, slash)
  // Clients in Go write `*` as `%2A`.
  return { name: name === '%2A' ? '*' : name, rest: slash < 0 ? '/' : path.slice(slash) }
}

function oneCluster(name: string): ClusterScope {
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
    // The decoded name may contain a path whose dots the check above did not see.
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

/** Drops `watch` from the deprecated `/api/v1/watch/RESOURCE...` and `/apis/GROUP/VERSION/watch/RESOURCE...`. */
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
      // The path of a single object cannot be watched: kube-apiserver answers with the object.
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

/** Parses a boolean of a query as Go does: true if present and not `0` or `false`. */
export function isTrue(value: string | null): boolean {
  return value !== null && value !== '0' && value.toLowerCase() !== 'false'
}
