// LogicalClusters in the API of a logical cluster: its children, which tenants with permission there create, change and
// delete themselves.
import { Buffer } from 'node:buffer'
import { randomBytes } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import {
  encodeJson,
  zeroRevision,
  type ClusterName,
  type JsonObject,
  type KubeObject,
} from '#apimachinery/meta/index.ts'
import { fieldForbidden } from '#apimachinery/field/index.ts'
import {
  alreadyExists,
  badRequest,
  conflict,
  expired,
  invalid,
  isStatusError,
  methodNotAllowed,
  notFound,
  serviceUnavailable,
} from '#apimachinery/status/index.ts'
import type { KubeClient } from '#client/index.ts'
import { logicalClusters, type LogicalCluster as Stored } from '#crds/index.ts'
import { listItem } from '#virtualapi/codec/list-chunks.ts'
import { decodeBody, decodeObjectBody, objectOf } from '#virtualapi/codec/read-object.ts'
import { viewOf } from '#virtualapi/codec/representations.ts'
import { jsonBytes, jsonDocument } from '#virtualapi/codec/responses.ts'
import type { ChildClusters, EndpointDependencies } from '#virtualapi/endpoints/call/dependencies.ts'
import type { EndpointCall } from '#virtualapi/endpoints/call/endpoint-call.ts'
import { recordGiven } from '#virtualapi/endpoints/call/record-request.ts'
import { requireContentType, requireName } from '#virtualapi/endpoints/verbs/create.ts'
import { readDeleteOptions } from '#virtualapi/endpoints/verbs/delete-options.ts'
import { listOptionsOf } from '#virtualapi/endpoints/verbs/list-options.ts'
import { listResponse } from '#virtualapi/endpoints/verbs/list.ts'
import { patchFunction } from '#virtualapi/endpoints/verbs/patch.ts'
import { selectionOf } from '#virtualapi/endpoints/verbs/selection.ts'
import { watchOptions, watchResponse } from '#virtualapi/endpoints/verbs/watch.ts'
import { childCauses, childNameOf, hostNameOf, shownChild, storedChild } from '#virtualapi/hierarchy/child-clusters.ts'
import { stampRevision } from '#virtualapi/kinds/resources/object-bytes.ts'
import type { ApiResponse } from '#virtualapi/request/exchange.ts'
import { placeInTree } from '#virtualapi/request/hierarchy.ts'
import { entriesOf, MembersWatch, shownMembers, type ShownMembers } from './members-watch.ts'

type Call = EndpointCall<EndpointDependencies>

/** Most children that one list reads; limits.children allows fewer in practice. */
const maxListed = 10_000
const parallelReads = 16

/** Answers each verb. A client learns of the children of this logical cluster and of nothing else. */
export async function childClusters(call: Call, children: ChildClusters): Promise<ApiResponse> {
  const { definition, exchange, request } = call
  const { client } = children
  if (client === undefined) throw serviceUnavailable('the server is starting, please try again')
  if (request.subresource !== '') throw methodNotAllowed(definition.info, exchange.request.method)
  const parts = { ...children, client }
  switch (exchange.info.verb) {
    case 'get':
      return answered(call, await readChild(call, parts))
    case 'list':
      return await list(call, parts)
    case 'watch':
      return await watch(call, parts)
    case 'create':
      return await create(call, parts)
    case 'update':
    case 'patch':
      return await update(call, parts)
    case 'delete':
      return await remove(call, parts)
    default:
      throw methodNotAllowed(definition.info, exchange.request.method)
  }
}

type Parts = ChildClusters & { readonly client: KubeClient }

function answered({ definition, representation, target, cluster }: Call, object: Stored, status = 200): ApiResponse {
  const view = viewOf(definition, representation, { now: target.context.now })
  const shown = encoded(shownChild(object, cluster.name))
  const revision = Number(object.metadata.resourceVersion ?? 0) as ShownMembers['revision']
  return jsonBytes(view.object(stampRevision(shown, revision)), { status })
}

const encoded = (object: KubeObject): Uint8Array => Buffer.from(encodeJson(object as unknown as JsonObject))

