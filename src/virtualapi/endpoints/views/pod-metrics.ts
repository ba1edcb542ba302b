// metrics.k8s.io/v1beta1 in a logical cluster whose members measure pods: `kubectl top`. Only pods of the logical
// cluster are shown, by their names in it; metrics of a node are the use of these pods on it.
import { Buffer } from 'node:buffer'
import { encodeJson, type KubeObject } from '#apimachinery/meta/index.ts'
import { addAmounts, amountsOf, listOf, type Quantity } from '#apimachinery/quantity/index.ts'
import {
  isStatusError,
  methodNotAllowed,
  notFound,
  requestEntityTooLarge,
  serviceUnavailable,
} from '#apimachinery/status/index.ts'
import { memberAnnotation, memberNamespaceAnnotation } from '#crds/index.ts'
import type { ClusterObjects, Entry } from '#store/watch-cache/index.ts'
import { jsonBytes } from '#virtualapi/codec/responses.ts'
import { listItem } from '#virtualapi/codec/list-chunks.ts'
import { negotiate } from '#virtualapi/codec/negotiate.ts'
import { viewOf } from '#virtualapi/codec/representations.ts'
import type { LogicalCluster } from '#virtualapi/request/logical-cluster.ts'
import type { ApiResponse, Exchange } from '#virtualapi/request/exchange.ts'
import type { PodUsage } from '#virtualapi/outbound/members/member-metrics.ts'
import type { ResourceTarget } from '#virtualapi/request/request-info.ts'
import { decodeMetadata, decodeObject } from '#virtualapi/kinds/resources/object-bytes.ts'
import { pathSegmentName } from '#virtualapi/kinds/resources/names.ts'
import type { PrinterColumn, ResourceDefinition } from '#virtualapi/kinds/resources/resource-definition.ts'
import type { ResourceInfo } from '#virtualapi/kinds/resources/resource-info.ts'
import { aggregatedTo } from '#virtualapi/endpoints/forwarded/aggregated.ts'
import { listResponse } from '#virtualapi/endpoints/verbs/list.ts'
import type { EndpointDependencies } from '#virtualapi/endpoints/call/dependencies.ts'
import { selectionOf, type Selection } from '#virtualapi/endpoints/verbs/selection.ts'
import { groupNotServed, requirePath } from '#virtualapi/endpoints/call/served-path.ts'

const group = 'metrics.k8s.io'
const apiVersion = `${group}/v1beta1`
/** How many requests to members run at the same time: one for each member and namespace. */
const concurrency = 8
/** Maximum of pairs of a member and a namespace that one request may ask for. */
const mostPlaces = 500
const podsPerTurn = 128

const definitions: Readonly<Record<string, ResourceDefinition>> = {
  pods: definitionOf('pods', 'PodMetrics', { namespaced: true }, [column('Window', '.window')]),
  nodes: definitionOf('nodes', 'NodeMetrics', { namespaced: false }, [
    column('CPU', '.usage.cpu'),
    column('Memory', '.usage.memory'),
    column('Window', '.window'),
  ]),
}
const infos = Object.values(definitions).map(({ info }) => info)

/**
 * The resources of the group in this logical cluster; empty if none of its members has metrics, or if its tenant serves
 * the group.
 */
export function metricsResources(
  { cluster }: Pick<Exchange, 'cluster'>,
  dependencies: EndpointDependencies,
  objects: ClusterObjects,
): readonly ResourceInfo[] {
  if (cluster === undefined || dependencies.memberMetrics?.areServedIn(cluster) !== true) return []
  // A metrics server that the tenant runs comes first.
  if (aggregatedTo(dependencies, objects, { group, version: 'v1beta1' }) !== undefined) return []
  const isTenants = dependencies.catalog
    .crds(objects)
    .some(({ compiled }) => compiled.resourceInfos[0]?.group === group)
  return isTenants ? [] : infos
}

interface ServedMetrics {
  readonly cluster: LogicalCluster
  readonly objects: ClusterObjects
}

/**
 * The logical cluster and its objects, if the request is for metrics that members serve; undefined for any other
 * request.
 */
