// The JSON patch of a mutating webhook, applied to the object of the request.
import { isDeepStrictEqual } from 'node:util'
import { goQuote } from '../../apimachinery/text/index.ts'
import { isJsonObject, type JsonObject, type JsonValue, type KubeObject } from '../../apimachinery/meta/index.ts'
import { applyJsonPatch } from '../../apimachinery/patch/index.ts'
import { internalError, isStatusError } from '../../apimachinery/status/index.ts'
import { isOwnAnnotation } from '../../crds/index.ts'
import type { Shown, Verdict } from './admission-review.ts'
import type { Webhook } from './webhook-configurations.ts'
import { WebhookCallError } from './webhook-errors.ts'

export interface Patched {
  /** The operations, for the audit line. */
  readonly operations: readonly JsonValue[]
  /** Whether the object differs from before. */
  readonly changed: boolean
}

/**
 * Applies the verdict's patch to `object` (the stored form), in place. Undefined without a patch. Rejects with WebhookCallError
 * for an undecodable patch, with InternalError for one that does not apply.
 */
export async function applyVerdict(
  webhook: Webhook,
  { patch, patchType }: Verdict,
  shown: Shown,
  object: KubeObject | undefined,
): Promise<Patched | undefined> {
  if (patch === undefined) return undefined
  const operations = decodePatch(webhook, patch)
  if (operations.length === 0) return undefined
  if (object === undefined || shown.object === undefined)
    throw internalError(
      `admission webhook ${goQuote(webhook.name)} attempted to modify the object, which is not supported for this operation`,
    )
  if (patchType !== 'JSONPatch')
    throw new WebhookCallError(webhook.name, `unsupported patch type ${goQuote(patchType)}`)
  const { form, request } = shown
  const patched = applied(shown.object, operations)
  const taken = await taking(() => form.take(patched, object))
  if (request.kind === undefined) {
    if (request.operation === 'CREATE') restoreNewMeta(taken, object)
    keepOwnAnnotations(taken, object)
  }
  if (isDeepStrictEqual(taken, object)) return { operations, changed: false }
  replace(object, taken)
  if (request.kind === undefined) request.definition.strategy.applyDefaults?.(object, request.context)
  return { operations, changed: true }
}

function decodePatch({ name }: Webhook, patch: string): JsonValue[] {
  try {
    const value = JSON.parse(patch) as JsonValue
    if (Array.isArray(value) && value.every(isJsonObject)) return value
    throw new Error('json: cannot unmarshal the patch: it must be a list of operations')
  } catch (error) {
    const why = (error as Error).message
    throw new WebhookCallError(name, `received undecodable patch in webhook response: ${why}`, error)
  }
}

function applied(document: KubeObject, operations: JsonValue[]): KubeObject {
  try {
    const patched = applyJsonPatch(JSON.parse(JSON.stringify(document)) as JsonObject, operations)
    if (isJsonObject(patched)) return patched as unknown as KubeObject
    throw new Error('the patched document is no object')
  } catch (error) {
    // The status of a patch that does not apply has the reason as its cause.
    const cause = isStatusError(error) ? error.cause : undefined
    throw internalError(cause instanceof Error ? cause.message : (error as Error).message, error)
  }
}

/** A patched object that cannot be decoded is the webhook's fault, not that of who sent the request. */
async function taking(take: () => KubeObject | Promise<KubeObject>): Promise<KubeObject> {
  try {
    return await take()
  } catch (error) {
    if (!isStatusError(error) || error.code >= 500) throw error
    // As upstream, without the sentence that a client gets about its own body.
    throw internalError(error.message.replace(/^.* cannot be handled as a \S+: /s, ''), error)
  }
}

/** A new object gets its uid and time of creation from the server alone. */
function restoreNewMeta(taken: KubeObject, before: KubeObject): void {
  const { uid, creationTimestamp, name, namespace } = before.metadata
  const { metadata } = taken
  if (uid !== undefined) metadata.uid = uid
  if (creationTimestamp !== undefined) metadata.creationTimestamp = creationTimestamp
  if (!metadata.name && name !== undefined) metadata.name = name
  if (!metadata.namespace && namespace) metadata.namespace = namespace
}

/** Annotations of kcp are read by the scheduler and the syncers: no webhook of a tenant may write them. */
function keepOwnAnnotations(taken: KubeObject, before: KubeObject): void {
  const others = Object.entries(taken.metadata.annotations ?? {}).filter(([name]) => !isOwnAnnotation(name))
  const own = Object.entries(before.metadata.annotations ?? {}).filter(([name]) => isOwnAnnotation(name))
  if (others.length + own.length > 0) taken.metadata.annotations = Object.fromEntries([...others, ...own])
  else delete taken.metadata.annotations
}

/** In place: callers hold references to the object and to its metadata. */
function replace(object: KubeObject, { metadata, ...rest }: Partial<KubeObject>): void {
  // The options of a connection have no metadata.
  const kept = (object as Partial<KubeObject>).metadata ?? {}
  for (const member of Object.keys(kept)) Reflect.deleteProperty(kept, member)
  Object.assign(kept, metadata)
  for (const member of Object.keys(object)) if (member !== 'metadata') Reflect.deleteProperty(object, member)
  Object.assign(object, rest)
}
