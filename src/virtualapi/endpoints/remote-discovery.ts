// Discovery and OpenAPI of a logical cluster whose APIServices lead to other servers: our own documents merged with theirs.
import { apiVersionOf, isJsonObject, type JsonObject, type JsonValue } from '../../apimachinery/meta/index.ts'
import type { ClusterObjects } from '../../store/hub/index.ts'
import { apiServices, remoteApiServices, type RemoteApiService } from '../aggregation/remote-api-service.ts'
import { jsonDocument } from '../codec/answers.ts'
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
} from '../discovery/index.ts'
import { remoteSwagger, type SwaggerSource, type SwaggerSources } from '../discovery/openapi-v2/index.ts'
import type { Answer, Exchange } from '../exchange/exchange.ts'
import type { ResourceInfo } from '../resources/resource-info.ts'
import { aggregatedTo, keepAvailability, passOn } from './aggregated.ts'
import { aggregatedAnswer, conditional, plain } from './document-answers.ts'
import { openApiV2 } from './openapi-v2.ts'
import type { EndpointParts } from './parts.ts'
import { metricsResources } from './pod-metrics.ts'

interface Discovering {
  readonly exchange: Exchange
  readonly parts: EndpointParts
  readonly objects: ClusterObjects
  /** The APIServices whose group versions other servers serve. */
  readonly remote: readonly RemoteApiService[]
}

const aggregatedV2 = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList'
/** Of CustomResourceDefinitions, whose APIServices may not exist yet (crdregistration_controller.go). */
const customPriorities: Priorities = { groupPriority: 1000, versionPriority: 100 }

/**
 * The document at a path; undefined if no other server has a part in it. `localIndex`: the paths of our own /openapi/v3;
 * `localV2`: what our own /openapi/v2 has besides the built-in kinds.
 */
