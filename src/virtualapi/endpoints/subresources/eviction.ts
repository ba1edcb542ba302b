// POST pods/NAME/eviction: deletes a pod if its PodDisruptionBudget allows it. Used by `kubectl drain` and autoscalers.
import { isJsonObject, type JsonObject, type JsonValue, type KubeObject } from '#apimachinery/meta/index.ts'
import { selectorFromObject, type LabelSelectorSource } from '#apimachinery/selector/index.ts'
import {
  badRequest,
  forbidden,
  isStatusError,
  statusError,
  tolerate,
  type StatusError,
} from '#apimachinery/status/index.ts'
import { timestamp } from '#async/index.ts'
import { jsonDocument } from '#virtualapi/codec/responses.ts'
import { decodeObjectBody, objectOf, withKind } from '#virtualapi/codec/read-object.ts'
import { builtInSchema } from '#virtualapi/kinds/resources/builtin-schemas.ts'
import { decodeObject } from '#virtualapi/kinds/resources/object-bytes.ts'
import type { DeleteOptions } from '#virtualapi/write/registry/deletion.ts'
import type { RegistryTarget } from '#virtualapi/write/registry/write.ts'
import type { ApiResponse } from '#virtualapi/request/exchange.ts'
import type { EndpointCall } from '#virtualapi/endpoints/call/endpoint-call.ts'
import { recordGiven } from '#virtualapi/endpoints/call/record-request.ts'
import { requireContentType, requireNamespace } from '#virtualapi/endpoints/verbs/create.ts'
import { deleteOptionsOf } from '#virtualapi/endpoints/verbs/delete-options.ts'
import { forwardEviction } from '#virtualapi/endpoints/forwarded/forward-pods.ts'
import type { EndpointDependencies } from '#virtualapi/endpoints/call/dependencies.ts'

/** policy/v1beta1 has the same fields. */
const evictions = { group: 'policy', version: 'v1', kind: 'Eviction' }
const budgets = { group: 'policy', version: 'v1', resource: 'poddisruptionbudgets' }
/** Maximum of evictions per budget that the disruption controller has not confirmed yet, as in kube-apiserver. */
const maxDisruptedPods = 2000

interface Condition {
  readonly type: string
  readonly status: string
}
interface Pod extends KubeObject {
  status?: { phase?: string; conditions?: Condition[] }
}
interface Budget extends KubeObject {
  spec?: { selector?: LabelSelectorSource; unhealthyPodEvictionPolicy?: string }
  status?: {
    observedGeneration?: number
    disruptionsAllowed?: number
    currentHealthy?: number
    desiredHealthy?: number
    disruptedPods?: Record<string, string>
    conditions?: Condition[]
  }
}

