// DELETE of one object or of all that a selection names.
import { isStatusError } from '../../apimachinery/status/index.ts'
import { jsonBytes, jsonDocument } from '../codec/answers.ts'
import { viewOf } from '../codec/representations.ts'
import type { Answer } from '../server/exchange.ts'
import type { Call } from './call.ts'
import { readDeleteOptions } from './delete-options.ts'
import { listAnswer, listMeta, paged } from './list.ts'
import { listOptionsOf } from './list-options.ts'
import { listPosition } from './read-position.ts'
import { selectionOf } from './selection.ts'

export async function deleteObject(call: Call): Promise<Answer> {
  const { definition, request, representation, parts, target, exchange } = call
  const options = await readDeleteOptions(call)
  const { deleted, object, bytes } = await parts.registry.delete(target, request.name, options)
  // Namespaces, pods and the like come back as they are while they end; what is gone is told by a Status.
  const { group, resource } = definition.info
  const { answersDeleted = false, orphansByDefault = false } = definition.strategy
  if (orphansByDefault && resource === 'jobs' && options.propagationPolicy === undefined)
    exchange.warnings.push(childPodsStay)
  if (!deleted || answersDeleted)
    return jsonBytes(viewOf(definition, representation, { now: target.context.now }).object(bytes))
  const { name, uid } = object.metadata
  const details = { name, ...(group === '' ? {} : { group }), kind: resource, uid }
  return jsonDocument({ kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success', details })
}

const childPodsStay =
  'child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress this warning'

/** Every object of the collection that matches is deleted; answers with the list of them. */
export async function deleteCollection(call: Call): Promise<Answer> {
  const { definition, request, query, parts, target, objects, representation } = call
  const options = await readDeleteOptions(call)
  const selection = selectionOf(query, definition)
  const scope = {
    resource: definition.storageKey,
    ...(request.namespace === '' ? {} : { namespace: request.namespace }),
  }
  listOptionsOf(query, 'list')
  const position = listPosition(withoutPosition(query))
  const page = paged(objects.list(scope), selection, position)
  for (const { key } of page.entries) {
    try {
      await parts.registry.delete({ ...target, namespace: key.namespace }, key.name, options)
    } catch (error) {
      if (!isStatusError(error, 'NotFound')) throw error
    }
  }
  const view = viewOf(definition, representation, { now: target.context.now })
  return listAnswer(view, page.entries, listMeta(page, objects.revision(), selection))
}

/** A revision is a precondition of every object here, not a state to look at. */
function withoutPosition(query: URLSearchParams): URLSearchParams {
  const copy = new URLSearchParams(query)
  copy.delete('resourceVersion')
  copy.delete('resourceVersionMatch')
  return copy
}