export async function remoteDocument(
  exchange: Exchange,
  parts: EndpointParts,
  {
    objects,
    path,
    localIndex,
    localV2,
  }: { objects: ClusterObjects; path: string; localIndex: () => JsonObject; localV2: () => SwaggerSources },
): Promise<Answer | undefined> {
  const all = remoteApiServices(objects)
  if (all.size === 0) return undefined
  const remote = [...all.values()].filter((one) => aggregatedTo(parts, objects, one) !== undefined)
  if (remote.length === 0) return undefined
  const discovering = { exchange, parts, objects, remote }
  const served = remote.find((one) => path === pathOf(one) || path === `/openapi/v3${pathOf(one)}`)
  if (served !== undefined) return passOn(exchange, parts, served)
  if (path === '/apis') {
    keepAvailability(exchange, parts)
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

function localResources({ exchange, parts, objects }: Discovering): readonly ResourceInfo[] {
  return [...parts.catalog.all(objects), ...metricsResources(exchange, parts, objects)]
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

function legacyList(discovering: Discovering): Answer {
  return plain(discoveryDocument({ kind: 'APIGroupList', apiVersion: 'v1', groups: legacyGroups(discovering) }))
}

function legacyGroup(discovering: Discovering, group: string): Answer {
  const found = legacyGroups(discovering).find(({ name }) => name === group)
  return jsonDocument({ kind: 'APIGroup', apiVersion: 'v1', ...found })
}

interface VersionDiscovery {
  readonly version: string
  readonly resources?: JsonValue
  readonly freshness: string
}

async function aggregatedList(discovering: Discovering, format: 'json' | 'protobuf'): Promise<Answer> {
  const { exchange, objects, remote } = discovering
  const local = aggregatedDiscovery(localResources(discovering), 'groups') as {
    readonly items: readonly { readonly metadata: { name: string }; readonly versions: readonly VersionDiscovery[] }[]
  }
  const groups: GroupOf<VersionDiscovery>[] = local.items.map(({ metadata, versions }) => ({
    name: metadata.name,
    versions,
  }))
  const others = await exchange.whileWaiting(
    Promise.all(remote.map(async (one) => ({ group: one.group, value: await versionDiscovery(discovering, one) }))),
  )
  const merged = mergeGroups(groups, others, prioritiesIn(objects))
  const items = merged.map(({ name, versions }) => ({ metadata: { name }, versions }))
  return aggregatedAnswer(exchange, discoveryDocument({ ...local, items }), format)
}

/** What the server says of this version; `Stale` and without resources where it does not answer. */
async function versionDiscovery(discovering: Discovering, one: RemoteApiService): Promise<VersionDiscovery> {
  const { version } = one
  const list = await fetched(discovering, one, '/apis', aggregatedV2)
  const groups = list['kind'] === 'APIGroupDiscoveryList' ? objectsOf(list['items']) : []
  const group = groups.find(({ metadata }) => isJsonObject(metadata) && metadata['name'] === one.group)
  const found = objectsOf(group?.['versions']).find((row) => row['version'] === version)
  if (found !== undefined) return { version, resources: found['resources'] ?? [], freshness: 'Current' }
  const legacy = await fetched(discovering, one, pathOf(one), 'application/json')
  return legacy['kind'] === 'APIResourceList'
    ? { version, resources: fromLegacy(objectsOf(legacy['resources'])), freshness: 'Current' }
    : { version, freshness: 'Stale' }
}

/** The rows of an APIResourceList as aggregated discovery has them. */
function fromLegacy(rows: readonly JsonObject[]): JsonValue[] {
  const kindOf = ({ group = '', version = '', kind = '' }: JsonObject): JsonObject => ({ group, version, kind })
  return rows.flatMap((row) => {
    const { name, singularName = '', namespaced, verbs = [], shortNames, categories } = row
    if (typeof name !== 'string' || name.includes('/')) return []
    const subresources = rows.flatMap((other) =>
      typeof other['name'] === 'string' && other['name'].startsWith(`${name}/`)
        ? [
            {
              subresource: other['name'].slice(name.length + 1),
              responseKind: kindOf(other),
              verbs: other['verbs'] ?? [],
            },
          ]
        : [],
    )
    return [
      {
        ...{ resource: name, responseKind: kindOf(row), scope: namespaced === true ? 'Namespaced' : 'Cluster' },
        ...{ singularResource: singularName, verbs },
        ...(shortNames === undefined ? {} : { shortNames }),
        ...(categories === undefined ? {} : { categories }),
        ...(subresources.length === 0 ? {} : { subresources }),
      },
    ]
  })
}

/** Our own index with the group versions of which the other servers have a document. */
async function openApiIndex(discovering: Discovering, local: JsonObject): Promise<Answer> {
  const { exchange, remote } = discovering
  const rows = await exchange.whileWaiting(
    Promise.all(
      remote.map(async (one): Promise<[string, JsonValue][]> => {
        const { paths } = await fetched(discovering, one, '/openapi/v3', 'application/json')
        const key = pathOf(one).slice(1)
        const row = isJsonObject(paths) ? paths[key] : undefined
        const url = isJsonObject(row) ? row['serverRelativeURL'] : undefined
        if (typeof url !== 'string') return []
        const hash = new URLSearchParams(url.split('?')[1] ?? '').get('hash') ?? ''
        const query = hash === '' ? '' : `?hash=${encodeURIComponent(hash)}`
        return [[key, { serverRelativeURL: `${exchange.info.basePath}/openapi/v3/${key}${query}` }]]
      }),
    ),
  )
  const paths = Object.entries({ ...local, ...Object.fromEntries(rows.flat()) }).sort(([a], [b]) => (a < b ? -1 : 1))
  return conditional(exchange, discoveryDocument({ paths: Object.fromEntries(paths) }), 'application/json')
}

/** Our own sources and the group versions of the other servers, as far as these have a document. */
async function swaggerSources(discovering: Discovering, local: SwaggerSources): Promise<SwaggerSources> {
  const { exchange, remote } = discovering
  const documents = await exchange.whileWaiting(
    Promise.all(remote.map((one) => fetched(discovering, one, '/openapi/v2', 'application/json'))),
  )
  const sources: SwaggerSource[] = []
  for (const [i, one] of remote.entries()) {
    await exchange.turn()
    const source = remoteSource(one, documents[i] ?? {})
    if (source !== undefined) sources.push(source)
  }
  if (sources.length === 0) return local
  const content = contentHash([local.content, ...sources.map((source) => source.content).sort()].join(','))
  return { content, sources: [...local.sources, ...sources] }
}

// A document is looked through once: the same one is answered for half a minute.
const sourceOfDocument = new WeakMap<JsonObject, { readonly source: SwaggerSource | undefined }>()

/** Each document was fetched for one group version. */
function remoteSource(gv: RemoteApiService, document: JsonObject): SwaggerSource | undefined {
  const known = sourceOfDocument.get(document)
  if (known !== undefined) return known.source
  const source = readable(gv, document)
  sourceOfDocument.set(document, { source })
  return source
}

function readable(gv: RemoteApiService, document: JsonObject): SwaggerSource | undefined {
  try {
    return remoteSwagger(gv, document)
  } catch (error) {
    // A document of many thousand levels.
    if (error instanceof RangeError) return undefined
    throw error
  }
}

async function fetched(
  { exchange, parts, objects }: Discovering,
  one: RemoteApiService,
  path: string,
  accept: string,
): Promise<JsonObject> {
  const value = await parts.aggregation.documents.get(objects.cluster, one, { path, accept }, exchange.signal)
  return isJsonObject(value) ? value : {}
}

function objectsOf(value: JsonValue | undefined): JsonObject[] {
  return Array.isArray(value) ? value.filter(isJsonObject) : []
}

function prioritiesIn(objects: ClusterObjects): (group: string, version: string) => Priorities {
  const known = new Map(apiServices(objects).map((one) => [one.name, one]))
  return (group, version) => known.get(`${version}.${group}`) ?? customPriorities
}