export async function servedMetrics(
  exchange: Exchange,
  dependencies: EndpointDependencies,
  target: ResourceTarget,
): Promise<ServedMetrics | undefined> {
  const { cluster, signal } = exchange
  if (target.group !== group || cluster === undefined) return undefined
  const objects = await dependencies.watchCache.cluster(cluster.id, { signal })
  return metricsResources(exchange, dependencies, objects).length === 0 ? undefined : { cluster, objects }
}

/**
 * Answers GET and LIST. Rejects with 404, with 405, with 413 if too many namespaces are asked for, and with 503 if no
 * member answers.
 */
export async function answerPodMetrics(
  exchange: Exchange,
  dependencies: EndpointDependencies,
  target: ResourceTarget,
  { cluster, objects }: ServedMetrics,
): Promise<ApiResponse> {
  const { info: request } = exchange
  const definition = target.version === 'v1beta1' ? definitions[target.resource] : undefined
  if (definition === undefined || target.subresource !== '') throw groupNotServed(group)
  const { info } = definition
  requirePath(info, target, request)
  if (!info.verbs.includes(request.verb)) throw methodNotAllowed(info, exchange.request.method)
  const isList = request.verb === 'list'
  const representation = negotiate(exchange.header('accept'), isList ? { info, reads: 'list' } : { info })
  const view = viewOf(definition, representation, {
    includeObject: request.query.get('includeObject') ?? 'Metadata',
    now: dependencies.clock.now(),
  })
  const selection = selectionOf(request.query, definition)
  const measured = await measure({ exchange, dependencies, cluster, objects }, podsOf(objects, target))
  const found = info.resource === 'pods' ? measured.map(podMetrics) : nodeMetrics(measured)
  if (isList) return listResponse(view, found.filter((object) => selects(selection, object)).map(itemOf), {})
  const object = found.find(({ metadata }) => metadata.name === target.name)
  if (object === undefined) throw notFound({ group, resource: info.resource }, target.name)
  return jsonBytes(view.object(Buffer.from(encodeJson(object))))
}

/** The pods whose metrics are asked for. Throws 404 for a named pod that does not exist. */
function podsOf(objects: ClusterObjects, { resource, namespace, name }: ResourceTarget): readonly Entry[] {
  if (resource !== 'pods' || name === '') return objects.list({ resource: 'pods', ...(namespace && { namespace }) })
  const entry = objects.get('pods', namespace, name)
  if (entry === undefined) throw notFound({ group, resource: 'pods' }, name)
  return [entry]
}

interface Measured {
  readonly entry: Entry
  readonly usage: PodUsage
}

interface Measuring {
  readonly exchange: Exchange
  readonly dependencies: EndpointDependencies
  readonly cluster: LogicalCluster
  readonly objects: ClusterObjects
}

interface Place {
  readonly member: string
  readonly namespace: string
  /** The name of the namespace in the member, if it is not the usual one. */
  readonly memberNamespace: string | undefined
  readonly entries: Entry[]
}

/**
 * The metrics of these pods, as members measured them; pods that are not measured yet are left out. Adds a warning for
 * each member that does not answer; rejects with ServiceUnavailable if no member answers.
 */
async function measure({ exchange, dependencies, cluster }: Measuring, entries: readonly Entry[]): Promise<Measured[]> {
  const places = await placesOf(exchange, entries)
  if (places.length > mostPlaces)
    throw requestEntityTooLarge(`metrics of more than ${mostPlaces} namespaces are not answered at once: ask for one`)
  const found: Measured[] = []
  const failures = new Map<string, Error>()
  const ask = async ({ entries: pods, ...place }: Place): Promise<void> => {
    // A member that did not answer is not asked about its other namespaces.
    const { member } = place
    if (failures.has(member)) return
    try {
      const usage = await dependencies.memberMetrics?.usageIn({ ...place, cluster }, exchange.signal)
      for (const entry of pods) {
        const one = usage?.get(entry.key.name)
        if (one !== undefined) found.push({ entry, usage: one })
      }
    } catch (error) {
      if (exchange.signal.aborted || !(error instanceof Error)) throw error
      failures.set(member, error)
    }
  }
  const queue = [...places]
  const worker = async (): Promise<void> => {
    for (let place = queue.shift(); place !== undefined; place = queue.shift()) await ask(place)
  }
  await exchange.whileWaiting(Promise.all(Array.from({ length: concurrency }, worker)))
  const [failure] = failures.values()
  if (failure !== undefined && found.length === 0)
    throw isStatusError(failure) ? failure : serviceUnavailable('the metrics of pods cannot be read now', failure)
  exchange.warnings.push(...[...failures.values()].map(({ message }) => `metrics of some pods are missing: ${message}`))
  return found.sort((a, b) => compareKeys(a.entry, b.entry))
}

