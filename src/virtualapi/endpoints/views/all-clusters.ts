// `/clusters/*`: list and watch of one resource over all logical clusters. Read only. The annotation
// `kcp.dev/logical-cluster` of every object names its logical cluster.
import { isTrue } from '#virtualapi/request/parse-request.ts'
import { groupResourceText, type ClusterId, type GroupResource, type Revision } from '#apimachinery/meta/index.ts'
import { expired, forbidden, methodNotAllowed, pathNotFound } from '#apimachinery/status/index.ts'
import type { CacheWatch, Entry, WatchScope } from '#store/watch-cache/index.ts'
import { negotiate, type Representation } from '#virtualapi/codec/negotiate.ts'
import { listItem, type ListMeta } from '#virtualapi/codec/list-chunks.ts'
import type { ListItem } from '#virtualapi/codec/list-segments.ts'
import { viewOf, type ObjectView } from '#virtualapi/codec/representations.ts'
import type { ClusterDirectory } from '#virtualapi/request/logical-cluster.ts'
import type { ResourceTarget } from '#virtualapi/request/request-info.ts'
import { clusterAnnotations } from '#virtualapi/endpoints/call/cluster-annotations.ts'
import { annotateBytes } from '#virtualapi/kinds/resources/object-bytes.ts'
import type { ResourceDefinition } from '#virtualapi/kinds/resources/resource-definition.ts'
import { customStrategy } from '#virtualapi/catalog/apiextensions/custom-strategy.ts'
import type { ApiResponse, Exchange } from '#virtualapi/request/exchange.ts'
import type { EndpointDependencies } from '#virtualapi/endpoints/call/dependencies.ts'
import { listResponse } from '#virtualapi/endpoints/verbs/list.ts'
import { listOptionsOf } from '#virtualapi/endpoints/verbs/list-options.ts'
import {
  encodeToken,
  expiredList,
  expiredToken,
  listPosition,
  waitForRevision,
  type ListPosition,
} from '#virtualapi/endpoints/verbs/read-position.ts'
import { selectionOf, shardInfoOf, type Selection } from '#virtualapi/endpoints/verbs/selection.ts'
import { nameOf, rememberNames } from './former-names.ts'
import type { RequestView } from '#virtualapi/request/request-view.ts'
import { viewDefinition } from './view-definition.ts'
import { ViewWatch } from './view-watch.ts'
import { isShown } from './shown-entries.ts'
import { withKind } from './kind-in-all.ts'
import { waitForWatchRevision, openWatch, watchResponse, watchOptions } from '#virtualapi/endpoints/verbs/watch.ts'

/**
 * Query parameter of lists over all logical clusters: `true` leaves out the base layer, so that a logical cluster
 * without written objects costs nothing. Controllers of the installation set it, because their watches do not show the
 * base layer of logical clusters created after the list either.
 */
const storedOnly = 'storedOnly'

export async function allClusters(
  exchange: Exchange,
  dependencies: EndpointDependencies,
  request: ResourceTarget,
): Promise<ApiResponse> {
  const { verb } = exchange.info
  if (verb !== 'list' && verb !== 'watch') {
    if (request.name !== '') throw methodNotAllowed(request, verb)
    throw forbidden(request, '', 'reads over all logical clusters are list and watch only; write to /clusters/NAME')
  }
  const { view } = exchange
  const definition =
    view === undefined
      ? await withKind(dependencies, definitionFor(dependencies, request), exchange.signal)
      : await viewDefinition(view, exchange, dependencies, request)
  return verb === 'list'
    ? listAll(exchange, dependencies, request, definition)
    : watchAll(exchange, dependencies, request, definition)
}

/**
 * The definition of a resource in all logical clusters. A custom resource may have a different schema in each of them,
 * so its objects are answered as they are stored.
 */
function definitionFor({ catalog }: EndpointDependencies, request: ResourceTarget): ResourceDefinition {
  const builtIn = catalog.findBuiltIn(request)
  if (builtIn !== undefined) return builtIn
  const ours = catalog.findOurs(request)
  if (ours !== undefined) return ours
  if (request.group === '' || !request.group.includes('.')) throw pathNotFound()
  const { group, version, resource } = request
  const info = {
    group,
    version,
    resource,
    singular: '',
    kind: '',
    namespaced: true,
    verbs: ['list', 'watch'],
    shortNames: [],
    categories: [],
    subresources: [],
    builtIn: false,
  }
  const storageApiVersion = `${group}/${version}`
  return {
    info,
    storageKey: groupResourceText(info),
    storageApiVersion,
    inVersion: () => undefined,
    schema: undefined,
    strategy: customStrategy({ info }),
  }
}