/** The child that the URL names, as it is stored. Throws 404 for every other LogicalCluster. */
async function readChild(
  { dependencies, cluster, request, definition, exchange }: Call,
  { client }: Parts,
): Promise<Stored> {
  const named = [...dependencies.directory.childrenOf(cluster.name)].filter((one) => childNameOf(one) === request.name)
  // A child that was just created is not in the directory yet.
  const name = named[0]?.name ?? hostNameOf(request.name, cluster)
  const found = await client.tryGet<Stored>(logicalClusters, { name }, { signal: exchange.signal })
  if (found?.spec?.parentRef?.name !== cluster.name) throw notFound(definition.info, request.name)
  return found
}

async function shownChildren({ dependencies, cluster, exchange }: Call, { client }: Parts): Promise<ShownMembers> {
  const names: ClusterName[] = []
  for (const { name } of dependencies.directory.childrenOf(cluster.name)) if (names.length < maxListed) names.push(name)
  const found: [string, Uint8Array][] = []
  const next = async (): Promise<void> => {
    for (let name = names.pop(); name !== undefined; name = names.pop()) {
      const object = await client.tryGet<Stored>(logicalClusters, { name }, { signal: exchange.signal })
      if (object?.spec?.parentRef?.name !== cluster.name) continue
      const shown = shownChild(object, cluster.name)
      found.push([shown.metadata.name ?? '', encoded(shown)])
    }
  }
  await Promise.all(Array.from({ length: parallelReads }, next))
  return shownMembers(new Map(found.sort(([a], [b]) => (a < b ? -1 : 1))))
}

async function list(call: Call, parts: Parts): Promise<ApiResponse> {
  const { definition, representation, query, target, cluster } = call
  const view = viewOf(definition, representation, {
    includeObject: query.get('includeObject') ?? 'Metadata',
    now: target.context.now,
  })
  const shown = await shownChildren(call, parts)
  const selection = selectionOf(query, definition)
  const items = entriesOf(shown, cluster.id).filter((entry) => selection.matches(entry))
  return listResponse(
    view,
    items.map(({ bytes }) => listItem(bytes)),
    { resourceVersion: String(shown.revision) },
  )
}

async function watch(call: Call, parts: Parts): Promise<ApiResponse> {
  const { definition, exchange, representation, query, request, target, dependencies, cluster } = call
  const options = watchOptions(listOptionsOf(query, 'watch'))
  const selection = selectionOf(query, definition, request.name === '' ? {} : { name: request.name })
  const view = viewOf(definition, representation, {
    includeObject: query.get('includeObject') ?? 'Metadata',
    now: target.context.now,
  })
  const known = await shownChildren(call, parts)
  const isFromNow = options.sendInitialEvents || options.since === zeroRevision
  if (!isFromNow && options.since !== known.revision)
    throw expired('The children have changed since that resourceVersion: list them again.')
  let latest: ShownMembers | undefined = known
  const watched = new MembersWatch({
    cluster: cluster.id,
    known,
    look: () => latest,
    follow: (changed) =>
      parts.follow(
        cluster.name,
        coalesced(async () => {
          latest = await shownChildren(call, parts).catch(() => undefined)
          changed()
        }),
      ),
  })
  const initial = options.sendInitialEvents ? entriesOf(known, cluster.id) : undefined
  const form = { definition, selection, view }
  return watchResponse(
    { form, watch: watched, initial, since: known.revision, leastProgress: zeroRevision, options },
    exchange,
    dependencies,
  )
}

/** A function that runs `work` once at a time, and once more if it was called meanwhile. */
function coalesced(work: () => Promise<void>): () => void {
  const state = { isRunning: false, isDue: false }
  const run = async (): Promise<void> => {
    state.isRunning = true
    while (state.isDue) {
      state.isDue = false
      await work()
    }
    state.isRunning = false
  }
  return () => {
    state.isDue = true
    if (!state.isRunning) void run()
  }
}