/** The pods by member and namespace; pods that run in no member are left out. */
async function placesOf(exchange: Exchange, entries: readonly Entry[]): Promise<Place[]> {
  const places = new Map<string, Place>()
  for (const [i, entry] of entries.entries()) {
    if (i % podsPerTurn === podsPerTurn - 1) await exchange.turn()
    const { annotations } = exchange.cluster?.isPlain === true ? {} : decodeMetadata(entry.bytes)
    const member = exchange.cluster?.isPlain === true ? '' : annotations?.[memberAnnotation]
    if (member === undefined) continue
    const { namespace } = entry.key
    const memberNamespace = annotations?.[memberNamespaceAnnotation]
    const key = `${member}/${namespace}/${memberNamespace}`
    const place = places.get(key)
    if (place === undefined) places.set(key, { member, namespace, memberNamespace, entries: [entry] })
    else place.entries.push(entry)
  }
  return [...places.values()]
}

function podMetrics({ entry: { key, facts }, usage }: Measured): KubeObject {
  const { timestamp, window, containers } = usage
  const { name, namespace } = key
  const labels = facts.labels === undefined ? {} : { labels: { ...facts.labels } }
  return {
    kind: 'PodMetrics',
    apiVersion,
    metadata: { name, namespace, creationTimestamp: timestamp, ...labels },
    timestamp,
    window,
    containers,
  }
}

/** NodeMetrics: the resources that these pods use on each node. */
function nodeMetrics(measured: readonly Measured[]): KubeObject[] {
  const nodes = new Map<string, { sum: Map<string, Quantity>; timestamp: string; window: string }>()
  for (const { entry, usage } of measured) {
    const { nodeName = '' } = (decodeObject(entry.bytes)['spec'] ?? {}) as { nodeName?: string }
    if (nodeName === '') continue
    const node = nodes.get(nodeName) ?? { sum: new Map<string, Quantity>(), ...usage }
    for (const container of usage.containers) addAmounts(node.sum, amountsOf(container.usage))
    // The oldest timestamp counts: no part of the sum is older.
    if (usage.timestamp < node.timestamp) node.timestamp = usage.timestamp
    nodes.set(nodeName, node)
  }
  return [...nodes]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, { sum, timestamp, window }]) => ({
      kind: 'NodeMetrics',
      apiVersion,
      metadata: { name, creationTimestamp: timestamp },
      timestamp,
      window,
      usage: listOf(sum),
    }))
}

function selects({ everything, labels, fields }: Selection, { metadata }: KubeObject): boolean {
  if (everything) return true
  if (!labels.matches(metadata.labels ?? {})) return false
  return fields.matches((field) => (field === 'metadata.name' ? metadata.name : metadata.namespace) ?? '')
}

function itemOf(object: KubeObject): ReturnType<typeof listItem> {
  return listItem(Buffer.from(encodeJson(object)))
}

function compareKeys({ key: a }: Entry, { key: b }: Entry): number {
  if (a.namespace !== b.namespace) return a.namespace < b.namespace ? -1 : 1
  return a.name < b.name ? -1 : 1
}

function definitionOf(
  resource: string,
  kind: string,
  { namespaced }: { readonly namespaced: boolean },
  columns: readonly PrinterColumn[],
): ResourceDefinition {
  const info: ResourceInfo = {
    group,
    version: 'v1beta1',
    resource,
    singular: '',
    kind,
    namespaced,
    verbs: ['get', 'list'],
    shortNames: [],
    categories: [],
    subresources: [],
    builtIn: false,
  }
  return {
    info,
    storageKey: `${resource}.${group}`,
    storageApiVersion: apiVersion,
    schema: undefined,
    inVersion: () => undefined,
    strategy: {
      hasGeneration: false,
      statusMembers: [],
      hasStatus: false,
      selectableFields: {},
      validateName: pathSegmentName,
    },
    custom: { columns },
  }
}

function column(name: string, jsonPath: string): PrinterColumn {
  return { name, type: 'string', jsonPath }
}
