// Answers paths that name no resource: discovery, OpenAPI, health, version, metrics. All documents are derived from the
// resource table of the logical cluster; nothing is kept per logical cluster.
import { LRUCache } from 'lru-cache'
import { yieldEvery } from '#async/index.ts'
import type { JsonObject } from '#apimachinery/meta/index.ts'
import { methodNotServed, notAcceptable, pageNotFound } from '#apimachinery/status/index.ts'
import type { ClusterObjects } from '#store/watch-cache/index.ts'
import { jsonDocument, notModified, textResponse } from '#virtualapi/codec/responses.ts'
import {
  aggregatedDiscovery,
  aggregatedFormat,
  apiGroup,
  apiGroupList,
  apiResourceList,
  apiVersions,
  builtInOpenApi,
  contentHash,
  discoveryDocument,
  encodeOpenApiInTurns,
  encodings,
  matchesEtag,
  openApiIndex,
  openApiKey,
  versionInfo,
  type CustomResourceOpenApi,
  type DiscoveryDocument,
  type OpenApiDocument,
} from '#virtualapi/discovery/index.ts'
import { customResourceSource, type SwaggerSources } from '#virtualapi/discovery/openapi-v2/index.ts'
import { negotiate } from '#virtualapi/codec/negotiate.ts'
import { programVersion } from '#telemetry/index.ts'
import type { DocumentedCrd } from '#virtualapi/catalog/catalog.ts'
import type { SharedDefinition } from '#virtualapi/catalog/sharing/definition-source.ts'
import type { ResourceInfo } from '#virtualapi/kinds/resources/resource-info.ts'
import type { ApiResponse, Exchange } from '#virtualapi/request/exchange.ts'
import type { EndpointDependencies } from '#virtualapi/endpoints/call/dependencies.ts'
import type { RequestView } from '#virtualapi/request/request-view.ts'
import { viewCatalog } from './view-catalog.ts'
import { aggregatedGroupDiscovery } from './aggregated-group.ts'
import { aggregatedResponse, conditional, plain } from './document-responses.ts'
import { metricsResources } from '#virtualapi/endpoints/views/pod-metrics.ts'
import { groupNotServed } from '#virtualapi/endpoints/call/served-path.ts'
import { clusterMetrics } from './cluster-metrics.ts'
import { health } from './health.ts'
import { openApiV2 } from './openapi-v2.ts'
import { purge } from './purge.ts'
import { isTransferPath, snapshotPath } from '#snapshot/index.ts'
import { auditPath } from '#crds/index.ts'
import { auditEvents } from './audit.ts'
import { transfer } from './transfer.ts'
import { snapshot } from './snapshot.ts'
import { remoteDocument } from './remote-discovery.ts'
import { tokenDiscovery } from './token-discovery.ts'

/** Discovery documents have the media types of built-in kinds. */
const discoveryForms = { group: '', version: 'v1', kind: 'APIGroupList', builtIn: true }

// Thousands of logical clusters serve the same few sets of resources, so documents are cached by their content.
const documents = new LRUCache<string, DiscoveryDocument>({
  max: 500,
  maxSize: 64 << 20,
  sizeCalculation: ({ body }) => body.length,
})
const openApiDocuments = new LRUCache<string, Pick<OpenApiDocument, 'json' | 'gzip'>>({
  max: 500,
  maxSize: 64 << 20,
  sizeCalculation: (document) => document.json().length,
})
/** How long documents are computed between two turns of the event loop, milliseconds. */
const sliceMs = 5

export async function discovery(
  exchange: Exchange,
  dependencies: EndpointDependencies,
  path: string,
): Promise<ApiResponse> {
  const { info, cluster } = exchange
  if (/^\/(healthz|livez|readyz)(\/|$)/.test(path)) {
    const inCluster = cluster !== undefined
    return health(path, info.query, { notReady: dependencies.notReady, inCluster })
  }
  if (path === '/' && info.method === 'DELETE') return purge(exchange, dependencies)
  if (path === snapshotPath && exchange.view === undefined && cluster !== undefined)
    return snapshot(exchange, cluster, dependencies)
  if (path === auditPath && exchange.view === undefined && cluster !== undefined)
    return auditEvents(exchange, cluster, dependencies)
  if (isTransferPath(path) && exchange.view === undefined && cluster !== undefined)
    return transfer(exchange, cluster, dependencies)
  const response = await documentOf(exchange, dependencies, path)
  if (info.method !== 'GET' && /^\/(api|version)(\/|$)|^\/apis\/[^/]+\/[^/]/.test(path)) throw methodNotServed()
  return response
}