export async function evictPod(call: EndpointCall<EndpointDependencies>): Promise<ApiResponse> {
  const { dependencies, request } = call
  const { options, asked, target } = await readEviction(call)
  const pod: Pod = decodeObject(dependencies.registry.get(target, request.name).bytes)
  // With the uid or the version of another pod the delete below fails, and no budget is charged.
  const isAnother =
    (options.uid !== undefined && options.uid !== pod.metadata.uid) ||
    (options.resourceVersion !== undefined && options.resourceVersion !== pod.metadata.resourceVersion)
  if (!isAnother && (await forwardEviction({ ...call, target }, pod, asked))) await markDeleted(call, target, options)
  else if (isAnother || needsNoBudget(pod)) await dependencies.registry.delete(target, request.name, options)
  else await evictWithinBudget({ ...call, target }, pod, options)
  return jsonDocument({ kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success', code: 201 }, { status: 201 })
}

/** Deletes the pod in the logical cluster after the member has evicted it; the pod may be gone already. */
async function markDeleted(
  { dependencies, request }: EndpointCall,
  target: RegistryTarget,
  options: DeleteOptions,
): Promise<void> {
  const { forward: _, ...here } = target
  const { resourceVersion: _revision, ...rest } = options
  await dependencies.registry.delete(here, request.name, rest).catch(tolerate('NotFound'))
}

interface AdmittedEviction {
  readonly options: DeleteOptions
  /** The deleteOptions of the Eviction. */
  readonly asked: JsonObject
  readonly target: RegistryTarget
}

/** Decodes the Eviction and asks the webhooks about it. */
async function readEviction(call: EndpointCall): Promise<AdmittedEviction> {
  const { exchange, request, target, fieldValidation, dependencies } = call
  const contentType = requireContentType(exchange.header('content-type'))
  const decoded = decodeObjectBody(await exchange.request.body(), contentType, evictions.kind)
  const definition = withKind(
    call.definition,
    isV1beta1(decoded.value) ? { ...evictions, version: 'v1beta1' } : evictions,
  )
  const eviction = objectOf(decoded, {
    definition: { ...definition, schema: builtInSchema(evictions) },
    fieldValidation,
    warnings: exchange.warnings,
  })
  recordGiven(call, eviction)
  const { name, namespace } = eviction.metadata
  requireNamespace(typeof namespace === 'string' ? { namespace } : {}, request.namespace)
  if (name !== request.name) throw badRequest('name in URL does not match name in Eviction object')
  const { group, version, kind } = definition.info
  const part = { operation: 'CREATE', subresource: 'eviction', name, kind: { group, version, kind } } as const
  deleteOptionsIn(eviction, target)
  const admitted = await dependencies.registry.admitPart(target, part, eviction)
  const { deleteOptions: asked } = eviction
  return { options: deleteOptionsIn(eviction, admitted), asked: isJsonObject(asked) ? asked : {}, target: admitted }
}

function deleteOptionsIn({ deleteOptions }: KubeObject, target: RegistryTarget): DeleteOptions {
  return deleteOptionsOf(isJsonObject(deleteOptions) ? deleteOptions : {}, target)
}

const isV1beta1 = (value: JsonValue): boolean =>
  isJsonObject(value) && value['apiVersion'] === 'policy/v1beta1' && value['kind'] === evictions.kind

/** A pod that has ended, has not started or is being deleted already can go without a disruption. */
function needsNoBudget({ metadata, status }: Pod): boolean {
  return ['Succeeded', 'Failed', 'Pending'].includes(status?.phase ?? '') || metadata.deletionTimestamp !== undefined
}

async function evictWithinBudget(call: EndpointCall, pod: Pod, options: DeleteOptions): Promise<void> {
  const found = budgetsOf(call, pod)
  if (found.length > 1)
    throw statusError(
      500,
      'InternalError',
      'This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.',
    )
  const [budget] = found
  if (budget === undefined) return remove(call, options)
  if (!isUnreadyAndUnprotected(pod, budget)) {
    await chargeBudget(call, budget)
    return remove(call, options)
  }
  try {
    // The resourceVersion makes the delete fail if the pod has become ready since we read it.
    await remove(call, { resourceVersion: pod.metadata.resourceVersion ?? '', ...options })
  } catch (error) {
    if (!isStatusError(error, 'Conflict') || options.resourceVersion !== undefined) throw error
    throw budgetNotReady(budget)
  }
}

function budgetsOf({ dependencies, objects }: EndpointCall, { metadata }: Pod): Budget[] {
  const definition = dependencies.catalog.findBuiltIn(budgets)
  const { labels, namespace = '' } = metadata
  if (definition === undefined || labels === undefined || Object.keys(labels).length === 0) return []
  const all = objects.list({ resource: definition.storageKey, namespace })
  return all
    .map(({ bytes }): Budget => decodeObject(bytes))
    .filter(({ spec }) => selectorFromObject(spec?.selector).matches(labels))
}

/** A pod that is not ready may go without charging the budget if enough others are healthy, or with AlwaysAllow. */
function isUnreadyAndUnprotected({ status }: Pod, budget: Budget): boolean {
  const ready = status?.conditions?.some(({ type, status: is }) => type === 'Ready' && is === 'True') ?? false
  if (ready) return false
  const { currentHealthy = 0, desiredHealthy = 0 } = budget.status ?? {}
  return (
    budget.spec?.unhealthyPodEvictionPolicy === 'AlwaysAllow' ||
    (desiredHealthy > 0 && currentHealthy >= desiredHealthy)
  )
}

/** Charges the budget before the pod is deleted, so that concurrent evictions see it. Throws 429 if none is left. */
async function chargeBudget({ dependencies, target, request }: EndpointCall, { metadata }: Budget): Promise<void> {
  const definition = dependencies.catalog.findBuiltIn(budgets)
  if (definition === undefined) return
  await dependencies.registry.update({ ...target, definition }, metadata.name ?? '', {
    subresource: 'status',
    change: (current) => {
      const budget = current as Budget | undefined
      // The budget was deleted after we read it.
      if (budget === undefined) throw budgetNotReady({ metadata } as Budget)
      checkBudget(budget)
      const { status = {} } = budget
      const disruptionsAllowed = (status.disruptionsAllowed ?? 0) - 1
      const disruptedPods = { ...status.disruptedPods, [request.name]: timestamp(target.context.now) }
      return { ...budget, status: { ...status, disruptionsAllowed, disruptedPods } }
    },
  })
}

function checkBudget(budget: Budget): void {
  const { metadata, status = {} } = budget
  const { disruptionsAllowed = 0, desiredHealthy = 0, currentHealthy = 0, disruptedPods = {} } = status
  if ((status.observedGeneration ?? 0) < (metadata.generation ?? 0)) throw budgetNotReady(budget)
  if (disruptionsAllowed < 0) throw refusedBy(budget, 'pdb disruptions allowed is negative')
  if (Object.keys(disruptedPods).length > maxDisruptedPods)
    throw refusedBy(budget, 'DisruptedPods map too big - too many evictions not confirmed by PDB controller')
  if (disruptionsAllowed > 0) return
  const text = `The disruption budget ${metadata.name ?? ''} needs ${String(desiredHealthy)} healthy pods and has ${String(currentHealthy)} currently`
  throw tooMany(text, 0)
}

const refusedBy = ({ metadata }: Budget, why: string): StatusError =>
  forbidden({ group: 'policy', resource: 'poddisruptionbudget' }, metadata.name ?? '', why)

const budgetNotReady = ({ metadata }: Budget): StatusError =>
  tooMany(`The disruption budget ${metadata.name ?? ''} is still being processed by the server.`, 10)

function tooMany(why: string, retryAfterSeconds: number): StatusError {
  const causes = [{ reason: 'DisruptionBudget', message: why }]
  const message = "Cannot evict pod as it would violate the pod's disruption budget."
  return statusError(429, 'TooManyRequests', message, {
    details: { causes, ...(retryAfterSeconds === 0 ? {} : { retryAfterSeconds }) },
    ...(retryAfterSeconds === 0 ? {} : { headers: { 'Retry-After': String(retryAfterSeconds) } }),
  })
}

/** Sets the condition DisruptionTarget of the pod, then deletes it. */
async function remove({ dependencies, target, request }: EndpointCall, options: DeleteOptions): Promise<void> {
  const { object } = await dependencies.registry.update(target, request.name, {
    subresource: 'status',
    change: (current) => {
      const pod = current as Pod | undefined
      if (pod === undefined) throw badRequest('there is no pod to evict')
      const others = (pod.status?.conditions ?? []).filter(({ type }) => type !== 'DisruptionTarget')
      const condition = {
        type: 'DisruptionTarget',
        status: 'True',
        reason: 'EvictionByEvictionAPI',
        message: 'Eviction API: evicting',
        lastTransitionTime: timestamp(target.context.now),
      }
      const { resourceVersion = pod.metadata.resourceVersion ?? '' } = options
      return {
        ...pod,
        metadata: { ...pod.metadata, resourceVersion },
        status: { ...pod.status, conditions: [...others, condition] },
      }
    },
  })
  const { resourceVersion: asked, ...rest } = options
  const { resourceVersion } = object.metadata
  await dependencies.registry.delete(target, request.name, {
    ...rest,
    ...(asked === undefined || resourceVersion === undefined ? {} : { resourceVersion }),
  })
}
