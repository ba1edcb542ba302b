// Discovery and OpenAPI of a logical cluster whose APIServices lead to other servers: our own documents merged with the
// documents of those servers.
import { surveyJson } from '#apimachinery/json/index.ts'
import { apiVersionOf, encodeJson, isJsonObject, type JsonObject, type JsonValue } from '#apimachinery/meta/index.ts'
import type { ClusterObjects } from '#store/watch-cache/index.ts'
import {
  apiServices,
  remoteApiServices,
  type RemoteApiService,
} from '#virtualapi/outbound/aggregation/remote-api-service.ts'
import type { Digest, WantedDocument } from '#virtualapi/outbound/aggregation/remote-documents.ts'
import { jsonDocument } from '#virtualapi/codec/responses.ts'
import {
  aggregatedDiscovery,
  aggregatedFormat,
  apiGroupList,
  contentHash,
  discoveryDocument,
  mergeGroups,
  type ApiGroup,
  type GroupOf,
  type Priorities,
} from '#virtualapi/discovery/index.ts'
import { remoteSwagger, type SwaggerSource, type SwaggerSources } from '#virtualapi/discovery/openapi-v2/index.ts'
import type { ApiResponse, Exchange } from '#virtualapi/request/exchange.ts'
import type { ResourceInfo } from '#virtualapi/kinds/resources/resource-info.ts'
import { aggregatedTo, keepAvailability, passOn } from '#virtualapi/endpoints/forwarded/aggregated.ts'
import { aggregatedResponse, conditional, plain } from './document-responses.ts'
import { openApiV2 } from './openapi-v2.ts'
import type { EndpointDependencies } from '#virtualapi/endpoints/call/dependencies.ts'
import { metricsResources } from '#virtualapi/endpoints/views/pod-metrics.ts'

interface Discovering {
  readonly exchange: Exchange
  readonly dependencies: EndpointDependencies
  readonly objects: ClusterObjects
  /** The APIServices whose group versions other servers serve. */
  readonly remote: readonly RemoteApiService[]
}

const aggregatedV2 = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList'
/**
 * Bounds on the resources of one group version: rows, bytes and JSON values. Real servers have at most some hundred
 * rows, subresources included, and 50 KiB.
 */
const [mostRows, mostBytesOfVersion, mostValuesOfVersion] = [2000, 256 * 1024, 20_000]
/** Bounds on the documents of all other servers together in one response, bytes: for discovery and for OpenAPI v2. */
const [mostDiscoveryBytes, mostSwaggerBytes] = [2 * 1024 * 1024, 8 * 1024 * 1024]
const maxUrlLength = 2048
/** The priorities of CustomResourceDefinitions, whose APIServices may not exist yet (crdregistration_controller.go). */
const customPriorities: Priorities = { groupPriority: 1000, versionPriority: 100 }

/**
 * The document at a path; undefined if no other server contributes to it. `localIndex`: the paths of our own
 * /openapi/v3; `localV2`: the sources of our own /openapi/v2 besides the built-in kinds.
 */
export async function remoteDocument(
  exchange: Exchange,
  dependencies: EndpointDependencies,
  {
    objects,
    path,
    localIndex,
    localV2,
  }: { objects: ClusterObjects; path: string; localIndex: () => JsonObject; localV2: () => SwaggerSources },
): Promise<ApiResponse | undefined> {
  const all = remoteApiServices(objects)
  if (all.size === 0) return undefined
  const remote = [...all.values()].filter((one) => aggregatedTo(dependencies, objects, one) !== undefined)
  if (remote.length === 0) return undefined
  const discovering = { exchange, dependencies, objects, remote }
  const served = remote.find((one) => path === pathOf(one) || path === `/openapi/v3${pathOf(one)}`)
  if (served !== undefined) return passOn(exchange, dependencies, served)
  if (path === '/apis') {
    keepAvailability(exchange, dependencies)
    const format = aggregatedFormat(exchange.header('accept'))
    return format === undefined ? legacyList(discovering) : aggregatedList(discovering, format)
  }
  if (path === '/openapi/v3') return openApiIndex(discovering, localIndex())
  if (path === '/openapi/v2') return openApiV2(exchange, await swaggerSources(discovering, localV2()))
  const [, root, group, ...more] = path.split('/')
  return root === 'apis' && more.length === 0 && remote.some((one) => one.group === group)
    ? legacyGroup(discovering, group ?? '')
    : undefined
}

function localResources({ exchange, dependencies, objects }: Discovering): readonly ResourceInfo[] {
  return [...dependencies.catalog.all(objects), ...metricsResources(exchange, dependencies, objects)]
}

function pathOf(gv: { group: string; version: string }): string {
  return `/apis/${apiVersionOf(gv)}`
}