async function documentOf(exchange: Exchange, dependencies: EndpointDependencies, path: string): Promise<ApiResponse> {
  const { info, cluster, signal } = exchange
  if (path === '/version')
    return jsonDocument(versionInfo({ programVersion, server: cluster?.isPlain === true ? 'simulated' : 'kcp' }))
  if (path === '/metrics' && info.cluster.kind === 'none' && cluster === undefined) {
    const { body } = await dependencies.metrics.scrape()
    return textResponse(body)
  }
  if (exchange.view !== undefined) return viewDocument(exchange, exchange.view, dependencies, path)
  if (cluster === undefined) return aggregatedGroupDiscovery(exchange, path)
  const objects = await dependencies.watchCache.cluster(cluster.id, { signal })
  const turn = turnsOf(exchange)
  // All code below needs all definitions compiled: the definitions of one tenant may be megabytes.
  await dependencies.catalog.compileInTurns(objects, turn, signal)
  const localIndex = (): JsonObject => {
    const { paths } = openApiIndex(allOpenApi(dependencies.catalog.documented(objects)), info.basePath) as {
      paths: JsonObject
    }
    return paths
  }
  const localV2 = (): SwaggerSources => customResources(dependencies.catalog.documented(objects))
  return (
    (await remoteDocument(exchange, dependencies, { objects, path, localIndex, localV2 })) ??
    answerFor(exchange, dependencies, { objects, path, turn })
  )
}

/** A document about the resources in the view of an export; the same for all its consumers. */
async function viewDocument(
  exchange: Exchange,
  view: RequestView,
  dependencies: EndpointDependencies,
  path: string,
): Promise<ApiResponse> {
  const { signal } = exchange
  const { provider, exportUid } = view
  const shared = await dependencies.viewSource.resourcesOf(exportUid, signal)
  const own = shared.own.length === 0 ? [] : await claimedDefinitions(exchange, view, dependencies, shared.own)
  const resources = { ...shared, definitions: [...shared.definitions, ...own] }
  const catalog = viewCatalog(dependencies.catalog, resources)
  const objects = await dependencies.watchCache.cluster(provider.id, { signal })
  return answerFor(exchange, { ...dependencies, catalog }, { objects, path, turn: turnsOf(exchange) })
}

/** The definitions of the consumer itself that it shows to the provider; none in the view over all consumers. */
async function claimedDefinitions(
  exchange: Exchange,
  view: RequestView,
  { watchCache, catalog }: EndpointDependencies,
  claimed: readonly string[],
): Promise<SharedDefinition[]> {
  const { cluster, signal } = exchange
  if (cluster === undefined) return []
  const objects = await watchCache.cluster(cluster.id, { signal })
  await catalog.compileInTurns(objects, turnsOf(exchange), signal)
  return catalog.documented(objects).flatMap(({ compiled, read }) => {
    const [info] = compiled.resourceInfos
    const isShown =
      claimed.includes(compiled.name) && info !== undefined && view.ruleFor(cluster.id, info) !== undefined
    return isShown ? [{ compiled, read, isTerminating: false }] : []
  })
}

/** Lets other work run, of this logical cluster and of others, when a slice of time is over. */
function turnsOf(exchange: Exchange): () => Promise<void> {
  const pause = yieldEvery(sliceMs, exchange.signal)
  return async () => {
    await pause()
    await exchange.turn()
  }
}

interface Asked {
  readonly objects: ClusterObjects
  readonly path: string
  readonly turn: () => Promise<void>
}