async function create(call: Call, parts: Parts): Promise<ApiResponse> {
  const { definition, exchange, fieldValidation, dependencies, cluster, target } = call
  const contentType = requireContentType(exchange.header('content-type'))
  const decoded = decodeObjectBody(await exchange.request.body(), contentType, definition.info.kind)
  const child = objectOf(decoded, { definition, fieldValidation, warnings: exchange.warnings }) as Stored
  const given: Partial<Stored['metadata']> = child.metadata
  if (given.name === undefined && given.generateName !== undefined)
    child.metadata.name = `${given.generateName}${randomBytes(3).toString('hex')}`
  const { name } = child.metadata
  recordGiven(call, child)
  requireValid(child, call)
  for (const known of dependencies.directory.childrenOf(cluster.name))
    if (childNameOf(known) === name) throw alreadyExists(definition.info, name, { ending: known.deleting })
  if (cluster.deleting) throw conflict(definition.info, name, `logical cluster "${cluster.name}" is being deleted`)
  const stored = storedChild(child, cluster, { user: exchange.user })
  await requirePlace(stored, name, call, parts)
  if (target.context.dryRun) return answered(call, stored, 201)
  const created = await parts.client
    .create<Stored>(logicalClusters, stored, { signal: exchange.signal })
    .catch((error: unknown) => {
      throw isStatusError(error, 'AlreadyExists') ? alreadyExists(definition.info, name) : error
    })
  return answered(call, created, 201)
}

async function update(call: Call, parts: Parts): Promise<ApiResponse> {
  const { definition, exchange, cluster, request, target } = call
  const current = await readChild(call, parts)
  const before = structuredClone(shownChild(current, cluster.name)) as Stored
  const child = await changed(call, before)
  requireName(child.metadata.name, request.name)
  requireValid(child, call, current)
  const { resourceVersion } = child.metadata
  if (resourceVersion !== undefined && resourceVersion !== current.metadata.resourceVersion)
    throw conflict(
      definition.info,
      request.name,
      'the object has been modified; please apply your changes to the latest version and try again',
    )
  const stored = storedChild(child, cluster, { user: exchange.user, old: current })
  await requirePlace(stored, request.name, call, parts)
  const isSame =
    isDeepStrictEqual(stored.spec, current.spec) &&
    isDeepStrictEqual(stored.metadata.annotations, current.metadata.annotations)
  if (target.context.dryRun || isSame) return answered(call, { ...current, ...stored })
  return answered(call, await parts.client.update<Stored>(logicalClusters, stored, { signal: exchange.signal }))
}

/** The child as the request wants it. */
async function changed(call: Call, before: Stored): Promise<Stored> {
  const { definition, exchange, fieldValidation, patchType, target } = call
  const body = await exchange.request.body()
  if (exchange.info.verb === 'update') {
    const decoded = decodeObjectBody(body, requireContentType(exchange.header('content-type')), definition.info.kind)
    return objectOf(decoded, { definition, fieldValidation, warnings: exchange.warnings }) as Stored
  }
  const apply = patchFunction(patchType, definition)
  const { value } = decodeBody(body, 'application/json')
  const patched = apply(before as unknown as JsonObject, value, target.context.work)
  if (patched === null || typeof patched !== 'object' || Array.isArray(patched))
    throw badRequest('the patch gives no object')
  const decoded = decodeObjectBody(Buffer.from(encodeJson(patched)), 'application/json', definition.info.kind)
  return objectOf(decoded, { definition, fieldValidation, warnings: exchange.warnings }) as Stored
}

async function remove(call: Call, parts: Parts): Promise<ApiResponse> {
  const { definition, exchange, request, target } = call
  const options = await readDeleteOptions(call)
  const current = await readChild(call, parts)
  const { name, uid = '' } = current.metadata
  if (options.uid !== undefined && options.uid !== uid)
    throw conflict(
      definition.info,
      request.name,
      `Precondition failed: UID in precondition: ${options.uid}, UID in object meta: ${uid}`,
    )
  const why = parts.check.removal(name as ClusterName)
  if (why !== undefined) throw conflict(definition.info, request.name, why)
  if (!target.context.dryRun) await parts.client.delete(logicalClusters, { name }, { uid, signal: exchange.signal })
  const details = { name: request.name, group: definition.info.group, kind: definition.info.resource, uid }
  return jsonDocument({ kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success', details })
}

function requireValid(child: Stored, { cluster }: Call, old?: Stored): void {
  const causes = childCauses(child, cluster, old)
  if (causes.length > 0) throw invalid(kindName, child.metadata.name, causes)
}

async function requirePlace(stored: Stored, name: string, { target }: Call, { check }: Parts): Promise<void> {
  const place = { name: stored.metadata.name as ClusterName, ...placeInTree(stored.spec) }
  const problem = await check.place(place, target.context)
  if (problem !== undefined) throw invalid(kindName, name, [fieldForbidden(problem.field, problem.message)])
}

const kindName = { group: logicalClusters.group, kind: 'LogicalCluster' }
