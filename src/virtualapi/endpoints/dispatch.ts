// Chooses the endpoint that answers an authorized request.
import {
  methodNotAllowed,
  notFound,
  pathNotFound,
  requestEntityTooLarge,
  statusError,
} from '#apimachinery/status/index.ts'
import type { ResourceTarget } from '#virtualapi/request/request-info.ts'
import { isBuiltInGroup } from '#virtualapi/kinds/resources/builtin-resources.ts'
import type { SubresourceInfo } from '#virtualapi/kinds/resources/resource-info.ts'
import type { ApiResponse, Exchange } from '#virtualapi/request/exchange.ts'
import type { EndpointDependencies, ObjectDependencies } from './call/dependencies.ts'
import { aggregatedRequest, keepAvailability, passOn } from './forwarded/aggregated.ts'
import { allClusters } from './views/all-clusters.ts'
import { childClusters } from './views/child-clusters.ts'
import { logicalClusters } from '#crds/index.ts'
import { showsChildren } from '#virtualapi/hierarchy/child-clusters.ts'
import { bindThroughCollection, bindPod } from './subresources/binding.ts'
import { isLargeSize } from '#virtualapi/codec/effort.ts'
import { componentStatuses } from './views/component-statuses.ts'
import { prepareCall, type EndpointCall } from './call/endpoint-call.ts'
import { connectPod, isConnectSubresource } from './forwarded/connect.ts'
import { createObject } from './verbs/create.ts'
import { deleteCollection, deleteObject } from './verbs/delete.ts'
import { isAccessRequest, issueAccess, issuesAccess } from './documents/access-token.ts'
import { discovery } from './documents/discovery.ts'
import { evictPod } from './subresources/eviction.ts'
import { passToMember } from './forwarded/member-api.ts'
import { requireNoForward, withForward } from './forwarded/forward-pods.ts'
import { getObject, readObject, waitForAskedRevision } from './verbs/get.ts'
import { listObjects } from './verbs/list.ts'
import { memberViews } from './views/member-views.ts'
import { patchObject } from './verbs/patch.ts'
import { answerPodMetrics, servedMetrics } from './views/pod-metrics.ts'
import { isProxySubresource, proxy } from './forwarded/proxy.ts'
import { createReview, isReview } from './views/reviews.ts'
import { scale } from './subresources/scale.ts'
import { canOffload, shouldOffload } from './should-offload.ts'
import { requestToken } from './subresources/token-request.ts'
import { updateObject } from './verbs/update.ts'
import { viewed } from './verbs/selection.ts'
import { requirePermitted } from './call/permission-policy.ts'
import { watchObjects } from './verbs/watch.ts'

type Endpoint<Dependencies extends ObjectDependencies> = (call: EndpointCall<Dependencies>) => Promise<ApiResponse>
type Endpoints<Dependencies extends ObjectDependencies> = Readonly<Record<string, Endpoint<Dependencies>>>

/**
 * The endpoints of the offload thread. A GET does not wait for a revision there: this thread has waited for it before.
 */
const offloadedVerbs: Endpoints<ObjectDependencies> = {
  get: readObject,
  create: createObject,
  update: updateObject,
  patch: patchObject,
  delete: deleteObject,
}
const verbs: Endpoints<EndpointDependencies> = {
  ...offloadedVerbs,
  get: getObject,
  list: listObjects,
  watch: watchObjects,
  deletecollection: deleteCollection,
}

const changesObject = new Set(['create', 'update', 'patch', 'connect'])

/** Subresources that read the whole object and write a part of it. */
const partSubresources = new Set(['status', 'finalize', 'approval', 'resize', 'ephemeralcontainers'])

export async function dispatch(exchange: Exchange, dependencies: EndpointDependencies): Promise<ApiResponse> {
  const { target, cluster } = exchange.info
  if (exchange.move === 'left') return dependencies.moved.answer(exchange)
  if (exchange.info.member !== undefined) return passToMember(exchange, dependencies)
  if (target.kind === 'path') return discovery(exchange, dependencies, target.path)
  if (isAccessRequest(target) && issuesAccess(exchange, dependencies))
    return issueAccess(exchange, dependencies, target)
  if (cluster.kind === 'all') return allClusters(exchange, dependencies, target)
  if (isReview(target)) return createReview(exchange, dependencies, target)
  // A server of the consumer must not answer for the resources of an export.
  if (!isBuiltInGroup(target.group) && exchange.view === undefined) {
    const remote = await aggregatedRequest(exchange, dependencies)
    if (remote !== undefined) return passOn(exchange, dependencies, remote)
    const metrics = await servedMetrics(exchange, dependencies, target)
    if (metrics !== undefined) return answerPodMetrics(exchange, dependencies, target, metrics)
  }
  const call = withForward(await prepareCall(exchange, dependencies, target))
  if (exchange.view !== undefined) requireShown(call)
  if (isOfChildren(call)) {
    // A provider creates no logical clusters in the name of a consumer.
    if (exchange.view !== undefined) throw pathNotFound()
    return childClusters(call, dependencies.children)
  }
  if (call.definition.isShared) await requirePermitted(call)
  if (target.group === 'apiregistration.k8s.io') keepAvailability(exchange, dependencies)
  if (target.group === '' && target.resource === 'componentstatuses') return componentStatuses(call)
  if (call.definition.isProjected) return memberViews(call)
  const offloaded = shouldOffload(call)
  if (typeof offloaded === 'boolean' ? offloaded : await offloaded) {
    requireNoForward(call)
    if (exchange.info.verb === 'get') await waitForAskedRevision(call)
    return dependencies.offload.answer(call)
  }
  const response = (): Promise<ApiResponse> =>
    target.subresource === '' ? wholeObject(call, target, verbs) : subresource(call, target)
  return changesObject.has(exchange.info.verb) ? untilLarge(call, response) : response()
}

