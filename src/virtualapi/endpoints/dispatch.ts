// Chooses the endpoint that answers an authorized request.
import { methodNotAllowed, notFound, pathNotFound, statusError } from '../../apimachinery/status/index.ts'
import type { ResourceTarget } from '../request/request-info.ts'
import type { Answer, Exchange } from '../server/exchange.ts'
import type { ServerParts } from '../server/parts.ts'
import { allClusters } from './all-clusters.ts'
import { bindListed, bindPod } from './binding.ts'
import { isHeavy } from '../heavy/is-heavy.ts'
import { prepareCall, type Call } from './call.ts'
import { connectPod, isConnect } from './connect.ts'
import { createObject } from './create.ts'
import { deleteCollection, deleteObject } from './delete.ts'
import { discovery } from './discovery.ts'
import { evictPod } from './eviction.ts'
import { getObject } from './get.ts'
import { listObjects } from './list.ts'
import { patchObject } from './patch.ts'
import { createReview, isReview } from './reviews.ts'
import { scale } from './scale.ts'
import { requestToken } from './token-request.ts'
import { updateObject } from './update.ts'
import { watchObjects } from './watch.ts'

type Endpoint = (call: Call) => Promise<Answer>

const verbs: Readonly<Record<string, Endpoint>> = {
  get: getObject,
  list: listObjects,
  watch: watchObjects,
  create: createObject,
  update: updateObject,
  patch: patchObject,
  delete: deleteObject,
  deletecollection: deleteCollection,
}

/** Subresources that read the whole object and write a part of it. */
const partSubresources = new Set(['status', 'finalize', 'approval', 'resize', 'ephemeralcontainers'])

export async function dispatch(exchange: Exchange, parts: ServerParts): Promise<Answer> {
  const { target, cluster } = exchange.info
  if (target.kind === 'path') return discovery(exchange, parts, target.path)
  if (cluster.kind === 'all') return allClusters(exchange, parts, target)
  if (isReview(target)) return createReview(exchange, parts, target)
  const call = await prepareCall(exchange, parts, target)
  if (parts.heavy !== undefined && (await isHeavy(call))) return parts.heavy.answer(call)
  if (target.subresource !== '') return subresource(call, target)
  const endpoint = verbs[exchange.info.verb]
  // `prepareCall` has checked this for built-in resources; custom resources are checked here.
  if (endpoint === undefined || !call.definition.info.verbs.includes(exchange.info.verb))
    throw methodNotAllowed(call.definition.info, exchange.request.method)
  if (target.group === '' && target.resource === 'bindings') return bindListed(call)
  return endpoint(call)
}

async function subresource(call: Call, target: ResourceTarget): Promise<Answer> {
  const { definition, exchange } = call
  const { verb } = exchange.info
  const { group, resource, subresource: name } = target
  const row = definition.info.subresources.find((candidate) => candidate.name === name)
  if (row === undefined) throw definition.info.builtIn ? pathNotFound() : notFound(definition.info, target.name)
  if (isConnect(resource, group, name)) return connectPod(call)
  if (name === 'scale') return scale(call)
  if (name === 'binding' && verb === 'create') return bindPod(call)
  if (group === '' && name === 'eviction' && verb === 'create') return evictPod(call)
  if (group === '' && resource === 'serviceaccounts' && name === 'token') return requestToken(call)
  if (!partSubresources.has(name)) throw notFound(definition.info, `${target.name}/${name}`)
  const endpoint = verbs[verb]
  if (definition.info.builtIn && !row.verbs.includes(verb))
    throw statusError(405, 'MethodNotAllowed', 'the server does not allow this method on the requested resource', {
      details: {},
    })
  if (endpoint === undefined || !['get', 'update', 'patch'].includes(verb))
    throw methodNotAllowed(definition.info, definition.info.builtIn ? exchange.request.method : verb)
  return endpoint(call)
}