function legacyGroups(discovering: Discovering): ApiGroup[] {
  const { objects, remote } = discovering
  const { groups } = apiGroupList(localResources(discovering)) as { groups: readonly ApiGroup[] }
  const others = remote.map((one) => ({
    group: one.group,
    value: { groupVersion: apiVersionOf(one), version: one.version },
  }))
  return mergeGroups(groups, others, prioritiesIn(objects)).flatMap(({ name, versions }) => {
    const [preferredVersion] = versions
    return preferredVersion === undefined ? [] : [{ name, versions: [...versions], preferredVersion }]
  })
}

function legacyList(discovering: Discovering): ApiResponse {
  return plain(discoveryDocument({ kind: 'APIGroupList', apiVersion: 'v1', groups: legacyGroups(discovering) }))
}

function legacyGroup(discovering: Discovering, group: string): ApiResponse {
  const found = legacyGroups(discovering).find(({ name }) => name === group)
  return jsonDocument({ kind: 'APIGroup', apiVersion: 'v1', ...found })
}

interface VersionDiscovery {
  readonly version: string
  readonly resources?: JsonValue
  readonly freshness: string
}

async function aggregatedList(discovering: Discovering, format: 'json' | 'protobuf'): Promise<ApiResponse> {
  const { exchange, objects, remote } = discovering
  const local = aggregatedDiscovery(localResources(discovering), 'groups') as {
    readonly items: readonly { readonly metadata: { name: string }; readonly versions: readonly VersionDiscovery[] }[]
  }
  const groups: GroupOf<VersionDiscovery>[] = local.items.map(({ metadata, versions }) => ({
    name: metadata.name,
    versions,
  }))
  const found = await exchange.whileWaiting(versionResources(discovering))
  const others = remote.map((one, i) => ({ group: one.group, value: versionDiscovery(one.version, found[i]) }))
  const merged = mergeGroups(groups, others, prioritiesIn(objects))
  const items = merged.map(({ name, versions }) => ({ metadata: { name }, versions }))
  await exchange.turn()
  return aggregatedResponse(exchange, discoveryDocument({ ...local, items }), format)
}

/**
 * The discovery of a version with the server's resources; `Stale` and without resources if the server does not answer.
 */
function versionDiscovery(version: string, resources: readonly JsonObject[] | undefined): VersionDiscovery {
  return resources === undefined
    ? { version, freshness: 'Stale' }
    : { version, resources: [...resources], freshness: 'Current' }
}

/**
 * The resources of each server; undefined for a server that does not answer, and for resources that do not fit into one
 * document with the others.
 */
async function versionResources(discovering: Discovering): Promise<(readonly JsonObject[] | undefined)[]> {
  const { exchange, dependencies, objects, remote } = discovering
  const { documents } = dependencies.aggregation
  const aggregated = await documents.getAll(objects.cluster, remote, aggregatedResources, exchange.signal)
  const others = remote.filter((_, i) => aggregated[i] === undefined)
  const legacy = await documents.getAll(objects.cluster, others, legacyResources, exchange.signal)
  const rest = legacy.values()
  const found = aggregated.map((digest) => digest ?? rest.next().value)
  return withinBytes(found, mostDiscoveryBytes)
}

/** The values, in their order; undefined for a value that would make the sum of their bytes larger than `most`. */
function withinBytes<T>(digests: readonly (Digest<T> | undefined)[], most: number): (T | undefined)[] {
  let left = most
  return digests.map((digest) => {
    if (digest === undefined || digest.bytes > left) return undefined
    left -= digest.bytes
    return digest.value
  })
}

const aggregatedResources = ({ group, version }: RemoteApiService): WantedDocument<readonly JsonObject[]> => ({
  name: 'aggregated',
  path: '/apis',
  accept: aggregatedV2,
  digest(list) {
    const groups = list['kind'] === 'APIGroupDiscoveryList' ? objectsOf(list['items']) : []
    const found = groups.find(({ metadata }) => isJsonObject(metadata) && metadata['name'] === group)
    const row = objectsOf(found?.['versions']).find((one) => one['version'] === version)
    return row === undefined ? undefined : resourcesDigest(objectsOf(row['resources']))
  },
})

const legacyResources = (one: RemoteApiService): WantedDocument<readonly JsonObject[]> => ({
  name: 'legacy',
  path: pathOf(one),
  accept: 'application/json',
  digest(list) {
    const rows = list['kind'] === 'APIResourceList' ? objectsOf(list['resources']) : undefined
    return rows === undefined || rows.length > mostRows ? undefined : resourcesDigest(fromLegacy(rows))
  },
})

/** The resources with their size as JSON; undefined if they exceed the bounds. */
function resourcesDigest(resources: readonly JsonObject[]): Digest<readonly JsonObject[]> | undefined {
  if (resources.length > mostRows) return undefined
  const json = Buffer.from(encodeJson(resources))
  const { values } = surveyJson(json)
  return json.length > mostBytesOfVersion || values > mostValuesOfVersion
    ? undefined
    : { value: resources, bytes: json.length }
}