/** Throws 404 for an object that the view of the request hides, and 413 for a large body. */
function requireShown({ exchange, definition, request, objects, target }: EndpointCall<EndpointDependencies>): void {
  const { rule } = target.context
  // The offload thread knows no references, and this thread serves all logical clusters.
  if (rule?.plain === undefined && exchange.contentLength > largestByReference)
    throw requestEntityTooLarge('bodies of requests for objects that are claimed by reference are limited to 512 KiB')
  const matches = rule?.matches
  if (matches === undefined) return
  if (request.name === '') return
  const entry = objects.get(definition.storageKey, request.namespace, request.name)
  if (entry !== undefined && !matches(viewed(entry))) throw notFound(definition.info, request.name)
}

const largestByReference = 512 * 1024

/** True for LogicalClusters in the API of their parent. */
function isOfChildren({ definition, cluster, objects, dependencies }: EndpointCall<EndpointDependencies>): boolean {
  const { group, resource } = definition.info
  if (group !== logicalClusters.group || resource !== logicalClusters.resource) return false
  return showsChildren(cluster, objects, dependencies.directory)
}

/**
 * The answer; it comes from the offload thread if webhooks or policies make a small object large: the request then
 * begins again there. A request that cannot be answered there is refused with 413.
 */
async function untilLarge(
  call: EndpointCall<EndpointDependencies>,
  response: () => Promise<ApiResponse>,
): Promise<ApiResponse> {
  const { exchange, dependencies } = call
  exchange.grown = (size) => {
    if (!isLargeSize(size)) return
    exchange.needsThread = true
    throw requestEntityTooLarge('what admission made of the object is too large for this request')
  }
  try {
    return await response()
  } catch (error) {
    if (!exchange.needsThread || !canOffload(call)) throw error
    requireNoForward(call)
    return await dependencies.offload.answer(call)
  }
}

/** Answers, on the offload thread, a request that `shouldOffload` chose: a verb on one object or on a part of it. */
export async function dispatchOffloaded(exchange: Exchange, dependencies: ObjectDependencies): Promise<ApiResponse> {
  const { target } = exchange.info
  if (target.kind !== 'resource') throw new Error('only requests about objects are offloaded')
  const call = await prepareCall(exchange, dependencies, target)
  if (target.subresource === '') return wholeObject(call, target, offloadedVerbs)
  return partOfObject(call, target, requireRow(call, target), offloadedVerbs)
}

function wholeObject<Dependencies extends ObjectDependencies>(
  call: EndpointCall<Dependencies>,
  target: ResourceTarget,
  endpoints: Endpoints<Dependencies>,
): Promise<ApiResponse> {
  const { definition, exchange } = call
  const endpoint = endpoints[exchange.info.verb]
  // `prepareCall` has checked this for built-in resources; custom resources are checked here.
  if (endpoint === undefined || !definition.info.verbs.includes(exchange.info.verb))
    throw methodNotAllowed(definition.info, exchange.request.method)
  if (target.group === '' && target.resource === 'bindings') return bindThroughCollection(call)
  return endpoint(call)
}

async function subresource(call: EndpointCall<EndpointDependencies>, target: ResourceTarget): Promise<ApiResponse> {
  const { verb } = call.exchange.info
  const { group, resource, subresource: name } = target
  const row = requireRow(call, target)
  if (isConnectSubresource(resource, group, name)) return connectPod(call)
  if (isProxySubresource(group, name)) return proxy(call)
  if (name === 'binding' && verb === 'create') return bindPod(call)
  if (group === '' && name === 'eviction' && verb === 'create') return evictPod(call)
  if (group === '' && resource === 'serviceaccounts' && name === 'token') return requestToken(call)
  return partOfObject(call, target, row, verbs)
}

/** The subresource's row of the resource table. Throws 404 if there is no such row. */
function requireRow({ definition: { info } }: EndpointCall, { name, subresource }: ResourceTarget): SubresourceInfo {
  const row = info.subresources.find((candidate) => candidate.name === subresource)
  if (row === undefined) throw info.builtIn ? pathNotFound() : notFound(info, name)
  return row
}

async function partOfObject<Dependencies extends ObjectDependencies>(
  call: EndpointCall<Dependencies>,
  target: ResourceTarget,
  row: SubresourceInfo,
  endpoints: Endpoints<Dependencies>,
): Promise<ApiResponse> {
  const { definition, exchange } = call
  const { verb } = exchange.info
  const { subresource: name } = target
  if (name === 'scale') return scale(call)
  if (!partSubresources.has(name)) throw notFound(definition.info, `${target.name}/${name}`)
  const endpoint = endpoints[verb]
  if (definition.info.builtIn && !row.verbs.includes(verb))
    throw statusError(405, 'MethodNotAllowed', 'the server does not allow this method on the requested resource', {
      details: {},
    })
  if (endpoint === undefined || !['get', 'update', 'patch'].includes(verb))
    throw methodNotAllowed(definition.info, definition.info.builtIn ? exchange.request.method : verb)
  return endpoint(call)
}
