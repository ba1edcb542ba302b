// `/clusters/*`: list and watch of one resource over all logical clusters. Read only. The annotation
// `kcp.dev/logical-cluster` of every object names its logical cluster.
import { groupResourceText } from '../../apimachinery/meta/index.ts'
import { forbidden, methodNotAllowed, pathNotFound } from '../../apimachinery/status/index.ts'
import { logicalClusterAnnotation } from '../../client/index.ts'
import type { Entry } from '../../store/hub/index.ts'
import { negotiate, type Representation } from '../codec/negotiate.ts'
import { listItem } from '../codec/list-chunks.ts'
import { viewOf, type ObjectView } from '../codec/representations.ts'
import type { ClusterDirectory } from '../clusters/directory.ts'
import type { ResourceTarget } from '../request/request-info.ts'
import { annotateBytes } from '../resources/object-bytes.ts'
import { storageKeyOf, type ResourceDefinition } from '../resources/resource-definition.ts'
import { customStrategy } from '../apiextensions/custom-strategy.ts'
import type { Answer, Exchange } from '../exchange/exchange.ts'
import type { EndpointParts } from './parts.ts'
import { listAnswer } from './list.ts'
import { listOptionsOf } from './list-options.ts'
import { encodeToken, expiredList, expiredToken, listPosition, waitForRevision } from './read-position.ts'
import { selectionOf } from './selection.ts'
import { waitForWatchRevision, openWatch, watchAnswer, watchOptions } from './watch.ts'

export async function allClusters(exchange: Exchange, parts: EndpointParts, request: ResourceTarget): Promise<Answer> {
  const { verb } = exchange.info
  if (verb !== 'list' && verb !== 'watch') {
    if (request.name !== '') throw methodNotAllowed(request, verb)
    throw forbidden(request, '', 'reads over all logical clusters are list and watch only; write to /clusters/NAME')
  }
  const definition = definitionFor(parts, request)
  return verb === 'list'
    ? listAll(exchange, parts, request, definition)
    : watchAll(exchange, parts, request, definition)
}

/**
 * The definition of a resource in all logical clusters. A custom resource may have a different schema in each of them, so
 * its objects are answered as they are stored.
 */
function definitionFor({ catalog }: EndpointParts, request: ResourceTarget): ResourceDefinition {
  const builtIn = catalog.findBuiltIn(request)
  if (builtIn !== undefined) return builtIn
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
  parts: EndpointParts,
  request: ResourceTarget,
  definition: ResourceDefinition,
): Promise<Answer> {
  const { hub, directory, clock } = parts
  const { query } = exchange.info
  const options = listOptionsOf(query, 'list')
  const selection = selectionOf(query, definition)
  const position = listPosition(options, { nowMs: clock.now() })
  if (position.notOlderThan !== undefined) await waitForRevision(parts, position.notOlderThan, exchange.signal)
  const clusters = [...directory.all()].map(({ id }) => id).sort()
  const scope = {
    resource: storageKeyOf(definition.info),
    ...(request.namespace === '' ? {} : { namespace: request.namespace }),
  }
  const { entries, revision } = await hub.listAll({ ...scope, resource: definition.storageKey }, clusters, {
    signal: exchange.signal,
  })
  // An older state can be answered only if nothing of this resource has changed since: no history is kept over all clusters.
  if (position.at !== undefined && position.at < revision) {
    await hub.reached(revision, { signal: exchange.signal })
    if (hub.changedSince(definition.storageKey, position.at))
      throw position.after === undefined ? expiredList(position.at) : expiredToken(position.after)
  }
  const matching = entries.filter((entry) => selection.matches(entry))
  const from =
    position.after === undefined ? 0 : matching.findIndex((entry) => clusterKeyText(entry) > (position.after ?? ''))
  const rest = from < 0 ? [] : matching.slice(from)
  const page = position.limit > 0 ? rest.slice(0, position.limit) : rest
  const last = page.length < rest.length ? page.at(-1) : undefined
  const metadata = {
    resourceVersion: String(position.at ?? revision),
    ...(last === undefined
      ? {}
      : {
          continue: encodeToken(position.at ?? revision, clusterKeyText(last), position),
          remainingItemCount: rest.length - page.length,
        }),
  }
  const view = annotatedView(viewOf(definition, formOf(exchange, definition), { now: clock.now() }), directory)
  const annotated = page.map((entry) => listItem(view.annotate(entry)))
  return listAnswer(view, annotated, metadata)
}

function clusterKeyText({ key }: Entry): string {
  return `${key.cluster}/${key.namespace}/${key.name}`
}

async function watchAll(
  exchange: Exchange,
  parts: EndpointParts,
  request: ResourceTarget,
  definition: ResourceDefinition,
): Promise<Answer> {
  const { hub, directory, clock } = parts
  const { query } = exchange.info
  const options = watchOptions(listOptionsOf(query, 'watch'))
  const selection = selectionOf(query, definition)
  const view = annotatedView(viewOf(definition, formOf(exchange, definition), { now: clock.now() }), directory)
  const timeoutAnswer = options.sendInitialEvents
    ? await waitForWatchRevision(parts, options.since, view, exchange.signal)
    : undefined
  if (timeoutAnswer !== undefined) return timeoutAnswer
  const scope = {
    resource: definition.storageKey,
    ...(request.namespace === '' ? {} : { namespace: request.namespace }),
  }
  const clusters = [...directory.all()].map(({ id }) => id).sort()
  const state = options.sendInitialEvents ? await hub.listAll(scope, clusters, { signal: exchange.signal }) : undefined
  const since = state?.revision ?? (options.since === 0 ? hub.revision() : options.since)
  const watch = await openWatch(() => hub.watchAll(scope, { since, signal: exchange.signal }))
  const form = { definition, selection, view, entryBytes: view.annotate }
  return watchAnswer({ form, watch, initial: state?.entries, since, options }, exchange, parts)
}

function formOf(exchange: Exchange, { info }: ResourceDefinition): Representation {
  return negotiate(exchange.header('accept'), { info, reads: exchange.info.verb === 'watch' ? 'watch' : 'list' })
}

/** The view, with a function that adds the annotation `kcp.dev/logical-cluster` to the bytes of an entry. */
function annotatedView(
  view: ObjectView,
  directory: ClusterDirectory,
): ObjectView & { annotate: (entry: Pick<Entry, 'key' | 'bytes'>) => Uint8Array } {
  const annotated = new WeakMap<Pick<Entry, 'key' | 'bytes'>, Uint8Array>()
  return {
    ...view,
    shared: false,
    annotate(entry) {
      const known = annotated.get(entry)
      if (known !== undefined) return known
      const name = directory.byId(entry.key.cluster)?.name ?? ''
      const bytes = annotateBytes(entry.bytes, logicalClusterAnnotation, name)
      annotated.set(entry, bytes)
      return bytes
    },
  }
}