async function listAll(
  exchange: Exchange,
  dependencies: EndpointDependencies,
  request: ResourceTarget,
  definition: ResourceDefinition,
): Promise<ApiResponse> {
  const { directory, clock, unfinishedLists } = dependencies
  const { query } = exchange.info
  const options = listOptionsOf(query, 'list')
  const selection = scopedSelection(selectionOf(query, definition), exchange, request)
  const position = listPosition(options, { nowMs: clock.now() })
  if (position.notOlderThan !== undefined) await waitForRevision(dependencies, position.notOlderThan, exchange.signal)
  const keptUnder = (token: string): string =>
    JSON.stringify([
      definition.storageKey,
      request.namespace,
      query.get('labelSelector'),
      query.get('fieldSelector'),
      query.get('shardSelector'),
      query.get(storedOnly),
      // Two users see different logical clusters in the same list.
      exchange.scope === undefined ? null : exchange.user.name,
      exchange.view?.exportUid ?? null,
      token,
    ])
  const kept = position.at === undefined ? undefined : unfinishedLists.take(keptUnder(options.token))
  const { entries: rest, revision } =
    kept === undefined || position.at === undefined
      ? await readRest(exchange, dependencies, { request, definition, selection, position })
      : { entries: kept, revision: position.at }
  const page = position.limit > 0 ? rest.slice(0, position.limit) : rest
  const last = page.length < rest.length ? page.at(-1) : undefined
  const metadata: ListMeta = { resourceVersion: String(revision), ...shardInfoOf(selection) }
  if (last !== undefined) {
    metadata.continue = encodeToken(revision, clusterKeyText(last), position)
    metadata.remainingItemCount = rest.length - page.length
    unfinishedLists.keep(keptUnder(metadata.continue), rest.slice(page.length))
  }
  const view = annotatedView(
    viewOf(definition, formOf(exchange, definition), { now: clock.now() }),
    directory,
    exchange,
  )
  const items: ListItem[] = []
  // Since the objects were kept for this page, a logical cluster may have been deleted, or may have left the view.
  const isGone = ({ key }: Entry): boolean => directory.byId(key.cluster) === undefined
  const isHidden = (entry: Entry): boolean => exchange.view !== undefined && !isShown(exchange.view, request, entry)
  for (const entry of page)
    if (!isGone(entry) && (kept === undefined || !isHidden(entry))) items.push(listItem(view.annotate(entry)))
  return listResponse(view, items, metadata)
}

interface Reading {
  readonly request: ResourceTarget
  readonly definition: ResourceDefinition
  readonly selection: Selection
  readonly position: ListPosition
}

/** How many entries are matched before the event loop is yielded: the first match of an entry may decode it. */
const matchesPerTurn = 128

/**
 * The matching entries after the position, and the revision of the list. Throws 410 if that state is not known any
 * more.
 */
async function readRest(
  exchange: Exchange,
  { watchCache, directory }: EndpointDependencies,
  { request, definition, selection, position }: Reading,
): Promise<{ readonly entries: readonly Entry[]; readonly revision: Revision }> {
  const { signal } = exchange
  const scope = {
    resource: definition.storageKey,
    ...(request.namespace === '' ? {} : { namespace: request.namespace }),
  }
  // In a view, the cost follows what the view shows.
  const isStoredOnly = exchange.view === undefined && isTrue(exchange.info.query.get(storedOnly))
  const { entries, revision } = isStoredOnly
    ? await watchCache.listStored(scope, { signal })
    : await watchCache.listAll(scope, idsOf(directory, exchange, request), { signal })
  // An older state can be answered only if nothing of this resource has changed since: no history is kept over all
  // logical clusters.
  if (position.at !== undefined && position.at < revision) {
    await watchCache.reached(revision, { signal })
    if (watchCache.changedSince(definition.storageKey, position.at))
      throw position.after === undefined ? expiredList(position.at) : expiredToken(position.after)
  }
  const { after } = position
  const from = after === undefined ? 0 : entries.findIndex((entry) => clusterKeyText(entry) > after)
  const rest = from < 0 ? [] : entries.slice(from)
  const found: Entry[] = []
  for (let i = 0; i < rest.length; i += matchesPerTurn) {
    for (const entry of rest.slice(i, i + matchesPerTurn)) if (selection.matches(entry)) found.push(entry)
    if (i + matchesPerTurn < rest.length) await exchange.turn()
  }
  return { entries: found, revision: position.at ?? revision }
}

