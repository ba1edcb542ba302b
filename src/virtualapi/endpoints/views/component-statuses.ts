// ComponentStatuses: the health of the components of a control plane. Here one process does the work of all components,
// so all of them are healthy if it answers.
import { Buffer } from 'node:buffer'
import { encodeJson, type KubeObject } from '#apimachinery/meta/index.ts'
import { notFound } from '#apimachinery/status/index.ts'
import { jsonBytes } from '#virtualapi/codec/responses.ts'
import { listItem } from '#virtualapi/codec/list-chunks.ts'
import { viewOf } from '#virtualapi/codec/representations.ts'
import type { ApiResponse } from '#virtualapi/request/exchange.ts'
import type { EndpointCall } from '#virtualapi/endpoints/call/endpoint-call.ts'
import { listResponse } from '#virtualapi/endpoints/verbs/list.ts'
import type { EndpointDependencies } from '#virtualapi/endpoints/call/dependencies.ts'
import { selectionOf } from '#virtualapi/endpoints/verbs/selection.ts'

const components = ['controller-manager', 'etcd-0', 'scheduler'] as const

/** Answers GET and LIST; all components are healthy. Throws 404 for other names. */
export function componentStatuses(call: EndpointCall<EndpointDependencies>): ApiResponse {
  const { definition, representation, query, request, target } = call
  const includeObject = query.get('includeObject') ?? 'Metadata'
  const view = viewOf(definition, representation, { includeObject, now: target.context.now })
  if (request.name !== '') {
    const found = components.find((name) => name === request.name)
    if (found === undefined) throw notFound({ group: '', resource: 'componentstatus' }, request.name)
    return jsonBytes(view.object(statusOf(found)))
  }
  const { labels, fields } = selectionOf(query, definition)
  const found = components.filter(
    (name) => labels.matches({}) && fields.matches((field) => (field === 'metadata.name' ? name : '')),
  )
  const entries = found.map((name) => listItem(statusOf(name)))
  return listResponse(view, entries, {})
}

function statusOf(name: string): Uint8Array {
  const object: KubeObject = {
    kind: 'ComponentStatus',
    apiVersion: 'v1',
    metadata: { name },
    conditions: [{ type: 'Healthy', status: 'True', message: 'ok' }],
  }
  return Buffer.from(encodeJson(object))
}