/** The rows of an APIResourceList in the form of aggregated discovery. */
function fromLegacy(rows: readonly JsonObject[]): JsonObject[] {
  const kindOf = ({ group = '', version = '', kind = '' }: JsonObject): JsonObject => ({ group, version, kind })
  const nameOf = ({ name }: JsonObject): string => (typeof name === 'string' ? name : '')
  const below = Map.groupBy(
    rows.filter((row) => nameOf(row).includes('/')),
    (row) => nameOf(row).slice(0, nameOf(row).indexOf('/')),
  )
  return rows.flatMap((row) => {
    const { singularName = '', namespaced, verbs = [], shortNames, categories } = row
    const name = nameOf(row)
    if (typeof row['name'] !== 'string' || name.includes('/')) return []
    const subresources = (below.get(name) ?? []).map((other) => ({
      subresource: nameOf(other).slice(name.length + 1),
      responseKind: kindOf(other),
      verbs: other['verbs'] ?? [],
    }))
    // Only the first row of a name gets the subresources, however many rows have this name.
    below.delete(name)
    return [
      {
        resource: name,
        responseKind: kindOf(row),
        scope: namespaced === true ? 'Namespaced' : 'Cluster',
        singularResource: singularName,
        verbs,
        ...(shortNames === undefined ? {} : { shortNames }),
        ...(categories === undefined ? {} : { categories }),
        ...(subresources.length === 0 ? {} : { subresources }),
      },
    ]
  })
}

/** Our own index, with the group versions for which the other servers have a document. */
async function openApiIndex(
  { exchange, dependencies, objects, remote }: Discovering,
  local: JsonObject,
): Promise<ApiResponse> {
  const { documents } = dependencies.aggregation
  const found = await exchange.whileWaiting(documents.getAll(objects.cluster, remote, openApiHash, exchange.signal))
  const rows = remote.flatMap((one, i): [string, JsonValue][] => {
    const hash = found[i]?.value
    if (hash === undefined) return []
    const key = pathOf(one).slice(1)
    const query = hash === '' ? '' : `?hash=${encodeURIComponent(hash)}`
    return [[key, { serverRelativeURL: `${exchange.info.basePath}/openapi/v3/${key}${query}` }]]
  })
  const paths = Object.entries({ ...local, ...Object.fromEntries(rows) }).sort(([a], [b]) => (a < b ? -1 : 1))
  return conditional(exchange, discoveryDocument({ paths: Object.fromEntries(paths) }), 'application/json')
}

/** The hash of the document of a group version; empty if the server gives none. */
const openApiHash = (one: RemoteApiService): WantedDocument<string> => ({
  name: 'openapi-v3',
  path: '/openapi/v3',
  accept: 'application/json',
  digest({ paths }) {
    const row = isJsonObject(paths) ? paths[pathOf(one).slice(1)] : undefined
    const url = isJsonObject(row) ? row['serverRelativeURL'] : undefined
    if (typeof url !== 'string' || url.length > maxUrlLength) return undefined
    const value = new URLSearchParams(url.split('?')[1] ?? '').get('hash') ?? ''
    return { value, bytes: value.length }
  },
})

/**
 * Our own sources, and the sources of the other servers' group versions; a source is left out if its server has no
 * document or the document does not fit with the others.
 */
async function swaggerSources(
  { exchange, dependencies, objects, remote }: Discovering,
  local: SwaggerSources,
): Promise<SwaggerSources> {
  const { documents } = dependencies.aggregation
  const found = await exchange.whileWaiting(documents.getAll(objects.cluster, remote, swaggerOf, exchange.signal))
  const sources = withinBytes(found, mostSwaggerBytes).filter((source) => source !== undefined)
  if (sources.length === 0) return local
  const content = contentHash([local.content, ...sources.map((source) => source.content).sort()].join(','))
  return { content, sources: [...local.sources, ...sources] }
}

/** The OpenAPI v2 document of a server, which is fetched anew for each group version. */
const swaggerOf = (one: RemoteApiService): WantedDocument<SwaggerSource> => ({
  name: 'openapi-v2',
  path: '/openapi/v2',
  accept: 'application/json',
  async digest(document, turn) {
    const source = await remoteSwagger(one, document, turn)
    return source && { value: source, bytes: source.bytes }
  },
})

function objectsOf(value: JsonValue | undefined): JsonObject[] {
  return Array.isArray(value) ? value.filter(isJsonObject) : []
}

function prioritiesIn(objects: ClusterObjects): (group: string, version: string) => Priorities {
  const known = new Map(apiServices(objects).map((one) => [one.name, one]))
  return (group, version) => known.get(`${version}.${group}`) ?? customPriorities
}