/** The logical clusters of the request. */
function idsOf(directory: ClusterDirectory, { scope, view }: Exchange, resource: GroupResource): ClusterId[] {
  if (view === undefined) return Array.from(scope ?? Array.from(directory.all(), ({ id }) => id)).sort()
  return [...view.consumers()].filter((id) => view.ruleFor(id, resource) !== undefined).sort()
}

/** The selection, without objects that the request may not see. */
function scopedSelection(selection: Selection, { scope, view }: Exchange, resource: GroupResource): Selection {
  if (view !== undefined) return restricted(selection, (entry) => isShown(view, resource, entry))
  return scope === undefined ? selection : restricted(selection, (entry) => scope.has(entry.key.cluster))
}

function restricted(selection: Selection, sees: (entry: Entry) => boolean): Selection {
  return { ...selection, everything: false, matches: (entry) => sees(entry) && selection.matches(entry) }
}

function clusterKeyText({ key }: Entry): string {
  return `${key.cluster}/${key.namespace}/${key.name}`
}

async function watchAll(
  exchange: Exchange,
  dependencies: EndpointDependencies,
  request: ResourceTarget,
  definition: ResourceDefinition,
): Promise<ApiResponse> {
  const { watchCache, directory, clock } = dependencies
  rememberNames(directory)
  const { query } = exchange.info
  const options = watchOptions(listOptionsOf(query, 'watch'))
  const selected = selectionOf(query, definition)
  const view = annotatedView(
    viewOf(definition, formOf(exchange, definition), { now: clock.now() }),
    directory,
    exchange,
  )
  const timeoutResponse = options.sendInitialEvents
    ? await waitForWatchRevision(dependencies, options.since, view, exchange.signal)
    : undefined
  if (timeoutResponse !== undefined) return timeoutResponse
  const scope = {
    resource: definition.storageKey,
    ...(request.namespace === '' ? {} : { namespace: request.namespace }),
  }
  const state = options.sendInitialEvents
    ? await watchCache.listAll(scope, idsOf(directory, exchange, request), { signal: exchange.signal })
    : undefined
  const since = state?.revision ?? (options.since === 0 ? watchCache.revision() : options.since)
  const source = await openWatch(() => watchCache.watchAll(scope, { since, signal: exchange.signal }))
  const seen =
    exchange.view && viewWatch(exchange.view, source, { request, scope, since, isNew: state !== undefined, watchCache })
  const watch = seen ?? source
  const selection =
    seen === undefined
      ? scopedSelection(selected, exchange, request)
      : restricted(selected, (entry) => seen.shows(entry))
  const form = { definition, selection, view, entryBytes: view.annotate }
  return watchResponse({ form, watch, initial: state?.entries, since, options }, exchange, dependencies)
}

interface ViewWatchOptions {
  readonly request: ResourceTarget
  readonly scope: WatchScope
  readonly since: Revision
  /** True: the client gets the whole state first. */
  readonly isNew: boolean
  readonly watchCache: EndpointDependencies['watchCache']
}

/** Throws 410 if consumers have left since the client's last watch: it would keep their objects. */
function viewWatch(
  view: RequestView,
  source: CacheWatch,
  { request, scope, since, isNew, watchCache }: ViewWatchOptions,
) {
  if (!isNew && view.lastLoss() > since) {
    source[Symbol.dispose]()
    throw expired('consumers of the export have changed since this resourceVersion')
  }
  const unseen = isNew ? [] : view.changedSince(since)
  return new ViewWatch({ source, view, resource: request, scope, watchCache, unseen })
}

function formOf(exchange: Exchange, { info }: ResourceDefinition): Representation {
  return negotiate(exchange.header('accept'), { info, reads: exchange.info.verb === 'watch' ? 'watch' : 'list' })
}

/** The view, with a function that adds the annotations of the logical cluster to the bytes of an entry. */
function annotatedView(
  view: ObjectView,
  directory: ClusterDirectory,
  exchange: Exchange,
): ObjectView & { annotate: (entry: Pick<Entry, 'key' | 'bytes'>) => Uint8Array } {
  const annotated = new WeakMap<Pick<Entry, 'key' | 'bytes'>, Uint8Array>()
  return {
    ...view,
    shared: false,
    annotate(entry) {
      const known = annotated.get(entry)
      if (known !== undefined) return known
      const name = nameOf(directory, entry.key.cluster)
      const cluster = exchange.view && directory.byId(entry.key.cluster)
      const path = cluster === undefined ? name : (exchange.view?.pathOf(cluster) ?? name)
      const bytes = annotateBytes(entry.bytes, clusterAnnotations(name, path, exchange))
      annotated.set(entry, bytes)
      return bytes
    },
  }
}