function answerFor(
  exchange: Exchange,
  dependencies: EndpointDependencies,
  asked: Asked,
): ApiResponse | Promise<ApiResponse> {
  const { objects, path } = asked
  const metrics = exchange.view === undefined ? metricsResources(exchange, dependencies, objects) : []
  const infos = (): readonly ResourceInfo[] => [...dependencies.catalog.all(objects), ...metrics]
  const [, root = '', group = '', version = '', more] = path.split('/')
  if (path.startsWith('/.well-known/') || path.startsWith('/openid/'))
    return tokenDiscovery(exchange, dependencies, path)
  if (path === '/openapi/v2') return openApiV2(exchange, customResources(dependencies.catalog.documented(objects)))
  if (root === 'openapi') return openApi(exchange, dependencies, asked)
  if (path === '/metrics' || path === '/metrics/slis') return clusterMetrics(path, objects, dependencies)
  if (more !== undefined) throw pageNotFound()
  const accept = exchange.header('accept')
  const aggregated = path === '/api' || path === '/apis' ? aggregatedFormat(accept) : undefined
  if (aggregated === undefined && root.startsWith('api')) negotiate(accept, { info: discoveryForms })
  // Two logical clusters serve the same documents if the following are equal: their definitions, whether members
  // measure their pods, and the variant of the catalog.
  const set = `${fingerprint(dependencies.catalog.documented(objects))}${metrics.length === 0 ? '' : '+metrics'}|${dependencies.catalog.variant()}`
  const cached = (key: string, make: () => unknown): DiscoveryDocument => {
    const full = `${set}|${key}`
    let document = documents.get(full)
    if (document === undefined) {
      const value = make()
      if (value === undefined) throw groupNotServed(root === 'api' ? '' : group)
      documents.set(full, (document = discoveryDocument(value)))
    }
    return document
  }
  switch (path) {
    case '/':
      return jsonDocument({
        paths: [
          '/.well-known/openid-configuration',
          '/api',
          '/api/v1',
          '/apis',
          '/healthz',
          '/livez',
          '/metrics',
          '/metrics/slis',
          '/openapi/v2',
          '/openapi/v3',
          '/openid/v1/jwks',
          '/readyz',
          '/version',
        ],
      })
    case '/api':
      return aggregated !== undefined
        ? aggregatedResponse(
            exchange,
            cached('core', () => aggregatedDiscovery(infos(), 'core')),
            aggregated,
          )
        : jsonDocument(apiVersions(exchange.header('host') ?? ''))
    case '/apis':
      return aggregated !== undefined
        ? aggregatedResponse(
            exchange,
            cached('groups', () => aggregatedDiscovery(infos(), 'groups')),
            aggregated,
          )
        : plain(cached('list', () => apiGroupList(infos())))
    case `/api/${group}`:
      return plain(cached(path, () => apiResourceList(infos(), { group: '', version: group })))
    case `/apis/${group}`:
      return plain(cached(path, () => apiGroup(infos(), group)))
    case `/apis/${group}/${version}`:
      return plain(cached(path, () => apiResourceList(infos(), { group, version })))
    default:
      throw pageNotFound()
  }
}

/** A hash of the CustomResourceDefinitions: logical clusters whose definitions are equal share the cached documents. */
function fingerprint(crds: readonly DocumentedCrd[]): string {
  return contentHash(crds.map(({ compiled }) => compiled.hash).join(','))
}

async function openApi(
  exchange: Exchange,
  dependencies: EndpointDependencies,
  { objects, path, turn }: Asked,
): Promise<ApiResponse> {
  if (path !== '/openapi/v3' && !path.startsWith('/openapi/v3/')) throw pageNotFound()
  const all = allOpenApi(dependencies.catalog.documented(objects))
  if (path === '/openapi/v3') {
    const { body, etag } = discoveryDocument(openApiIndex(all, exchange.info.basePath))
    return conditional(exchange, { body, etag }, 'application/json')
  }
  const document = all.get(path.slice('/openapi/v3/'.length))
  if (document === undefined) throw pageNotFound()
  requireAcceptsJson(exchange.header('accept'))
  const { hash } = document
  const asked = exchange.info.query.get('hash')
  const etag = `"${hash}"`
  const headers: Record<string, string> = { 'content-type': 'application/json', etag, vary: 'Accept' }
  // The client has the hash of an older document: redirect it to the current one. The host's kube-apiserver would
  // answer a redirect with 502, so through it the answer is the current document.
  if (asked !== null && asked !== '' && asked !== hash && exchange.info.entryPoint !== 'aggregated') {
    const location = `${exchange.info.basePath}${path}?hash=${hash}`
    return { kind: 'bytes', status: 301, headers: { ...headers, location }, body: new Uint8Array() }
  }
  // A URL with the hash of its content may be cached for ever.
  headers['cache-control'] = asked === hash ? 'public, immutable' : 'no-cache, private'
  if (matchesEtag(exchange.header('if-none-match'), etag)) return notModified(headers)
  await document.prepare?.(turn)
  if (/\bgzip\b/.test(exchange.header('accept-encoding') ?? '')) {
    const body = await document.gzip()
    return { kind: 'bytes', status: 200, headers: { ...headers, 'content-encoding': 'gzip' }, body }
  }
  return { kind: 'bytes', status: 200, headers, body: document.json() }
}

