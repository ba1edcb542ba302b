// POST pods/NAME/binding, or bindings: a scheduler assigns a pod to a node. A pod can be assigned once.
import { aggregateText, causeText, fieldNotSupported, fieldRequired } from '#apimachinery/field/index.ts'
import { isJsonObject, type JsonObject, type JsonValue, type KubeObject } from '#apimachinery/meta/index.ts'
import { badRequest, conflict, notFound, statusError } from '#apimachinery/status/index.ts'
import { timestamp } from '#async/index.ts'
import { jsonDocument } from '#virtualapi/codec/responses.ts'
import { decodeObjectBody, objectOf, withKind } from '#virtualapi/codec/read-object.ts'
import type { RegistryTarget } from '#virtualapi/write/registry/write.ts'
import type { ApiResponse } from '#virtualapi/request/exchange.ts'
import type { EndpointCall } from '#virtualapi/endpoints/call/endpoint-call.ts'
import { recordGiven } from '#virtualapi/endpoints/call/record-request.ts'
import { requireContentType, requireNamespace } from '#virtualapi/endpoints/verbs/create.ts'

const pods = { group: '', version: 'v1', resource: 'pods' }
const bindings = { group: '', version: 'v1', kind: 'Binding' }

interface Condition {
  type: string
  status: string
  lastProbeTime?: string | null
  lastTransitionTime?: string | null
}

interface PodParts {
  spec?: { nodeName?: string; schedulingGates?: unknown[] }
  status?: { conditions?: Condition[]; nominatedNodeName?: string }
}

interface Binding {
  readonly name: string
  readonly uid: string
  /** Returns the node's name. Called after all other validation. Throws 500 if the target is not a node. */
  readonly node: () => string
  readonly annotations: JsonObject
}

/** POST pods/NAME/binding. */
export async function bindPod(call: EndpointCall): Promise<ApiResponse> {
  const { body, target } = await readBinding(call, call.request.name)
  const binding = bindingOf(body)
  if (binding.name !== call.request.name) throw badRequest('name in URL does not match name in Binding object')
  return bind(call, target, binding)
}

/** POST bindings, which old schedulers use. Nothing is stored under `bindings`. */
export async function bindThroughCollection(call: EndpointCall): Promise<ApiResponse> {
  const definition = call.dependencies.catalog.findBuiltIn(pods)
  if (definition === undefined) throw notFound(pods, '')
  const { body, target } = await readBinding(call, '')
  return bind(call, { ...target, definition }, bindingOf(body))
}

/** Decodes the Binding and asks the webhooks about it. */
async function readBinding(
  call: EndpointCall,
  podName: string,
): Promise<{ readonly body: KubeObject; readonly target: RegistryTarget }> {
  const { exchange, request, definition, fieldValidation, dependencies, target } = call
  const contentType = requireContentType(exchange.header('content-type'))
  const decoded = decodeObjectBody(await exchange.request.body(), contentType, bindings.kind)
  const expected = withKind(definition, bindings)
  const body = objectOf(decoded, { definition: expected, fieldValidation, warnings: exchange.warnings })
  recordGiven(call, body)
  requireNamespace({ namespace: textIn((body.metadata as JsonObject)['namespace']) }, request.namespace)
  const name = podName === '' ? textIn((body.metadata as JsonObject)['name']) : podName
  const part = { operation: 'CREATE', subresource: request.subresource, name, kind: bindings } as const
  return { body, target: await dependencies.registry.admitPart(target, part, body) }
}

function bindingOf(body: KubeObject): Binding {
  const metadata = body.metadata as JsonObject
  const target = objectIn(body['target'])
  return {
    name: textIn(metadata['name']),
    uid: textIn(metadata['uid']),
    node: () => nodeOf(textIn(target['kind']), textIn(target['name'])),
    annotations: objectIn(metadata['annotations']),
  }
}

const objectIn = (value: unknown): JsonObject => (isJsonObject(value) ? value : {})
const textIn = (value: JsonValue | undefined): string => (typeof value === 'string' ? value : '')

/** Throws 500 without a reason, as kube-apiserver does. */
function nodeOf(kind: string, name: string): string {
  const causes = [
    ...(kind === '' || kind === 'Node' ? [] : [fieldNotSupported('target.kind', kind, ['Node', '<empty>'])]),
    ...(name === '' ? [fieldRequired('target.name')] : []),
  ]
  if (causes.length > 0) throw statusError(500, '', aggregateText(causes.map(causeText)))
  return name
}

async function bind({ dependencies }: EndpointCall, target: RegistryTarget, binding: Binding): Promise<ApiResponse> {
  const { name } = binding
  const node = binding.node()
  const { info } = target.definition
  await dependencies.registry.update(target, name, {
    subresource: 'binding',
    change: (current) => {
      if (current === undefined) throw notFound(info, name)
      requireUnbound(current, target, binding)
      return bound(current, { ...binding, node }, timestamp(target.context.now))
    },
  })
  return jsonDocument({ kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success', code: 201 }, { status: 201 })
}

function requireUnbound(pod: KubeObject, { definition: { info } }: RegistryTarget, { name, uid }: Binding): void {
  const { uid: own = '', namespace = '', deletionTimestamp } = pod.metadata
  if (uid !== '' && uid !== own)
    throw conflict(
      info,
      name,
      `StorageError: invalid object, Code: 4, Key: /pods/${namespace}/${name}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: ${uid}, UID in object meta: ${own}`,
    )
  const { nodeName, schedulingGates = [] } = (pod as PodParts).spec ?? {}
  const why =
    deletionTimestamp !== undefined
      ? `pod ${name} is being deleted, cannot be assigned to a host`
      : nodeName
        ? `pod ${name} is already assigned to node "${nodeName}"`
        : schedulingGates.length > 0
          ? `pod ${name} has non-empty .spec.schedulingGates`
          : undefined
  if (why !== undefined) throw conflict({ group: '', resource: 'pods/binding' }, name, why)
}

/**
 * The pod with the node and the binding's annotations. Labels are not copied: that needs a feature gate that is off.
 */
function bound(
  pod: KubeObject,
  { node, annotations }: { node: string; annotations: JsonObject },
  time: string,
): KubeObject {
  const { spec = {}, status = {} } = pod as PodParts
  const { nominatedNodeName: _, conditions = [], ...rest } = status
  const { metadata } = pod
  const merged = { ...metadata.annotations, ...(annotations as Record<string, string>) }
  return {
    ...pod,
    metadata: Object.keys(merged).length > 0 ? { ...metadata, annotations: merged } : metadata,
    spec: { ...spec, nodeName: node },
    status: { ...rest, conditions: scheduled(conditions, time) },
  }
}

function scheduled(conditions: readonly Condition[], time: string): Condition[] {
  const now = { type: 'PodScheduled', status: 'True', lastProbeTime: null, lastTransitionTime: time }
  const at = conditions.findIndex(({ type }) => type === now.type)
  return at < 0 ? [...conditions, now] : conditions.with(at, now)
}
