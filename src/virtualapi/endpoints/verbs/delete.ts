// DELETE of one object, or of the objects of a collection that selectors match.
import { tolerate } from '#apimachinery/status/index.ts'
import { jsonBytes, jsonDocument } from '#virtualapi/codec/responses.ts'
import { viewOf } from '#virtualapi/codec/representations.ts'
import type { DeleteOptions } from '#virtualapi/write/registry/deletion.ts'
import type { ApiResponse } from '#virtualapi/request/exchange.ts'
import type { EndpointCall } from '#virtualapi/endpoints/call/endpoint-call.ts'
import type { EndpointDependencies } from '#virtualapi/endpoints/call/dependencies.ts'
import { readDeleteOptions } from './delete-options.ts'
import { listResponse, readPage } from './list.ts'
import { listOptionsOf } from './list-options.ts'

export async function deleteObject(call: EndpointCall): Promise<ApiResponse> {
  const { definition, request, representation, dependencies, target } = call
  const options = await readDeleteOptions(call)
  warnOfOrphanedPods(call, options)
  const { deleted, object, bytes } = await dependencies.registry.delete(target, request.name, options)
  // The answer is the object if it is only marked for deletion (finalizers, graceful deletion), and a Status if it is
  // gone.
  const { group, resource } = definition.info
  const { answersDeleted = false } = definition.strategy
  if (!deleted || answersDeleted)
    return jsonBytes(viewOf(definition, representation, { now: target.context.now }).object(bytes))
  const { name, uid } = object.metadata
  const details = { name, ...(group === '' ? {} : { group }), kind: resource, uid }
  return jsonDocument({ kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success', details })
}

const childPodsStay =
  'child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress this warning'

/** Warns as kube-apiserver does, even if there is nothing to delete. */
function warnOfOrphanedPods({ definition: { info, strategy }, exchange }: EndpointCall, options: DeleteOptions): void {
  if (strategy.orphansByDefault === true && info.resource === 'jobs' && options.propagationPolicy === undefined)
    exchange.warnings.push(childPodsStay)
}

/** Deletes every object of the collection that matches, and answers with the list of them. */
export async function deleteCollection(call: EndpointCall<EndpointDependencies>): Promise<ApiResponse> {
  const { definition, query, dependencies, target, representation } = call
  const options = await readDeleteOptions(call)
  const { entries, metadata } = await readPage(call, listOptionsOf(query, 'list'))
  warnOfOrphanedPods(call, options)
  for (const { key } of entries)
    await dependencies.registry
      .delete({ ...target, namespace: key.namespace, ofCollection: true }, key.name, options)
      .catch(tolerate('NotFound'))
  const view = viewOf(definition, representation, { now: target.context.now })
  return listResponse(view, entries, metadata)
}