/** Throws 406 for a client that does not accept JSON. */
function requireAcceptsJson(accept: string | undefined): void {
  if (accept === undefined || accept.trim() === '') return
  const types = accept.split(',').map((clause) => (clause.split(';')[0] ?? '').trim().toLowerCase())
  if (!types.some((type) => type === 'application/json' || type === 'application/*' || type === '*/*'))
    throw notAcceptable('only the following media types are accepted: application/json')
}

/**
 * The OpenAPI documents of all group versions: the documents of Kubernetes, and one per group version of custom
 * resources.
 */
function allOpenApi(crds: readonly DocumentedCrd[]): ReadonlyMap<string, OpenApiDocument> {
  const all = new Map(builtInOpenApi())
  const byGroupVersion = Map.groupBy(
    crds.flatMap(({ read, compiled }) => compiled.versions.map((version) => ({ read, compiled, version }))),
    ({ version }) => openApiKey(version.info),
  )
  for (const [key, members] of byGroupVersion) {
    const [first] = members
    if (first === undefined) continue
    // Logical clusters with equal definitions share one document.
    const content = `${key}|${members
      .map(({ compiled, version }) => `${compiled.hash}/${version.info.version}`)
      .sort()
      .join(',')}`
    all.set(
      key,
      lazyDocument(content, (turn) => {
        const sorted = members.toSorted((a, b) => (a.version.info.resource < b.version.info.resource ? -1 : 1))
        return encodeOpenApiInTurns(first.version.info, resourcesOf(sorted), turn)
      }),
    )
  }
  return all
}

/** A document that is generated when it is first prepared. Its hash is that of its definitions. */
function lazyDocument(content: string, make: (turn: () => Promise<void>) => Promise<Buffer>): OpenApiDocument {
  let made: Pick<OpenApiDocument, 'json' | 'gzip'> | undefined
  const prepared = (): Pick<OpenApiDocument, 'json' | 'gzip'> => {
    if (made === undefined) throw new Error('the OpenAPI document was not prepared')
    return made
  }
  // The hash includes our version, because another version may generate a different document.
  return {
    hash: contentHash(`${programVersion} ${content}`),
    async prepare(turn) {
      made = openApiDocuments.get(content) ?? encodings(await make(turn))
      openApiDocuments.set(content, made)
    },
    json: () => prepared().json(),
    gzip: () => prepared().gzip(),
  }
}

/** All custom resources of a logical cluster. `content` is equal for equal definitions. */
function customResources(crds: readonly DocumentedCrd[]): SwaggerSources {
  const hashes = crds.map(({ compiled }) => compiled.hash).sort()
  return {
    content: hashes.length === 0 ? '' : contentHash(hashes.join(',')),
    sources: crds.map(({ read, compiled }) =>
      customResourceSource(compiled.hash, () => openApiOf(read, compiled.versions)),
    ),
  }
}

/** The resources of these versions. Each definition is decoded only when its resources are read. */
function* resourcesOf(
  members: readonly {
    readonly read: DocumentedCrd['read']
    readonly version: DocumentedCrd['compiled']['versions'][number]
  }[],
): Generator<CustomResourceOpenApi> {
  for (const { read, version } of members) yield* openApiOf(read, [version])
}

/**
 * The resources of these versions of one definition. Decodes the definition once, however many versions are asked for.
 */
function openApiOf(
  read: DocumentedCrd['read'],
  versions: readonly Pick<DocumentedCrd['compiled']['versions'][number], 'info' | 'listKind'>[],
): CustomResourceOpenApi[] {
  const { spec } = read()
  const sources = new Map(spec.versions.map((version) => [version.name, version]))
  return versions.map(({ info, listKind }) => {
    const { schema, selectableFields = [] } = sources.get(info.version) ?? {}
    const openAPIV3Schema = schema?.openAPIV3Schema
    return {
      info,
      listKind,
      selectableFields: selectableFields.map(({ jsonPath }) => jsonPath.replace(/^\./, '')),
      ...(openAPIV3Schema === undefined ? {} : { openAPIV3Schema }),
    }
  })
}
